{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
The standard metadata of Kubernetes objects.
{{- else -}}
{{ markdownRenderFieldDoc (.Doc | trim | replace "\n" " ") }}
{{- end -}}
{{- end -}}

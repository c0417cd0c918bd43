{{- define "type" -}}
{{- if markdownShouldRenderType . }}
### {{ .Name }}

{{ .Doc | trim }}
{{ if .References }}
Appears in:{{ range $i, $type := .SortedReferences }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $type }}{{ end }}
{{ end }}
{{- if .Validation }}
{{- range .Validation }}
- {{ . }}
{{- end }}
{{ end }}
{{- if .Members }}
| Field | Description | Default | Validation |
| --- | --- | --- | --- |
{{- if .GVK }}
| `apiVersion` _string_ | `{{ .GVK.Group }}/{{ .GVK.Version }}` | | |
| `kind` _string_ | `{{ .GVK.Kind }}` | | |
{{- end }}
{{- range .Members }}
| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ template "type_members" . }} | {{ markdownRenderDefault .Default }} | {{ range $i, $rule := .Validation }}{{ if $i }}<br />{{ end }}{{ markdownRenderFieldDoc ($rule | replace ": {}" "") }}{{ end }} |
{{- end }}
{{ end }}
{{- if .EnumValues }}
| Value | Description |
| --- | --- |
{{- range .EnumValues }}
| `{{ .Name }}` | {{ markdownRenderFieldDoc (.Doc | trim | replace "\n" " ") }} |
{{- end }}
{{ end }}
{{- end }}
{{- end -}}

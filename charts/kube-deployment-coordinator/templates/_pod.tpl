{{/* What the controller's pods have in common, whatever they do. */}}
{{- define "kube-deployment-coordinator.pod" -}}
{{- with .Values.imagePullSecrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with .Values.nodeSelector -}}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with .Values.tolerations -}}
tolerations:
  {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with .Values.affinity -}}
affinity:
  {{- toYaml . | nindent 2 }}
{{ end -}}
serviceAccountName: {{ include "kube-deployment-coordinator.serviceAccountName" . }}
terminationGracePeriodSeconds: 10
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end -}}

{{- define "kube-deployment-coordinator.container" -}}
image: {{ include "kube-deployment-coordinator.image" . | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end -}}

{{- define "kube-deployment-coordinator.env" -}}
- name: RUNTIME_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: RUNTIME_NAME
  value: {{ include "kube-deployment-coordinator.fullname" . }}-controller-manager
{{- if not .Values.webhook.enabled }}
- name: ENABLE_WEBHOOKS
  value: "false"
{{- end }}
{{- if dig "limits" "memory" "" .Values.resources }}
- name: GOMEMLIMIT
  valueFrom:
    resourceFieldRef:
      resource: limits.memory
{{- end }}
{{- end -}}

{{/* Annotations of what runs before the release is uninstalled, in the order of a weight. */}}
{{- define "kube-deployment-coordinator.uninstallHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

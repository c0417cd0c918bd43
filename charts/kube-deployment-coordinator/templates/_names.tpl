{{/* What all names begin with: "kube-deployment-coordinator" for a release of that name. */}}
{{- define "kube-deployment-coordinator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "kube-deployment-coordinator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (printf "%s-controller-manager" (include "kube-deployment-coordinator.fullname" .)) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Whoever keeps the values of containerinfra's chart does not mean its program. */}}
{{- define "kube-deployment-coordinator.image" -}}
{{- $released := index (.Chart.Annotations | default dict) "rollout-controller.kuberik.com/image-digest" -}}
{{- with .Values.image -}}
{{- if hasSuffix "containerinfra/kube-deployment-coordinator" .repository -}}
ghcr.io/fluxrollouts/rollout-controller:{{ $.Chart.AppVersion }}{{ with $released }}@{{ . }}{{ end }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest | default (ternary "" $released (not (empty .tag))) }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Part of rollout-controller, of which this is another installation. */}}
{{- define "kube-deployment-coordinator.labels" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: rollout-controller
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The labels by which the pods are found; they cannot change later. */}}
{{- define "kube-deployment-coordinator.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
control-plane: controller-manager
{{- end -}}

{{- define "kube-deployment-coordinator.args" -}}
- --controllers=deploymentcoordination
- --metrics-bind-address=:{{ .Values.metricsPort }}
- --metrics-secure=false
- --health-probe-bind-address=:{{ .Values.healthPort }}
- --leader-elect={{ .Values.leaderElection.enabled }}
- --leader-election-id={{ .Values.leaderElection.id }}
{{- if include "kube-deployment-coordinator.foreignCertificate" . }}
- --webhook-cert-dir=/certificate
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What is true if somebody else provides the webhook's certificate. */}}
{{- define "kube-deployment-coordinator.foreignCertificate" -}}
{{- with .Values.webhook -}}
{{- if and .enabled (or .certManager.enabled .caBundle) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kube-deployment-coordinator.webhookService" -}}
{{- .Values.webhook.serviceName | default (printf "%s-webhook" (include "kube-deployment-coordinator.fullname" .)) -}}
{{- end -}}

{{- define "kube-deployment-coordinator.certificate" -}}
{{- .Values.webhook.certManager.certificateName | default (printf "%s-webhook" (include "kube-deployment-coordinator.fullname" .)) -}}
{{- end -}}

{{- define "kube-deployment-coordinator.certificateSecret" -}}
{{- .Values.webhook.certManager.secretName | default (printf "%s-webhook-cert" (include "kube-deployment-coordinator.fullname" .)) -}}
{{- end -}}

{{/* What all names begin with: "rollout-controller" for a release of that name. */}}
{{- define "rollout-controller.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 28 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 28 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "rollout-controller.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (printf "%s-controller-manager" (include "rollout-controller.fullname" .)) -}}
{{- end -}}

{{- define "rollout-controller.image" -}}
{{- with .Values.image -}}
{{- $released := index ($.Chart.Annotations | default dict) "rollout-controller.kuberik.com/image-digest" -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest | default (ternary "" $released (not (empty .tag))) }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "rollout-controller.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The labels by which the pods are found; they cannot change later. */}}
{{- define "rollout-controller.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
control-plane: controller-manager
{{- end -}}

{{- define "rollout-controller.args" -}}
- --metrics-bind-address=:8443
- --metrics-cert-secret={{ include "rollout-controller.fullname" . }}-metrics-certificate
- --leader-elect
- --health-probe-bind-address=:8081
{{- with .Values.eventsAddress }}
- --events-addr={{ . }}
{{- end }}
{{- with .Values.concurrent }}
- --concurrent={{ . }}
{{- end }}
{{- with .Values.watchLabelSelector }}
- {{ printf "--watch-label-selector=%s" . | quote }}
{{- end }}
{{- if .Values.noCrossNamespaceRefs }}
- --no-cross-namespace-refs
{{- end }}
{{- with .Values.quarantineScope }}
- --quarantine-scope={{ . }}
{{- end }}
{{- if kindIs "bool" .Values.noOwnRegistryCredentials }}
- --no-own-registry-credentials={{ .Values.noOwnRegistryCredentials }}
{{- end }}
{{- with .Values.approvals.identity }}
- --approval-identity={{ . }}
{{- end }}
{{- with .Values.clusterName }}
- {{ printf "--cluster-name=%s" . | quote }}
{{- end }}
{{- with .Values.signingKeySecret }}
- --signing-key-secret={{ . }}
{{- end }}
{{- with .Values.trustedKeysSecret }}
- --trusted-keys-secret={{ . }}
{{- end }}
{{- range .Values.healthDestinations }}
- {{ printf "--health-destinations=%s" . | quote }}
{{- end }}
{{- with .Values.prometheusAddress }}
- {{ printf "--prometheus-address=%s" . | quote }}
{{- end }}
{{- with .Values.prometheusCredentials }}
- --prometheus-credentials={{ . }}
{{- end }}
{{- if .Values.deploymentCoordination.enabled }}
- --controllers=*,deploymentcoordination
{{- end }}
{{- if .Values.statefulSetRollout.enabled }}
- --controllers=*,statefulsetrollout
{{- end }}
{{- with .Values.logLevel }}
- --log-level={{ . }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Replicas share nodes only if they must. */}}
{{- define "rollout-controller.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "rollout-controller.selector" . | nindent 6 }}
{{- end -}}

{{/* What holds Deployments that wait at admission: policy, webhook or none. */}}
{{- define "rollout-controller.admission" -}}
{{- $policies := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
{{- if not .Values.deploymentCoordination.enabled -}}
none
{{- else if ne .Values.deploymentCoordination.admission "auto" -}}
{{ .Values.deploymentCoordination.admission }}
{{- else if or $policies (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version) -}}
policy
{{- else -}}
webhook
{{- end -}}
{{- end -}}

{{/* The page has labels of its own: what selects the controller must not select it. */}}
{{- define "rollout-controller.webSelector" -}}
app.kubernetes.io/name: rollout-web
app.kubernetes.io/instance: {{ .Release.Name }}-web
{{- end -}}

{{- define "rollout-controller.webLabels" -}}
{{ include "rollout-controller.webSelector" . }}
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

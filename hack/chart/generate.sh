#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes the templates of the chart that have what is in config/, so that it is
# maintained in one place: CRDs, roles, alerts and dashboard.
#
#   hack/chart/generate.sh <kustomize> <folder of templates>
set -euo pipefail

kustomize=$1
templates=$2
here=$(dirname "$0")
mkdir -p "$templates"

# Braces in a description, or in an alert, are no template.
escape='s/\{\{/{{ "{{" }}/g'

keep='s/^    chart-keep: ""$/    {{- if .Values.crds.keep }}\n    helm.sh\/resource-policy: keep\n    {{- end }}/'
labels='s/^    chart-labels: ""$/    {{- include "rollout-controller.labels" . | nindent 4 }}/'
more_labels='s/^    chart-labels: ""$/    {{- include "rollout-controller.labels" . | nindent 4 }}\n    {{- with .Values.monitoring.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}/'
account='s/chart-fullname-controller-manager/{{ include "rollout-controller.serviceAccountName" . }}/'
fullname='s/chart-fullname/{{ include "rollout-controller.fullname" . }}/'
monitor_name='s/^  name: rollout-controller/  name: {{ include "rollout-controller.fullname" . }}/'
hold='s/rollout-controller-(hold|webhook)/{{ include "rollout-controller.fullname" . }}-\1/'
namespace='s/chart-namespace/{{ .Release.Namespace }}/'
monitoring_namespace='s/chart-namespace/{{ .Values.monitoring.namespace | default .Release.Namespace }}/'

selector='s/^    app.kubernetes.io\/(name|instance): rollout-controller$/    app.kubernetes.io\/\1: chart-\1/; s/chart-name$/{{ .Chart.Name }}/; s/chart-instance$/{{ .Release.Name }}/'

# template <name> <condition> <expression>... makes a template of what it reads,
# for as long as the condition is true.
template() {
	local name=$1 condition=$2
	shift 2
	{
		echo "{{- /* Generated from config/ by make generate. */ -}}"
		echo "{{- if $condition }}"
		sed -E "${@/#/-e}"
		echo "{{- end }}"
	} > "$templates/$name.yaml"
}

# documents <condition> passes on the documents for which awk finds it true.
documents() {
	awk 'BEGIN { RS = "---\n"; ORS = "" } '"$1"' { print separator $0; separator = "---\n" }'
}

"$kustomize" build "$here/crds" | template crds .Values.crds.install "$escape" "$labels" "$keep"

# The ServiceAccount has a template of its own: it takes annotations.
"$kustomize" build "$here/rbac" | documents '!/\nkind: ServiceAccount\n/' |
	template rbac .Values.rbac.create "$escape" "$labels" "$account" "$fullname" "$namespace"

# What orders the inside of a release, each part for itself.
coordination=.Values.deploymentCoordination
"$kustomize" build "$here/coordination/crd" |
	template deploymentcoordination-crd "and $coordination.enabled $coordination.crd" "$escape" "$labels" "$keep"
"$kustomize" build "$here/coordination/rbac" |
	template deploymentcoordination-rbac "and $coordination.enabled .Values.rbac.create" "$escape" "$labels" "$account" "$fullname" "$namespace" "$hold"
"$kustomize" build "$here/coordination/admission-policy" | documents '!/\nkind: ServiceAccount\n/' |
	template deploymentcoordination-policy 'eq (include "rollout-controller.admission" .) "policy"' "$escape" "$labels" "$account" "$namespace" "$hold"
"$kustomize" build "$here/coordination/webhook" | documents '!/\nkind: ServiceAccount\n/' |
	template deploymentcoordination-webhook 'eq (include "rollout-controller.admission" .) "webhook"' "$escape" "$labels" "$account" "$namespace" "$hold" "$selector"
"$kustomize" build "$here/statefulset-rollout" |
	template statefulsetrollout-rbac "and .Values.statefulSetRollout.enabled .Values.rbac.create" "$escape" "$labels" "$account" "$fullname" "$namespace"

monitoring=$("$kustomize" build "$here/monitoring")
monitor() {
	documents "/\nkind: $2\n/ && /\n  name: rollout-controller$3\n/" <<< "$monitoring" |
		template "${1,,}" ".Values.monitoring.$1.create" "$escape" "$more_labels" "$monitor_name" "$monitoring_namespace"
}
monitor serviceMonitor ServiceMonitor ""
monitor prometheusRule PrometheusRule ""
monitor dashboard ConfigMap -grafana-dashboards
monitor kubeStateMetrics ConfigMap -kube-state-metrics-config

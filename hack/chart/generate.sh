#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes the templates of the charts that have what is in config/, so that it is
# maintained in one place: CRDs, roles, admission, alerts and dashboard.
#
#   hack/chart/generate.sh <kustomize> <folder of charts>
set -euo pipefail

kustomize=$1
charts=$2
here=$(dirname "$0")

# Braces in a description, or in an alert, are no template.
escape='s/\{\{/{{ "{{" }}/g'

keep='s/^    chart-keep: ""$/    {{- if .Values.crds.keep }}\n    helm.sh\/resource-policy: keep\n    {{- end }}/'
namespace='s/chart-namespace/{{ .Release.Namespace }}/'
more_labels='s/^    chart-labels: ""$/    {{- include "rollout-controller.labels" . | nindent 4 }}\n    {{- with .Values.monitoring.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}/'
monitor_name='s/^  name: rollout-controller/  name: {{ include "rollout-controller.fullname" . }}/'
scraped='s/rollout-controller-metrics-/{{ include "rollout-controller.fullname" . }}-metrics-/; s/kuberik-system/{{ .Release.Namespace }}/'
# A release reads its own metrics, not those of its shards, which have certificates of their own.
own='s/^      app.kubernetes.io\/part-of: rollout-controller$/&\n      app.kubernetes.io\/instance: {{ .Release.Name }}/'
pace='s/^    port: https$/&\n    {{- with .Values.monitoring.serviceMonitor.interval }}\n    interval: {{ . }}\n    {{- end }}\n    {{- with .Values.monitoring.serviceMonitor.scrapeTimeout }}\n    scrapeTimeout: {{ . }}\n    {{- end }}/'
monitoring_namespace='s/chart-namespace/{{ .Values.monitoring.namespace | default .Release.Namespace }}/'
selector='s/^    app.kubernetes.io\/(name|instance): rollout-controller$/    app.kubernetes.io\/\1: chart-\1/; s/chart-name$/{{ .Chart.Name }}/; s/chart-instance$/{{ .Release.Name }}/'

# words says how the words are replaced that stand for what a chart calls things.
words() {
	chart=$1
	mkdir -p "$charts/$chart/templates"
	labels='s/^    chart-labels: ""$/    {{- include "'$chart'.labels" . | nindent 4 }}/'
	account='s/chart-fullname-controller-manager/{{ include "'$chart'.serviceAccountName" . }}/'
	fullname='s/chart-fullname/{{ include "'$chart'.fullname" . }}/'
	hold='s/rollout-controller-(hold|webhook|deploymentcoordination)/{{ include "'$chart'.fullname" . }}-\1/'
}

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
	} > "$charts/$chart/templates/$name.yaml"
}

# documents <condition> passes on the documents for which awk finds it true.
documents() {
	awk 'BEGIN { RS = "---\n"; ORS = "" } '"$1"' { print separator $0; separator = "---\n" }'
}

words rollout-controller
"$kustomize" build "$here/crds" | template crds .Values.crds.install "$escape" "$labels" "$keep"

# The ServiceAccount has a template of its own: it takes annotations.
# The bindings that go furthest have values of their own.
# Who may change gates is a value too.
gates='s/^    chart-gates: ""$/    {{- if .Values.rbac.aggregateGates }}/; s/^    chart-gates-end: ""$/    {{- end }}/'
rbac=$("$kustomize" build "$here/rbac" | awk '
	{ lines[++n] = $0 } /^  name: chart-fullname-(rolloutgate-editor|rollout-approver)-role$/ { gate[n] = 1 }
	END {
		for (i = 1; i <= n; i++) {
			if (lines[i] ~ /aggregate-to-/ && gate[i + 1]) lines[i] = "    chart-gates: \"\"\n" lines[i] "\n    chart-gates-end: \"\""
			print lines[i]
		}
	}')
documents '!/\nkind: ServiceAccount\n/ && !/\n  name: chart-fullname-(registry-credentials|health-workloads)-rolebinding\n/' <<< "$rbac" |
	template rbac .Values.rbac.create "$escape" "$gates" "$labels" "$account" "$fullname" "$namespace"
binding() {
	documents "/\n  name: chart-fullname-$1-rolebinding\n/" <<< "$rbac" |
		template "rbac-$1" "and .Values.rbac.create .Values.rbac.$2" "$escape" "$labels" "$account" "$fullname" "$namespace"
}
binding registry-credentials registryCredentials
binding health-workloads healthWorkloads

# What vouches for names, under names of its own that the controller looks for.
policies() {
	"$kustomize" build "$here/$1" | template "$1" "$2" "$escape" "$labels"
}
policies approvals .Values.approvals.enabled
policies deploy-user .Values.approvals.deployUser
policies sign .Values.approvals.sign

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
# What reads the metrics is where the controller is.
documents '/\nkind: ServiceMonitor\n/ || /\n  name: rollout-controller-metrics-/' <<< "$monitoring" |
	template servicemonitor .Values.monitoring.serviceMonitor.create "$more_labels" "$scraped" "$own" "$pace" "$monitor_name" "$namespace"
monitor prometheusRule PrometheusRule ""
monitor dashboard ConfigMap -grafana-dashboards
monitor kubeStateMetrics ConfigMap -kube-state-metrics-config

# The chart of those who want nothing but Deployments in turn. The coordinator is
# removed with all of it, which a hook sees to.
words kube-deployment-coordinator
coordinator=$("$kustomize" build "$here/coordinator")
documents '/\n  name: chart-fullname-(deploymentcoordination|leader-election)-/ && !/-cleanup-/' <<< "$coordinator" |
	template rbac true "$escape" "$labels" "$account" "$fullname" "$namespace" "$hold"
documents '/\nkind: (Cluster)?Role(Binding)?\n/ && /\n  name: rollout-controller-webhook/' <<< "$coordinator" |
	template webhook-rbac .Values.webhook.enabled "$escape" "$labels" "$account" "$fullname" "$namespace" "$hold"
sed -E 's/rollout-controller\./kube-deployment-coordinator./; s/\.Values\.(deploymentCoordination\.enabled|rbac\.create)/true/' \
	"$here/../../charts/rollout-controller/templates/uninstall.yaml" > "$charts/$chart/templates/uninstall.yaml"

words kube-deployment-coordinator-crds
"$kustomize" build "$here/coordinator/crd" | sed -E "$escape" > "$charts/$chart/templates/crd.yaml"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes the templates of the chart that have the roles and CRDs of config/, so
# that they are maintained in one place:
#
#   hack/chart/generate.sh <kustomize> <folder of templates>
set -euo pipefail

kustomize=$1
templates=$2
here=$(dirname "$0")
mkdir -p "$templates"

# What stands between braces in a description is no template.
escape='s/\{\{/{{ "{{" }}/g'

labels='s/^    chart-labels: ""$/    {{- include "rollout-controller.labels" . | nindent 4 }}/'
keep='s/^    chart-keep: ""$/    {{- if .Values.crds.keep }}\n    helm.sh\/resource-policy: keep\n    {{- end }}/'
account='s/chart-fullname-controller-manager/{{ include "rollout-controller.serviceAccountName" . }}/'
fullname='s/chart-fullname/{{ include "rollout-controller.fullname" . }}/'
namespace='s/chart-namespace/{{ .Release.Namespace }}/'

# template <name> <value> <expression>... makes a template of what it reads, for
# as long as the value is true.
template() {
	local name=$1 value=$2
	shift 2
	{
		echo "{{- /* Generated from config/ by make generate. */ -}}"
		echo "{{- if .Values.$value }}"
		sed -E "${@/#/-e}"
		echo "{{- end }}"
	} > "$templates/$name.yaml"
}

# The ServiceAccount has a template of its own: it takes annotations.
without_accounts() {
	awk 'BEGIN { RS = "---\n"; ORS = "" } !/\nkind: ServiceAccount\n/ { print separator $0; separator = "---\n" }'
}

"$kustomize" build "$here/crds" | template crds crds.install "$escape" "$labels" "$keep"
"$kustomize" build "$here/rbac" | without_accounts |
	template rbac rbac.create "$escape" "$labels" "$account" "$fullname" "$namespace"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The quick start on a cluster of its own, on Linux and macOS: kind, Flux, the controller, and
# podinfo up to a release that is held.
#
#   hack/kind.sh                   with the controller of this checkout
#   VERSION=v0.1.0 hack/kind.sh    with that of a release
#   hack/kind.sh --dry-run         prints the commands
#
# It needs docker, kind, kubectl, and for a release Helm. No other cluster is touched, and
# `kind delete cluster --name rollouts` removes this one.
set -euo pipefail
cd "$(dirname "$0")/.."

dry=${1:-}
image=ghcr.io/fluxrollouts/rollout-controller
tag=$(sed -n 's/^  newTag: //p' config/manager/kustomization.yaml)
flux=https://github.com/fluxcd/flux2/releases/download/v2.9.5/install.yaml

run() {
	echo "+ $*"
	[[ $dry == --dry-run ]] || "$@"
}
k() { run kubectl --context kind-rollouts "$@"; }

run kind create cluster --name rollouts --wait 3m
k apply --server-side -f "$flux"
if [[ -n ${VERSION:-} ]]; then
	run helm install rollout-controller oci://ghcr.io/fluxrollouts/charts/rollout-controller --version "${VERSION#v}" \
		--kube-context kind-rollouts --namespace kuberik-system --create-namespace
else
	run docker build --tag "$image:$tag" --build-arg "VERSION=$tag" .
	run kind load docker-image "$image:$tag" --name rollouts
	k apply --server-side -k config/default
fi
k -n flux-system wait deployment --all --for=condition=Available --timeout 5m
k -n kuberik-system rollout status deployment/rollout-controller-controller-manager --timeout 5m

k apply -f config/samples/quickstart/podinfo.yaml
k -n podinfo wait rollout/podinfo --for='jsonpath={.status.history[0].bakeStatus}=Succeeded' --timeout 10m
k -n podinfo patch imagepolicy podinfo --type merge -p '{"spec":{"policy":{"semver":{"range":"6.8.x"}}}}'
k -n podinfo wait rollout/podinfo --for='jsonpath={.status.releaseCandidates[0].tag}=6.8.0' --timeout 5m
k -n podinfo get rollout podinfo
cat <<'END'

6.8.0 is held by the gate approval. Approve it, and see it bake:

  kubectl -n podinfo patch rolloutgate approval --field-manager=on-call --type merge -p '{"spec":{"passing":true}}'
  kubectl -n podinfo get rollout podinfo --watch

The quick start goes on from there: docs/quickstart.md
END

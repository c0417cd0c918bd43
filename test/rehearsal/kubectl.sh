#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Stands in for kubectl where hack/kind.sh is rehearsed: the cluster is a control plane that
# has Flux and the controller already, and the images are in a registry of its own.
set -euo pipefail

[[ $1 == --context ]]
shift 2
case $* in
"apply --server-side"* | "-n flux-system"* | "-n kuberik-system"*) ;;
"apply -f config/"*) sed -E "s#ghcr\.io(/stefanprodan/.*)#$REGISTRY\1\n  insecure: true#" "$3" | "$KUBECTL" apply -f - ;;
*) exec "$KUBECTL" "$@" ;;
esac

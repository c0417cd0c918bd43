// SPDX-License-Identifier: Apache-2.0

// Command flux-rollout answers three questions about Rollouts: what runs, why is my release
// not out, and what happens if I do this. Every answer comes from package promotion, as
// every decision of the controller does.
//
// It is one program with three names. As kubectl-rollouts on the PATH it is "kubectl
// rollouts", as flux-rollout in the plugins of Flux it is "flux rollout", and as
// kubectl_complete-rollouts it completes commands for kubectl.
package main

import (
	"os"

	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs"
)

// version is set when a release is built.
var version string

func main() { os.Exit(verbs.Main(version)) }

// SPDX-License-Identifier: Apache-2.0

// Package artifacts lets releases reach Flux's real controllers through ExternalArtifacts.
// source-watcher is played, because its program cannot be had as a module. It has a control
// plane of its own, because no other one serves ArtifactGenerators.
package artifacts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// plane is shared by the tests.
var plane *env.Plane

func TestMain(m *testing.M) {
	os.Exit(env.Main(m, &plane, controlplane.Options{
		Flux: true, Helm: true, ImageScanner: true, ExternalArtifacts: true,
		CRDPaths: []string{filepath.Join(parts.Root(), "test", "fixture", "crds")},
	}, env.AsShipped...))
}

// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// Everything goes back together, so the status and the targets agree. What was decided since
// is decided again.
func TestEtcdIsRestoredFromAnEarlierSnapshot(t *testing.T) {
	t.Parallel()
	a := alone(t)
	data, snapshot := filepath.Join(plane.Dir(), "etcd"), filepath.Join(t.TempDir(), "etcd")
	whileStopped(t, func() error { return os.CopyFS(snapshot, os.DirFS(data)) })

	a.opens()
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	a.publish("1.2.0")
	a.prod.AwaitState("1.2.0", v1alpha1.BakeSucceeded)
	p := a.page()
	steps := p.steps("etcd is restored")
	p.follow(steps[0])
	whileStopped(t, func() error {
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		return os.CopyFS(data, os.DirFS(snapshot))
	})

	a.staging.Scan()
	a.prod.Scan()
	a.staging.AwaitState("1.2.0", v1alpha1.BakeSucceeded)
	a.prod.AwaitCandidate("1.2.0")
	a.staysAt("1.0.0")
	p.follow(steps[1])
	a.opens()
	a.prod.AwaitState("1.2.0", v1alpha1.BakeSucceeded)
}

// clients are the parts that keep what they have read of the API server.
var clients = []parts.Name{parts.SourceController, parts.KustomizeController, parts.ImageReflectorController}

// whileStopped does something with etcd's data while everything is stopped.
func whileStopped(t *testing.T, do func() error) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(plane.Controller.Stop(ctx))
	stopped := append(clients[:len(clients):len(clients)], parts.APIServer, parts.Etcd)
	for _, name := range stopped {
		must(plane.Part(name).Stop(ctx))
	}
	must(do())
	for _, name := range []parts.Name{parts.Etcd, parts.APIServer} {
		must(plane.Part(name).Start(ctx))
	}
	env.Eventually(t, "an API server that serves the project's kinds", func() (bool, string) {
		err := plane.Client().List(ctx, &v1alpha1.RolloutList{})
		return err == nil, ""
	})
	for _, name := range clients {
		must(plane.Part(name).Start(ctx))
	}
	must(plane.Controller.Start(ctx))
}

// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"slices"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// Staging runs a release that the copy does not have, and production waits for it.
func TestReleaseRepositoryIsRestoredFromAnOldCopy(t *testing.T) {
	t.Parallel()
	a := newApplication(t)
	all := a.digestsOf(a.prod.Repository)
	a.restores(a.prod.Repository, map[string]string{"1.0.0": all["1.0.0"]})
	a.scansAll()
	a.prod.AwaitOffer("1.0.0")
	a.opens()
	a.page().does("The release repository is restored")
	a.staysAt("1.0.0")
	if got := env.History(a.staging.Live()); !slices.Equal(got, []string{"2 1.1.0 Succeeded", "1 1.0.0 Succeeded"}) {
		t.Errorf("staging has the history %q", got)
	}
	a.restores(a.prod.Repository, all)
	a.scansAll()
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}

// scansAll makes Flux ask for the releases, and for what runs.
func (a *application) scansAll() {
	a.prod.T.Helper()
	for _, e := range []*env.Env{a.staging, a.prod} {
		e.Scan()
		if err := plane.RequestReconcile(e.T.Context(), e.OCIRepository("")); err != nil {
			e.T.Fatal(err)
		}
	}
}

// digestsOf returns the content of a repository, by tag.
func (a *application) digestsOf(repository string) map[string]string {
	a.prod.T.Helper()
	digests, err := a.prod.Plane.Registry.Digests(a.prod.T.Context(), repository)
	if err != nil {
		a.prod.T.Fatal(err)
	}
	return digests
}

// restores makes the content of a repository what it was.
func (a *application) restores(repository string, old map[string]string) {
	a.prod.T.Helper()
	if err := a.prod.Plane.Registry.Restore(a.prod.T.Context(), repository, old); err != nil {
		a.prod.T.Fatal(err)
	}
}

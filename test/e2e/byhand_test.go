// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// A user may pin a Rollout that comes from Git by hand, in a way that Flux does not
// overwrite.

func TestPinByHandOutlivesTheParentUnlessKubectlSignsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotation, manager string
		stays               bool
	}{
		"as kubectl patch signs by itself":        {manager: "kubectl-patch"},
		"under another name":                      {manager: "on-call", stays: true},
		"as kubectl does where Git asks for that": {annotation: "kustomize.toolkit.fluxcd.io/ssa: Merge", manager: "kubectl-patch", stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := ruled(t)
			p.appliesOnlyCommits()
			p.commit(p.rollout(c.annotation, 1))
			p.awaitRollout()
			p.Publish(p.ConfigRelease("1.0.0"))
			p.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
			p.pinAs(c.manager, "0.9.0")
			p.Await("promoted by the pin", func(r *v1alpha1.Rollout) bool {
				return slices.Contains(env.History(r), "2 0.9.0 Succeeded")
			})

			after := p.applied(c.annotation, 2)
			if pinned := after.Spec.WantedVersion != nil; pinned != c.stays {
				t.Errorf("the pin is there: %t, want %t", pinned, c.stays)
			}
			if !c.stays {
				p.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
			}
		})
	}
}

// appliesOnlyCommits keeps the parent from applying Git again by itself, which takes back a
// pin at any moment, also before its promotion.
func (p parent) appliesOnlyCommits() {
	p.T.Helper()
	fleet := p.fleet.Kustomization()
	p.Change(fleet, func() { fleet.Spec.Interval = metav1.Duration{Duration: time.Hour} })
}

// awaitRollout waits until the parent has created the Rollout.
func (p parent) awaitRollout() {
	p.T.Helper()
	env.Eventually(p.T, "the Rollout", func() (bool, string) {
		err := p.Plane.Client().Get(p.T.Context(), client.ObjectKeyFromObject(p.Rollout()), &v1alpha1.Rollout{})
		return err == nil, fmt.Sprint(err)
	})
}

// applied lets the parent reconcile: it changes the Rollout in Git, and returns the one in
// the cluster when the parent has applied it.
func (p parent) applied(annotation string, limit int) *v1alpha1.Rollout {
	p.T.Helper()
	p.commit(p.rollout(annotation, limit))
	return p.Await("what Git says", func(r *v1alpha1.Rollout) bool {
		return r.Spec.VersionHistoryLimit != nil && int(*r.Spec.VersionHistoryLimit) == limit
	})
}

// rollout returns the manifest of the Rollout shop in Git.
func (p parent) rollout(annotation string, limit int) string {
	if annotation != "" {
		annotation = "  annotations:\n    " + annotation + "\n"
	}
	return fmt.Sprintf(`apiVersion: kuberik.com/v1alpha1
kind: Rollout
metadata:
  name: shop
  namespace: %s
%sspec:
  versionHistoryLimit: %d
  releasesImagePolicy:
    name: shop
`, p.Namespace, annotation, limit)
}

// pinAs pins the version under the name of a field manager.
func (p parent) pinAs(manager, version string) {
	p.T.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"wantedVersion":%q}}`, version))
	if err := p.Plane.Client().Patch(p.T.Context(), p.Rollout(), patch, client.FieldOwner(manager)); err != nil {
		p.T.Fatal(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// environmentOf returns an Environment of a Rollout that comes after others of the
// namespace.
func environmentOf(rollout, name string, after ...string) *environmentsv1.Environment {
	e := &environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}}
	e.Spec.RolloutRef.Name, e.Spec.Name, e.Spec.Environment = rollout, "shop", name
	for _, upstream := range after {
		e.Spec.Upstreams = append(e.Spec.Upstreams, environmentsv1.Upstream{Environment: upstream, Rollout: upstream})
	}
	e.Status.ObservedGeneration = 1
	return e
}

func TestTreeShowsWhatEnvironmentsHaveAgainstTheNextRelease(t *testing.T) {
	const digest = "sha256:11"
	said := func(state v1alpha1.BakeStatus) *environmentsv1.Environment {
		e := environmentOf("staging", "staging")
		e.Status.Releases = []environmentsv1.Release{{Tag: "1.1.0", Digest: digest, State: state, Current: true}}
		return e
	}
	manual, first := environmentOf("shop", "prod", "staging"), environmentOf("shop", "prod")
	circle := environmentOf("shop", "prod", "prod")
	circle.Spec.Upstreams[0].Rollout = "shop"
	manual.Spec.Promotion = environmentsv1.PromoteManually
	type line struct {
		Sign tree.Sign
		Text string
	}
	for name, tt := range map[string]struct {
		environments []client.Object
		want         []line
	}{
		"none":      {nil, nil},
		"the first": {[]client.Object{first}, []line{{tree.Well, "comes after no other environment"}}},
		"proven":    {[]client.Object{environmentOf("shop", "prod", "staging"), said(v1alpha1.BakeSucceeded)}, []line{{tree.Well, "takes what is proven in staging"}}},
		"baking":    {[]client.Object{environmentOf("shop", "prod", "staging"), said(v1alpha1.BakeInProgress)}, []line{{tree.Waits, "waits for staging: it bakes there"}}},
		"failed":    {[]client.Object{environmentOf("shop", "prod", "staging"), said(v1alpha1.BakeFailed)}, []line{{tree.Failed, "1.1.0 failed in staging"}}},
		"left to users": {
			[]client.Object{manual, said(v1alpha1.BakeSucceeded)},
			[]line{{tree.Failed, "Environment prod leaves promotions to users: annotate the Rollout with rollout.kuberik.com/promote: 1.1.0"}},
		},
		"after itself": {
			[]client.Object{circle}, []line{{tree.Failed, "Environment prod comes after itself (prod after prod): remove one of these upstreams"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := running()
			rollout.Status.AvailableReleases = []v1alpha1.VersionInfo{fixture.MakeRelease("1.0.0").Obj(), fixture.MakeRelease("1.1.0").Digest(digest).Obj()}
			built := build(t, clusterOf(t, append(offer("1.0.0", "1.1.0"), tt.environments...)...), rollout, tree.Limits{})
			var got []line
			built.Root.Each(func(n *tree.Node) {
				if n.Object != nil && n.Object.Kind == environmentsv1.EnvironmentKind {
					got = append(got, line{n.Sign, n.Text})
				}
			})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

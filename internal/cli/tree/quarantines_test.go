// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// quarantineOf returns a quarantine of a tag that a user has made.
func quarantineOf(name, tag string) *v1alpha1.ReleaseQuarantine {
	q := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}}
	q.Spec.Image, q.Spec.Tags = "registry.example.com/shop", []string{tag}
	return q
}

func recallOf(name, tag string) *v1alpha1.ClusterReleaseQuarantine {
	q := &v1alpha1.ClusterReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.ReleaseQuarantineSpec = quarantineOf(name, tag).Spec
	q.Spec.Enforce, q.Spec.Reason = v1alpha1.EnforceAlways, "leaks memory"
	return q
}

func TestTreeShowsTheQuarantinesOfTheReleases(t *testing.T) {
	ends, lifted := quarantineOf("ends", "1.1.0"), quarantineOf("lifted", "1.1.0")
	ends.Spec.Until, lifted.Spec.Lifted = &metav1.Time{Time: fixture.Noon.Add(time.Hour)}, true
	for name, tt := range map[string]struct {
		quarantines []client.Object
		ignores     bool
		want        []string
	}{
		"none":                   {nil, false, nil},
		"of the next release":    {[]client.Object{quarantineOf("bad", "1.1.0")}, false, []string{"Failed ReleaseQuarantine/bad: holds 1.1.0"}},
		"that ends":              {[]client.Object{ends}, false, []string{"Waits ReleaseQuarantine/ends: holds 1.1.0 until 2026-03-02T13:00:00Z"}},
		"that is lifted":         {[]client.Object{lifted}, false, nil},
		"of another release":     {[]client.Object{quarantineOf("bad", "0.9.0")}, false, nil},
		"of the current release": {[]client.Object{quarantineOf("bad", "1.0.0")}, false, []string{"Waits ReleaseQuarantine/bad: 1.0.0, which runs, is in it"}},
		"that is not obeyed":     {[]client.Object{quarantineOf("bad", "1.1.0")}, true, []string{"Well ReleaseQuarantine/bad: does not hold 1.1.0"}},
		"that is always obeyed":  {[]client.Object{recallOf("recall", "1.1.0")}, true, []string{"Failed ClusterReleaseQuarantine/recall: holds 1.1.0: leaks memory"}},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := running()
			if tt.ignores {
				rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{Obey: new(false)}
			}
			built := build(t, clusterOf(t, append(offer("1.0.0", "1.1.0"), tt.quarantines...)...), rollout, tree.Limits{})
			var got []string
			built.Root.Each(func(n *tree.Node) {
				if n.Object != nil && strings.HasSuffix(n.Object.Kind, "Quarantine") {
					got = append(got, string(n.Sign)+" "+n.Object.String()+": "+n.Text)
				}
			})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

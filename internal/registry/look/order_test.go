// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestOldestWishComesFirst: if the candidates of a whole namespace appear at once, the
// looks are made in the order in which they were asked for.
func TestOldestWishComesFirst(t *testing.T) {
	g := NewWithT(t)
	var apps []application
	for i := range manyRollouts {
		apps = append(apps, application{key: types.NamespacedName{Namespace: fixture.Namespace, Name: fmt.Sprint("shop-", i)}})
	}
	p := openProduction(report.TrustedKeys{}, apps)
	defer p.queue.ShutDown()
	work := func() {
		u, _ := p.queue.Get()
		defer p.queue.Done(u)
		p.serve(t.Context(), u)
	}
	var looks, wanted []string
	p.pull = func(_ context.Context, place registry.Place, _ string) (registry.Stored, error) {
		looks = append(looks, place.Tag)
		if len(looks) == 1 { // lasts longest: all other looks are made meanwhile
			for p.queue.Len() > 0 {
				work()
			}
		}
		return registry.Stored{}, errAway
	}
	for _, a := range apps {
		p.Ask(a.key, []Wish{{Upstream: Upstream{a.key, "staging"}}})
		wanted = append(wanted, a.key.Name)
	}
	work()
	g.Expect(looks).To(Equal(wanted))
}

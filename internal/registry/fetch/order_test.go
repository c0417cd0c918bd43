// SPDX-License-Identifier: Apache-2.0

package fetch

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
// fetches are made in the order in which they were asked for.
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
	var fetches, wanted []string
	p.pull = func(_ context.Context, place registry.Place, _ string) (registry.Stored, error) {
		fetches = append(fetches, place.Tag)
		if len(fetches) == 1 { // lasts longest: all other fetches are made meanwhile
			for p.queue.Len() > 0 {
				work()
			}
		}
		return registry.Stored{}, errAway
	}
	for _, a := range apps {
		p.Ask(a.key, []Lookup{{Upstream: Upstream{a.key, "staging"}}})
		wanted = append(wanted, a.key.Name)
	}
	work()
	g.Expect(fetches).To(Equal(wanted))
}

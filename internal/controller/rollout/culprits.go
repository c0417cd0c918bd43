// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// culprits are the names of what blocks releases, by the reason of the condition that
// names them: the closed gates, and the HealthChecks that are Unhealthy. It is nil if
// nothing does, or if it is not known.
type culprits map[string]string

func culpritsOf(in promotion.Input) culprits {
	var gates, checks []string
	for i := range in.Gates.Gates {
		if gate := &in.Gates.Gates[i]; !gate.IsPassing() {
			gates = append(gates, gate.Name)
		}
	}
	for _, check := range promotion.Unhealthy(in.Health.Checks) {
		checks = append(checks, check.Namespace+"/"+check.Name)
	}
	if len(gates)+len(checks) == 0 {
		return nil
	}
	return culprits{
		v1alpha1.SomeGatesBlockingReason:     strings.Join(gates, " "),
		v1alpha1.UnhealthyHealthChecksReason: strings.Join(checks, " "),
	}
}

// differ reports whether the condition with a reason names others now.
func (c culprits) differ(now culprits, reason string) bool {
	return c != nil && now != nil && c[reason] != now[reason]
}

// knownCulprits remembers the culprits that the stored status of each Rollout names. After
// a restart it knows none, and a change that it has not seen is not announced.
type knownCulprits struct {
	mu  sync.Mutex
	all map[types.NamespacedName]culprits
}

// replace remembers the culprits that are stored now, and returns those before.
func (k *knownCulprits) replace(rollout types.NamespacedName, now culprits) (before culprits) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before = k.all[rollout]
	switch {
	case now == nil:
		delete(k.all, rollout)
	case k.all == nil:
		k.all = map[types.NamespacedName]culprits{rollout: now}
	default:
		k.all[rollout] = now
	}
	return before
}

func (k *knownCulprits) forget(rollout types.NamespacedName) { k.replace(rollout, nil) }

// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// Nothing is promoted on what cannot be verified or read, and it needs no one to go on
// afterwards. The test has a registry of its own, and production trusts keys of its own
// here: other tests go on meanwhile.
func TestProductionPromotesNothingOnReportsItCannotRead(t *testing.T) {
	registry, err := controlplane.OpenRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.GoAway() })
	a := newApplication(t, registry, "promotions/staging")
	a.deployStaging(time.Second)
	keys := scenario.TrustedKeys(a.prod.Namespace, map[string]scenario.KeyPair{stagingCluster: stagingKeys})
	a.prod.Create(keys)
	a.deployProduction(func(e *environmentsv1.Environment) {
		e.Spec.Backend.Verify = &environmentsv1.Verification{SecretRef: v1alpha1.LocalObjectReference{Name: keys.Name}}
	})
	a.publish("7.0.0")
	promoted(a.prod, "7.0.0")

	a.signsWithAnUnknownKey(t, keys)
	a.losesTheRegistry(t)
}

func (a *application) signsWithAnUnknownKey(t *testing.T, trusted *corev1.Secret) {
	t.Helper()
	next := newKeys(t)
	trustEverywhereElse(t, next)
	signing := stagingKeys.Secret(scenario.Namespace)
	a.staging.Change(signing, func() { signing.Data["identity.key"] = next.Private })

	a.publish("7.1.0")
	promoted(a.staging, "7.1.0")
	awaitReady(a.prod, "a report that cannot be verified", func(said string) bool {
		return strings.HasPrefix(said, "Ready=False "+environmentsv1.UpstreamNotTrustedReason)
	})
	held := a.prod.Await("a hold because of that", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.GatesPassingCondition), environmentsv1.UpstreamUnknownReason)
	})
	if got := env.History(held); len(got) != 1 {
		t.Errorf("production has the history %q", got)
	}
	a.prod.Change(trusted, func() { trusted.Data[stagingCluster+".second.pub"] = next.Public })
	promoted(a.prod, "7.1.0")
	awaitReady(a.prod, "an Environment that is ready again", isReady)
}

func newKeys(t *testing.T) scenario.KeyPair {
	t.Helper()
	keys, err := scenario.NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// trustEverywhereElse adds a key to those that production trusts by default.
func trustEverywhereElse(t *testing.T, keys scenario.KeyPair) {
	t.Helper()
	other := &env.Env{T: t, Plane: prodPlane}
	trusted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.Namespace, Name: scenario.TrustedKeysSecret}}
	other.Change(trusted, func() { trusted.Data[stagingCluster+".second.pub"] = keys.Public })
}

// isReady reports whether an Environment is ready.
func isReady(said string) bool { return strings.HasPrefix(said, "Ready=True ") }

// losesTheRegistry takes the registry away while staging bakes.
func (a *application) losesTheRegistry(t *testing.T) {
	t.Helper()
	a.staging.SetBakeTime(6 * time.Second)
	a.publishProductionFirst("7.2.0")
	a.staging.AwaitState("7.2.0", v1alpha1.BakeInProgress)
	if err := a.registry.GoAway(); err != nil {
		t.Fatal(err)
	}
	promoted(a.staging, "7.2.0")
	awaitReady(a.staging, "a report that cannot be stored", func(said string) bool {
		return strings.HasPrefix(said, "Ready=False "+environmentsv1.PublishFailedReason)
	})
	awaitReady(a.prod, "a report that cannot be read", func(said string) bool {
		return strings.HasPrefix(said, "Ready=False "+environmentsv1.UpstreamUnreadableReason)
	})
	if got := env.History(a.prod.Live()); len(got) != 2 {
		t.Errorf("production has the history %q", got)
	}
	if err := a.registry.ComeBack(); err != nil {
		t.Fatal(err)
	}
	promoted(a.prod, "7.2.0")
	for _, e := range []*env.Env{a.staging, a.prod} {
		awaitReady(e, "an Environment that is ready again", isReady)
	}
}

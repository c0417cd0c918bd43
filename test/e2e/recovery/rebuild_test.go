// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// isGone deletes all objects of an environment, with what Flux has applied.
func isGone(e *env.Env, others ...client.Object) {
	e.T.Helper()
	all := append(others, e.Rollout(), e.Environment(""), e.HealthCheck(), mirror(e))
	all = append(all, flux(e)...)
	loses(e, all...)
	env.Eventually(e.T, "the end of all objects, some of which have finalizers", func() (bool, string) {
		for _, o := range all {
			if err := plane.Client().Get(e.T.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return false, fmt.Sprintf("%T %s: %v", o, o.GetName(), err)
			}
			o.SetResourceVersion("")
		}
		return true, ""
	})
}

func TestProductionIsRebuiltFromGit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gate func(*application) *v1alpha1.RolloutGate
		want string
	}{
		"past a closed gate, with the newest release that staging has proven": {
			gate: func(a *application) *v1alpha1.RolloutGate { return a.gate(false) },
			want: "1.1.0",
		},
		"with the release that a gate names": {
			gate: func(a *application) *v1alpha1.RolloutGate { return a.gate(true, "1.0.0") },
			want: "1.0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApplication(t)
			a.bakesInStaging("1.2.0")
			isGone(a.prod, a.gate(false))
			a.prod.Create(tt.gate(a))
			a.deployProduction()
			a.prod.AwaitState(tt.want, v1alpha1.BakeSucceeded)
			a.staysAt(tt.want)
		})
	}
	t.Run("and waits for a person with firstRelease Applied", func(t *testing.T) {
		t.Parallel()
		a := newApplication(t)
		a.bakesInStaging("1.2.0")
		isGone(a.prod, a.gate(false))
		a.deployProduction(func(spec *v1alpha1.RolloutSpec) { spec.FirstRelease = v1alpha1.FirstReleaseApplied })
		a.page().does("Production is rebuilt from Git")
		a.prod.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	})
}

// bakesInStaging publishes a release that staging does not prove before the test ends.
func (a *application) bakesInStaging(version string) {
	a.staging.T.Helper()
	a.staging.SetBakeTime(long)
	a.publish(version)
	a.staging.AwaitState(version, v1alpha1.BakeInProgress)
	a.prod.AwaitCandidate(version)
}

// Staging takes the newest release again, which it had found bad. Production takes nothing
// that the new staging has not proven.
func TestStagingIsRebuiltFromGit(t *testing.T) {
	t.Parallel()
	a := newApplication(t)
	a.losesStaging("1.2.0")
	a.deployStaging()
	a.staging.SetDeployTimeout(soon)
	a.staging.AwaitState("1.2.0", v1alpha1.BakeFailed)
	a.staysAt("1.0.0")
	a.page().does("Staging is rebuilt from Git")
	a.staging.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}

func TestQuarantineThatIsRestoredHoldsInARebuiltStaging(t *testing.T) {
	t.Parallel()
	a := newApplication(t)
	a.losesStaging("1.2.0")
	quarantine := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Namespace: a.staging.Namespace, Name: "bad"}}
	quarantine.Spec.Image, quarantine.Spec.Tags = plane.Registry.Host()+"/"+a.staging.Repository, []string{"1.2.0"}
	a.staging.Create(quarantine)
	a.deployStaging()
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	if got := env.History(a.staging.Live()); !slices.Equal(got, []string{"1 1.1.0 Succeeded"}) {
		t.Errorf("staging has the history %q", got)
	}
}

// soon is how long staging waits for a release that cannot be applied.
const soon = 4 * time.Second

// losesStaging lets a release fail in staging, deletes all of staging, and opens the gate of
// production, which holds everything.
func (a *application) losesStaging(bad string) {
	a.staging.T.Helper()
	a.staging.SetDeployTimeout(soon)
	a.staging.Publish(a.staging.BrokenRelease(bad))
	a.prod.Scan()
	a.staging.AwaitState(bad, v1alpha1.BakeFailed)
	isGone(a.staging)
	a.opens()
	a.holds("UpstreamUnknown")
	a.staysAt("1.0.0")
}

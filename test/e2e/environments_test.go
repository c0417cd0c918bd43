// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// soak is how long a release must have been healthy in staging, its bake included.
const soak = 6 * time.Second

// newEnvironments returns an application in two namespaces: production takes what staging
// has proven.
func newEnvironments(t *testing.T) (staging, prod *env.Env) {
	t.Helper()
	staging = newEnv(t)
	other := *staging
	prod = &other
	prod.Namespace += "-prod"
	staging.CreateFlux()
	first := staging.Environment("staging")
	first.Spec.AccessFrom = &v1alpha1.AccessFrom{NamespaceSelectors: []v1alpha1.NamespaceSelector{{
		MatchLabels: map[string]string{corev1.LabelMetadataName: prod.Namespace}}}}
	staging.Create(first, staging.HealthCheck(), staging.Rollout(staging.Baked(3*time.Second, time.Minute)))

	prod.Create(prod.NamespaceObject())
	prod.Create(prod.Environment("prod", environmentsv1.Upstream{
		Environment: "staging", Namespace: staging.Namespace, SoakTime: &metav1.Duration{Duration: soak}}))
	return staging, prod
}

// deployProduction creates the objects of production but its namespace and Environment.
func deployProduction(prod *env.Env, change func(client.Object)) {
	for _, o := range prod.Flux(plane.Registry.Host())[1:] {
		change(o)
		prod.Create(o)
	}
	prod.Create(prod.Rollout())
}

// publish pushes a release, which both environments find.
func publish(staging, prod *env.Env, release controlplane.Artifact) {
	staging.Publish(release)
	prod.Scan()
}

func TestProductionTakesWhatStagingHasProven(t *testing.T) {
	staging, prod := newEnvironments(t)
	if err := plane.BreakVersion(t.Context(), "5.1.0"); err != nil {
		t.Fatal(err)
	}
	deployProduction(prod, func(client.Object) {})
	staging.Push(staging.Release("5.0.0"))
	prod.Scan()
	held := prod.Await("a hold until staging has proven it", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.GatesPassingCondition), "5.0.0: waits for staging")
	})
	if held.Current() != nil {
		t.Errorf("production has promoted %s", held.Current().Version.Tag)
	}
	staging.Scan()
	proven := staging.AwaitState("5.0.0", v1alpha1.BakeSucceeded).Current()
	promoted := prod.AwaitState("5.0.0", v1alpha1.BakeSucceeded).Current()
	if after := promoted.Timestamp.Sub(proven.BakeStartTime.Time); after < soak {
		t.Errorf("production took it after %s of health", after)
	}

	publish(staging, prod, staging.GivesUpSoon().Release("5.1.0"))
	staging.AwaitState("5.1.0", v1alpha1.BakeFailed)
	prod.Await("a hold because it has failed in staging", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.GatesPassingCondition), "UpstreamFailed: 5.1.0: 5.1.0 failed in staging: ")
	})

	publish(staging, prod, staging.Release("5.1.1"))
	prod.AwaitCandidate("5.1.1")
	prod.Ask(v1alpha1.BypassGatesAnnotation, "5.1.1")
	prod.Await("a demand for the reason", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.RequestAcceptedCondition), environmentsv1.BypassNeedsReasonReason)
	})
	prod.Ask(v1alpha1.DeployMessageAnnotation, "INC-4711")
	prod.Ask(v1alpha1.BypassGatesAnnotation, "5.1.1") // the first one has ended
	fixed := prod.AwaitState("5.1.1", v1alpha1.BakeSucceeded)
	if message := *fixed.Current().Message; !strings.Contains(message, "INC-4711") {
		t.Errorf("the history says %q, without the reason", message)
	}

	staging.Pin("5.1.1")
	staging.AwaitState("5.1.1", v1alpha1.BakeSucceeded)
	staging.Pin("5.0.0")
	withdrawn := prod.Await("the news that staging went back", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, environmentsv1.UpstreamWithdrewCondition), "UpstreamWithdrew: 5.1.1 no longer counts in staging, which went back to 5.0.0")
	})
	if len(withdrawn.Status.History) != 2 {
		t.Errorf("it has the history %q: nothing may be deployed by that", env.History(withdrawn))
	}
	if told := prod.AwaitEvents(withdrawn, environmentsv1.UpstreamWithdrewReason); len(told) != 1 {
		t.Errorf("production was told %q, want one event", told)
	}
}

// In hub and spoke, all objects of Flux and of this API are in the hub, and Flux applies
// the releases of production in another cluster.
func TestProductionInAnotherClusterTakesWhatStagingHasProven(t *testing.T) {
	spoke, err := controlplane.Start(t.Context(), controlplane.Options{LogDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := spoke.Stop(); err != nil {
			t.Error(err)
		}
	})
	staging, prod := newEnvironments(t)
	if err := spoke.Client().Create(t.Context(), prod.NamespaceObject()); err != nil {
		t.Fatal(err)
	}
	access, err := os.ReadFile(spoke.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	prod.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: prod.Namespace, Name: "spoke"}, Data: map[string][]byte{"value": access}})
	deployProduction(prod, func(o client.Object) {
		if k, ok := o.(*kustomizev1.Kustomization); ok {
			k.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: "spoke"}}
		}
	})
	staging.Push(staging.ConfigRelease("5.0.0"))
	prod.Scan()
	prod.Await("a hold until staging has proven it", func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.GatesPassingCondition), "5.0.0: waits for staging")
	})
	staging.Scan()
	prod.AwaitState("5.0.0", v1alpha1.BakeSucceeded)
	deployed := &corev1.ConfigMap{}
	if err := spoke.Client().Get(t.Context(), client.ObjectKey{Namespace: prod.Namespace, Name: prod.Name}, deployed); err != nil {
		t.Fatal(fmt.Errorf("it is not in the other cluster: %w", err))
	}
	if got := deployed.Data["version"]; got != "5.0.0" {
		t.Errorf("the other cluster has %s", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// helmShop is a shop whose HealthCheck is about the HelmRelease web, which has applied the
// Deployment web.
type helmShop struct {
	*shop
	release *helmv2.HelmRelease
}

func openHelmShop(t *testing.T, annotations map[string]string) *helmShop {
	t.Helper()
	s := &helmShop{shop: &shop{Env: env.Open(t, testClient, env.Kinds()...), requests: &fixture.Requests{}}}
	s.createDeployment(kustomization.OfHelmRelease(s.Key("web")))
	s.release = fixture.MakeHelmRelease("web").InNamespace(s.Namespace).Obj()
	s.release.ResourceVersion, s.release.Generation = "", 0
	s.Expect(s.Create(s.Ctx, s.release)).To(Succeed())
	s.helm(metav1.ConditionTrue, helmv2.InstallSucceededReason)
	s.createCheck(annotations)
	delete(s.check.Annotations, v1alpha1.KustomizationAnnotation)
	s.check.Annotations[v1alpha1.HelmReleaseAnnotation] = "web"
	s.Expect(s.Update(s.Ctx, s.check)).To(Succeed())
	s.Run(t, s.newController(testPlane.RESTConfig()))
	return s
}

// helm acts as helm-controller.
func (s *helmShop) helm(ready metav1.ConditionStatus, reason string) {
	s.Eventually(func() error {
		if err := s.Get(s.Ctx, client.ObjectKeyFromObject(s.release), s.release); err != nil {
			return err
		}
		s.release.Status.ObservedGeneration = s.release.Generation
		s.release.Status.Inventory = &helmv2.ResourceInventory{Entries: []helmv2.ResourceRef{
			{ID: s.Namespace + "_web_apps_Deployment", Version: "v1"}, {ID: s.Namespace + "_key__Secret", Version: "v1"},
		}}
		apimeta.SetStatusCondition(&s.release.Status.Conditions, metav1.Condition{
			Type: meta.ReadyCondition, Status: ready, Reason: reason, ObservedGeneration: s.release.Generation,
		})
		return s.Status().Update(s.Ctx, s.release)
	}).Should(Succeed())
}

func TestCheckFollowsItsHelmReleaseAndItsObjects(t *testing.T) {
	s := openHelmShop(t, nil)
	s.Expect(s.reconciler.WatchHelmReleases(s.Ctx)).To(Succeed())
	s.deploy(0)
	s.Eventually(s.status).Should(Equal(pending))
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))

	s.helm(metav1.ConditionUnknown, meta.ProgressingReason)
	s.Eventually(s.status).Should(Equal(pending))
	s.helm(metav1.ConditionTrue, helmv2.UpgradeSucceededReason)
	s.Eventually(s.status).Should(Equal(healthy))

	s.Expect(s.Delete(s.Ctx, s.release)).To(Succeed())
	s.Eventually(s.status).Should(Equal(unhealthy))
	s.Expect(s.requests.Count("/secrets")).To(BeZero())
}

// Not every cluster serves HelmReleases. Until they are watched, only their objects report
// changes.
func TestHelmReleaseThatIsNotWatchedIsLookedAtInIntervals(t *testing.T) {
	s := openHelmShop(t, map[string]string{v1alpha1.RequeueIntervalAnnotation: "5s"})
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))
	time.Sleep(6 * time.Second) // a newly watched kind causes one more evaluation
	s.helm(metav1.ConditionUnknown, meta.ProgressingReason)
	s.Eventually(s.status, 10*time.Second).Should(Equal(pending))
}

// The check is about something else from one moment to the next.
func TestCheckThatGetsAnotherSubjectFollowsIt(t *testing.T) {
	s := openShop(t, testPlane.RESTConfig(), nil)
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))
	before := s.check.DeepCopy()
	delete(s.check.Annotations, v1alpha1.KustomizationAnnotation)
	s.check.Annotations[v1alpha1.HelmReleaseAnnotation] = "web"
	s.Expect(s.Patch(s.Ctx, s.check, client.MergeFrom(before))).To(Succeed())
	s.Eventually(s.status).Should(Equal(unhealthy))
	s.Expect(*s.check.Status.Message).To(HavePrefix("HelmRelease " + s.Namespace + "/web does not exist"))
}

// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// shop is a namespace with a HealthCheck for the Kustomization web, which has applied the
// Deployment web.
type shop struct {
	*env.Env

	reconciler    *Reconciler
	requests      *fixture.Requests
	kustomization *kustomizev1.Kustomization
	deployment    *appsv1.Deployment
	check         *v1alpha1.HealthCheck
}

// openShop creates the shop and runs the controller for it as the given user.
func openShop(t *testing.T, user *rest.Config, annotations map[string]string) *shop {
	t.Helper()
	s := &shop{Env: env.Open(t, testClient, env.Kinds()...), requests: &fixture.Requests{}}
	s.createKustomization()
	s.createDeployment(kustomization.Of(s.Key("web")))
	s.createCheck(annotations)
	s.Run(t, s.newController(user))
	return s
}

func (s *shop) createKustomization() {
	s.kustomization = &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "web"},
		Spec: kustomizev1.KustomizationSpec{
			Interval:  metav1.Duration{Duration: time.Hour},
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "web"},
		},
	}
	s.Expect(s.Create(s.Ctx, s.kustomization)).To(Succeed())
	s.flux(func(k *kustomizev1.Kustomization) {
		k.Status.ObservedGeneration = k.Generation
		k.Status.LastAppliedRevision, k.Status.LastAttemptedRevision = "1", "1"
		k.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{
			{ID: s.Namespace + "_web_apps_Deployment", Version: "v1"},
			{ID: s.Namespace + "_key__Secret", Version: "v1"},
		}}
		sayReady(k, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: 1")
	})
}

// flux acts as Flux: it changes the Kustomization's status.
func (s *shop) flux(change func(*kustomizev1.Kustomization)) {
	s.Eventually(func() error {
		if err := s.Get(s.Ctx, client.ObjectKeyFromObject(s.kustomization), s.kustomization); err != nil {
			return err
		}
		change(s.kustomization)
		return s.Status().Update(s.Ctx, s.kustomization)
	}).Should(Succeed())
}

func sayReady(k *kustomizev1.Kustomization, is metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{
		Type: meta.ReadyCondition, Status: is, Reason: reason, Message: message, ObservedGeneration: k.Generation,
	})
	apimeta.RemoveStatusCondition(&k.Status.Conditions, meta.ReconcilingCondition)
	if is == metav1.ConditionUnknown {
		apimeta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{
			Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: reason, Message: "Building manifests",
		})
	}
}

// createDeployment creates the Deployment as applied by a subject.
func (s *shop) createDeployment(by kustomization.Subject) {
	labels := map[string]string{"app": "web"}
	s.deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "web", Labels: by.Labels()},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
	s.Expect(s.Create(s.Ctx, s.deployment)).To(Succeed())
}

var (
	available = appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}
	rolledOut = appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable",
	}
)

// deploy acts as the Deployment's controller.
func (s *shop) deploy(ready int32) { s.deployWith(ready, rolledOut) }

func (s *shop) deployWith(ready int32, progressing appsv1.DeploymentCondition) {
	s.Eventually(func() error {
		if err := s.Get(s.Ctx, client.ObjectKeyFromObject(s.deployment), s.deployment); err != nil {
			return err
		}
		s.deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: s.deployment.Generation, Replicas: 1, UpdatedReplicas: 1,
			ReadyReplicas: ready, AvailableReplicas: ready,
			Conditions: []appsv1.DeploymentCondition{progressing, available},
		}
		return s.Status().Update(s.Ctx, s.deployment)
	}).Should(Succeed())
}

func (s *shop) createCheck(annotations map[string]string) {
	class := v1alpha1.HealthCheckClassKustomization
	s.check = &v1alpha1.HealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "web", Annotations: map[string]string{
			v1alpha1.KustomizationAnnotation: "web",
		}},
		Spec: v1alpha1.HealthCheckSpec{Class: &class},
	}
	for key, value := range annotations {
		s.check.Annotations[key] = value
	}
	s.Expect(s.Create(s.Ctx, s.check)).To(Succeed())
}

// reset acts as the controller of Rollouts.
func (s *shop) reset() {
	message := "reset"
	s.Eventually(func() error {
		if err := s.Get(s.Ctx, client.ObjectKeyFromObject(s.check), s.check); err != nil {
			return err
		}
		s.check.Status = v1alpha1.HealthCheckStatus{
			Status: v1alpha1.HealthStatusPending, Message: &message, LastChangeTime: &metav1.Time{Time: time.Now()},
		}
		return s.Status().Update(s.Ctx, s.check)
	}).Should(Succeed())
}

func (s *shop) status() v1alpha1.HealthStatus {
	s.read()
	return s.check.Status.Status
}

func (s *shop) version() string {
	s.read()
	return s.check.ResourceVersion
}

func (s *shop) read() {
	s.Expect(s.Get(s.Ctx, client.ObjectKeyFromObject(s.check), s.check)).To(Succeed())
}

// newController returns a manager that runs the controller as the given user.
func (s *shop) newController(user *rest.Config) ctrl.Manager {
	user = rest.CopyConfig(user)
	user.Wrap(s.requests.Wrap)
	caches := cache.Options(cache.Setting{})
	mgr := s.NewManager(user, env.Scheme(), caches)
	s.reconciler = &Reconciler{Client: mgr.GetClient(), Objects: s.Live(mgr, caches).Objects, Now: time.Now}
	s.Expect(s.reconciler.SetupWithManager(s.Ctx, mgr, Options{MaxRetryDelay: time.Minute})).To(Succeed())
	return mgr
}

// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/env"
)

const (
	healthy   = v1alpha1.HealthStatusHealthy
	unhealthy = v1alpha1.HealthStatusUnhealthy
	pending   = v1alpha1.HealthStatusPending
)

func TestCheckFollowsTheObjectsOfItsKustomization(t *testing.T) {
	s := openShop(t, testPlane.RESTConfig(), nil)
	s.deploy(0)
	s.Eventually(s.status).Should(Equal(pending))

	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))
	s.Expect(s.check.Status.LastErrorTime).To(BeNil())

	failedAt := metav1.Time{Time: time.Now().Add(-time.Minute).Truncate(time.Second)}
	s.deployWith(1, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
		Reason: "ProgressDeadlineExceeded", LastTransitionTime: failedAt,
	})
	s.Eventually(s.status).Should(Equal(unhealthy))
	s.Expect(s.check.Status.LastErrorTime.Time).To(BeTemporally("==", failedAt.Time))
	s.Expect(*s.check.Status.Message).To(HavePrefix("Failed: Deployment " + s.check.Namespace + "/web: "))

	s.Expect(s.Delete(s.Ctx, s.deployment)).To(Succeed())
	s.Eventually(s.status).Should(Equal(healthy), "an object that does not exist is skipped")
	s.Expect(s.check.Status.LastErrorTime.Time).To(BeTemporally("==", failedAt.Time))
	s.Expect(s.requests.Count("/secrets")).To(BeZero())
}

func TestCheckFollowsItsKustomization(t *testing.T) {
	s := openShop(t, testPlane.RESTConfig(), nil)
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))

	s.flux(func(k *kustomizev1.Kustomization) {
		k.Status.LastAttemptedRevision = "2"
		sayReady(k, metav1.ConditionUnknown, meta.ProgressingReason, "Reconciliation in progress")
	})
	s.Eventually(s.status).Should(Equal(pending))

	s.flux(func(k *kustomizev1.Kustomization) {
		k.Status.LastAppliedRevision = "2"
		sayReady(k, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: 2")
	})
	s.Eventually(s.status).Should(Equal(healthy))

	s.Expect(s.Delete(s.Ctx, s.kustomization)).To(Succeed())
	s.Eventually(s.status).Should(Equal(unhealthy))
	s.Expect(s.check.Status.LastErrorTime).NotTo(BeNil())
}

func TestCheckThatWasResetIsEvaluatedAgainAtOnce(t *testing.T) {
	s := openShop(t, testPlane.RESTConfig(), nil)
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))
	s.reset()
	s.Eventually(s.status).Should(Equal(healthy))
}

func TestIdlePassOfFluxWritesNothing(t *testing.T) {
	s := openShop(t, testPlane.RESTConfig(), nil)
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))
	before := s.version()
	for range 2 {
		s.flux(func(k *kustomizev1.Kustomization) {
			sayReady(k, metav1.ConditionUnknown, meta.ProgressingReason, "Reconciliation in progress")
		})
		s.Consistently(s.version, "1500ms", "100ms").Should(Equal(before))
		s.flux(func(k *kustomizev1.Kustomization) {
			sayReady(k, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: 1")
		})
		s.Consistently(s.version, "1500ms", "100ms").Should(Equal(before))
	}
}

func TestAtRestNothingIsAsked(t *testing.T) {
	for name, ready := range map[string]int32{"with a healthy check": 1, "with a pending check": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, testPlane.RESTConfig(), map[string]string{v1alpha1.RequeueIntervalAnnotation: "5s"})
			s.deploy(ready)
			s.Eventually(s.status).Should(Equal(map[int32]v1alpha1.HealthStatus{1: healthy, 0: pending}[ready]))
			time.Sleep(6 * time.Second) // a newly watched kind causes one more evaluation
			before := s.requests.Count("")
			s.Consistently(func() int { return s.requests.Count("") }, "6s", "200ms").Should(Equal(before))
		})
	}
}

func TestManyChangesWithinAMomentAreOneEvaluation(t *testing.T) {
	s := openShop(t, testPlane.RESTConfig(), nil)
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))
	time.Sleep(1500 * time.Millisecond)
	evaluations := func() int { return s.requests.Count("GET /apis/apps/v1/namespaces/" + s.check.Namespace) }
	before, began := evaluations(), time.Now()
	for i := range 40 {
		change := client.MergeFrom(s.deployment.DeepCopy())
		metav1.SetMetaDataAnnotation(&s.deployment.ObjectMeta, "change", fmt.Sprint(i))
		s.Expect(s.Patch(s.Ctx, s.deployment, change)).To(Succeed())
	}
	time.Sleep(1500 * time.Millisecond)
	seconds := int(time.Since(began).Seconds())
	// One evaluation at once, and one for each second that has begun.
	s.Expect(evaluations() - before).To(And(BeNumerically(">=", 1), BeNumerically("<=", seconds+2)))
}

func TestCheckOfAnotherClassIsNeverTouched(t *testing.T) {
	s := openShop(t, testPlane.RESTConfig(), nil)
	other := "prometheus-alert"
	for name, class := range map[string]*string{"none": nil, "other": &other} {
		check := &v1alpha1.HealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: s.check.Namespace, Name: name}}
		check.Spec.Class = class
		s.Expect(s.Create(s.Ctx, check)).To(Succeed())
		s.Consistently(func() v1alpha1.HealthCheckStatus {
			s.Expect(s.Get(s.Ctx, client.ObjectKeyFromObject(check), check)).To(Succeed())
			return check.Status
		}, "500ms").Should(BeZero())
	}
}

func TestKindThatMayBeReadAndNotWatchedIsLookedAtInIntervals(t *testing.T) {
	g := NewWithT(t)
	grant(t, "getter", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}})
	user, err := testPlane.RESTConfigFor("getter")
	g.Expect(err).NotTo(HaveOccurred())
	s := openShop(t, user, map[string]string{v1alpha1.RequeueIntervalAnnotation: "1s"})
	s.deploy(0)
	s.Eventually(s.status).Should(Equal(pending))
	time.Sleep(2 * time.Second)
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy), "the least interval is 5 seconds")
}

func TestKindThatMayNotBeReadIsPendingAndNamed(t *testing.T) {
	g := NewWithT(t)
	grant(t, "stranger")
	user, err := testPlane.RESTConfigFor("stranger")
	g.Expect(err).NotTo(HaveOccurred())
	s := openShop(t, user, nil)
	s.Eventually(s.status).Should(Equal(pending))
	s.Expect(*s.check.Status.Message).To(ContainSubstring("let its role get, list and watch deployments.apps"))
	s.Expect(s.requests.Count("labelSelector")).To(BeZero(), "what may not be read is not watched")

	grant(t, "stranger", rbacv1.PolicyRule{
		APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch"},
	})
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))
}

// grant lets a user do what the controller needs in any case, and the given rules.
func grant(t *testing.T, user string, more ...rbacv1.PolicyRule) {
	t.Helper()
	g, ctx := NewWithT(t), context.Background()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: user + "-"},
		Rules: append(more,
			rbacv1.PolicyRule{APIGroups: []string{"kuberik.com"}, Resources: []string{"healthchecks", "healthchecks/status"},
				Verbs: []string{"get", "list", "watch", "patch"}},
			rbacv1.PolicyRule{APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations"},
				Verbs: []string{"get", "list", "watch"}}),
	}
	g.Expect(testClient.Create(ctx, role)).To(Succeed())
	g.Expect(testClient.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}

// scripted is a Checker that returns given results. The annotation of a HealthCheck is
// its subject.
type scripted func(kustomization string) health.Result

func (scripted) Subject(check *v1alpha1.HealthCheck) (kustomization.Subject, *health.Result) {
	return kustomization.Of(types.NamespacedName{Namespace: check.Namespace, Name: check.Annotations[v1alpha1.KustomizationAnnotation]}), nil
}

func (s scripted) Look(_ context.Context, subject kustomization.Subject) health.Finding {
	return health.ForAll(s(subject.Name))
}

func TestResetDuringAnEvaluationIsNotOverwritten(t *testing.T) {
	s := &shop{Env: env.Open(t, testClient, env.Kinds()...)}
	s.createCheck(nil)
	resets := 0
	r := &Reconciler{
		Client: testClient, Now: time.Now, watches: &kindWatches{}, retries: newRetries(time.Minute),
		checker: scripted(func(string) health.Result {
			if resets++; resets == 1 {
				s.reset()
			}
			return health.Healthy("fine")
		}),
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.check)}

	result, err := r.Reconcile(s.Ctx, request)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(result.RequeueAfter).To(Equal(recheck.AfterConflict))
	s.Expect(s.status()).To(Equal(pending))

	result, err = r.Reconcile(s.Ctx, request)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(result).To(Equal(ctrl.Result{}))
	s.Expect(s.status()).To(Equal(healthy))
}

func TestReadThatFailsIsRepeatedWithPatience(t *testing.T) {
	s := &shop{Env: env.Open(t, testClient, env.Kinds()...)}
	s.createCheck(nil)
	answer := health.Pending("unreadable")
	answer.Err = errors.New("unreadable")
	now := time.Now()
	r := &Reconciler{
		Client: testClient, Now: func() time.Time { return now }, watches: &kindWatches{}, retries: newRetries(5 * time.Second),
		checker: scripted(func(string) health.Result { return answer }),
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.check)}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		result, err := r.Reconcile(s.Ctx, request)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(result.RequeueAfter).To(Equal(want))
		now = now.Add(want)
	}
	answer = health.Healthy("fine")
	result, err := r.Reconcile(s.Ctx, request)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(result).To(Equal(ctrl.Result{}))
}

func TestCheckThatIsAskedForIsEvaluatedAndSaysSo(t *testing.T) {
	s := openShop(t, testPlane.RESTConfig(), nil)
	s.deploy(1)
	s.Eventually(s.status).Should(Equal(healthy))
	before := s.check.DeepCopy()
	s.check.Annotations[v1alpha1.ReconcileRequestAnnotation] = "token"
	s.Expect(s.Patch(s.Ctx, s.check, client.MergeFrom(before))).To(Succeed())
	s.Eventually(func() string { s.read(); return s.check.Status.LastHandledReconcileAt }).Should(Equal("token"))
	version := s.version()
	s.Consistently(s.version, time.Second).Should(Equal(version), "once")
}

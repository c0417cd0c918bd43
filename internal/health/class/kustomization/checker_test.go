// SPDX-License-Identifier: Apache-2.0

package kustomization_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

var (
	oldTime = time.Date(2026, 7, 6, 10, 0, 0, 0, time.UTC)
	newTime = time.Date(2026, 7, 6, 11, 0, 0, 0, time.UTC)
)

func condition(kind string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: oldTime}}
}

var ready = condition(meta.ReadyCondition, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: 1")

// inPass are the conditions that Flux sets while it reconciles again.
var inPass = []metav1.Condition{
	condition(meta.ReadyCondition, metav1.ConditionUnknown, meta.ProgressingReason, "Reconciliation in progress"),
	condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, "Building manifests"),
}

// source returns the Kustomization shop/web, applied at revision 1.
func source(conditions []metav1.Condition, ids ...string) *kustomizev1.Kustomization {
	k := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1},
		Status: kustomizev1.KustomizationStatus{
			ObservedGeneration: 1, LastAppliedRevision: "1", LastAttemptedRevision: "1", Conditions: conditions,
			Inventory: &kustomizev1.ResourceInventory{},
		},
	}
	for _, id := range ids {
		k.Status.Inventory.Entries = append(k.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: id, Version: "v1"})
	}
	return k
}

func with(k *kustomizev1.Kustomization, change func(*kustomizev1.Kustomization)) *kustomizev1.Kustomization {
	change(k)
	return k
}

var ownerName, ownerNamespace = kustomization.OwnerLabels(kustomizev1.KustomizationKind)

// ofWeb returns the labels that Flux sets on the objects of the Kustomization shop/web.
func ofWeb() map[string]string {
	return map[string]string{ownerName: "web", ownerNamespace: "shop"}
}

func deployment(name string, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
	one := int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1, Labels: ofWeb()},
		Spec:       appsv1.DeploymentSpec{Replicas: &one},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: append(conditions, appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}),
		},
	}
}

func rolling(name string) *appsv1.Deployment {
	d := deployment(name)
	d.Status.UpdatedReplicas = 0
	return d
}

func failed(name string, at time.Time) *appsv1.Deployment {
	return deployment(name, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
		Reason: "ProgressDeadlineExceeded", Message: `ReplicaSet "` + name + `-1" has timed out progressing.`, LastTransitionTime: metav1.Time{Time: at},
	})
}

// held returns a Deployment that its coordination keeps from rolling out.
func held(name string) *appsv1.Deployment {
	d := rolling(name)
	d.Spec.Paused = true
	d.Annotations = map[string]string{coordinationv1.HeldByAnnotation: "shop"}
	return d
}

// zone returns a StatefulSet whose pods are replaced by deleting them.
func zone(name string, updated int32) *appsv1.StatefulSet {
	three := int32(3)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1, Labels: ofWeb()},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &three, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: updated, ReadyReplicas: 3, AvailableReplicas: 3,
		},
	}
}

func doomed(name string) *appsv1.Deployment {
	d := deployment(name)
	d.Finalizers = []string{"example.com/keep"}
	d.DeletionTimestamp = &metav1.Time{Time: oldTime}
	return d
}

const (
	webID  = "shop_web_apps_Deployment"
	zoneID = "shop_zone-a_apps_StatefulSet"
	apiID  = "shop_api_apps_Deployment"
)

var (
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clientgoscheme.AddToScheme(s)).To(Succeed())
	g.Expect(kustomizev1.AddToScheme(s)).To(Succeed())
	g.Expect(helmv2.AddToScheme(s)).To(Succeed())
	return s
}

func mapper() apimeta.RESTMapper {
	m := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion, corev1.SchemeGroupVersion})
	for _, gvk := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
	} {
		m.Add(gvk, apimeta.RESTScopeNamespace)
	}
	return m
}

// stored reads objects with a client.
type stored struct{ client.Reader }

func (s stored) Get(ctx context.Context, kind *apimeta.RESTMapping, key types.NamespacedName, do func(json.RawMessage) error) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	if err := s.Reader.Get(ctx, key, object); err != nil {
		return err
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return do(raw)
}

func (s stored) Select(ctx context.Context, kind *apimeta.RESTMapping, namespace string, selector labels.Selector, _ int64, do func(json.RawMessage) error) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersionKind.GroupVersion().WithKind(kind.GroupVersionKind.Kind + "List"))
	if err := s.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return err
	}
	for i := range list.Items {
		raw, err := json.Marshal(&list.Items[i])
		if err != nil {
			return err
		}
		if err := do(raw); err != nil {
			return err
		}
	}
	return nil
}

func check(t *testing.T, hc *v1alpha1.HealthCheck, hooks interceptor.Funcs, objects ...client.Object) health.Result {
	t.Helper()
	reader := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).WithInterceptorFuncs(hooks).Build()
	return evaluate(&kustomization.Checker{Objects: stored{reader}, Mapper: mapper(), Now: time.Now}, hc)
}

// evaluate evaluates one HealthCheck with a checker.
func evaluate(checker *kustomization.Checker, hc *v1alpha1.HealthCheck) health.Result {
	subject, verdict := checker.Subject(hc)
	if verdict != nil {
		return *verdict
	}
	return checker.Look(context.Background(), subject).For(hc.Status.Status)
}

func TestHealthOfAKustomizationAndItsInventory(t *testing.T) {
	const healthyMessage = "Kustomization shop/web is applied, and nothing of it is failed or in progress"
	applied := []metav1.Condition{ready}
	for name, tc := range map[string]struct {
		was     v1alpha1.HealthStatus
		objects []client.Object
		want    health.Result
		kinds   []schema.GroupVersionResource
	}{
		"healthy when everything is current": {
			objects: []client.Object{source(applied, webID, apiID), deployment("web"), deployment("api")},
			want:    health.Healthy(healthyMessage),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"healthy with nothing but kinds without health, which are not read": {
			objects: []client.Object{source(applied, "shop_key__Secret", "shop_web__ConfigMap")},
			want:    health.Healthy(healthyMessage),
		},
		"an object that does not exist is skipped": {
			objects: []client.Object{source(applied, webID, apiID), deployment("web")},
			want:    health.Healthy(healthyMessage),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"a kind that is no longer served is skipped": {
			objects: []client.Object{source(applied, webID, "shop_web_example.com_Widget"), deployment("web")},
			want:    health.Healthy(healthyMessage),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"an object of a retired version is read at another": {
			objects: []client.Object{with(source(applied, webID), func(k *kustomizev1.Kustomization) {
				k.Status.Inventory.Entries[0].Version = "v1beta1"
			}), rolling("web")},
			want:  health.Pending("Waiting for Deployment shop/web: Updated: 0/1"),
			kinds: []schema.GroupVersionResource{deployments},
		},
		"pending while an object is in progress": {
			objects: []client.Object{source(applied, webID, apiID), rolling("web"), deployment("api")},
			want:    health.Pending("Waiting for Deployment shop/web: Updated: 0/1"),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"pending, not failed, while a Deployment is held": {
			objects: []client.Object{source(applied, webID, apiID), held("web"), deployment("api")},
			want:    health.Pending("Waiting for Deployment shop/web: held by DeploymentCoordination shop until its turn (updated: 0/1)"),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"pending while a StatefulSet of which pods are deleted one by one is outdated": {
			objects: []client.Object{source(applied, zoneID), zone("zone-a", 1)},
			want:    health.Pending("Waiting for StatefulSet shop/zone-a: Updated: 1/3"),
			kinds:   []schema.GroupVersionResource{statefulSets},
		},
		"healthy when every pod of such a StatefulSet is updated": {
			objects: []client.Object{source(applied, zoneID), zone("zone-a", 3)},
			want:    health.Healthy(healthyMessage),
			kinds:   []schema.GroupVersionResource{statefulSets},
		},
		"healthy when a paused Deployment is rolled out": {
			objects: []client.Object{source(applied, webID), func() client.Object {
				d := deployment("web")
				d.Spec.Paused = true
				return d
			}()},
			want:  health.Healthy(healthyMessage),
			kinds: []schema.GroupVersionResource{deployments},
		},
		"pending while an object is being deleted": {
			objects: []client.Object{source(applied, webID), doomed("web")},
			want:    health.Pending("Waiting for Deployment shop/web: Resource scheduled for deletion"),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"a failure outweighs what is pending": {
			objects: []client.Object{source(applied, webID, apiID), rolling("web"), failed("api", oldTime)},
			want:    health.Unhealthy(`Failed: Deployment shop/api: ReplicaSet "api-1" has timed out progressing.`, oldTime),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"the newest of several failures dates them": {
			objects: []client.Object{source(applied, webID, apiID), failed("web", newTime), failed("api", oldTime)},
			want: health.Unhealthy(`Failed: Deployment shop/api: ReplicaSet "api-1" has timed out progressing.; `+
				`Deployment shop/web: ReplicaSet "web-1" has timed out progressing.`, newTime),
			kinds: []schema.GroupVersionResource{deployments},
		},
		"unhealthy when the Kustomization is stalled": {
			objects: []client.Object{source([]metav1.Condition{
				condition(meta.ReadyCondition, metav1.ConditionFalse, "AccessDenied", "no"),
				condition(meta.StalledCondition, metav1.ConditionTrue, "AccessDenied", "no access"),
			}, webID), deployment("web")},
			want:  health.Unhealthy("Failed: Kustomization shop/web: no access", oldTime),
			kinds: []schema.GroupVersionResource{deployments},
		},
		"pending with Flux's own words when the Kustomization is not ready": {
			objects: []client.Object{source([]metav1.Condition{
				condition(meta.ReadyCondition, metav1.ConditionFalse, "BuildFailed", "no such file"),
				condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, "Building"),
			}, webID), deployment("web")},
			want:  health.Pending("Waiting for Kustomization shop/web: no such file"),
			kinds: []schema.GroupVersionResource{deployments},
		},
		"pending until Flux has an inventory": {
			objects: []client.Object{source(applied)},
			want:    health.Pending("Waiting for Kustomization shop/web: Flux has applied nothing yet, its inventory is empty"),
		},
		"an idle pass of Flux takes nothing from a healthy check": {
			was:     v1alpha1.HealthStatusHealthy,
			objects: []client.Object{source(inPass, webID), deployment("web")},
			want:    health.Healthy(healthyMessage),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"an idle pass of Flux does not hide an object in progress": {
			was:     v1alpha1.HealthStatusHealthy,
			objects: []client.Object{source(inPass, webID), rolling("web")},
			want:    health.Pending("Waiting for Deployment shop/web: Updated: 0/1"),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"an idle pass of Flux gives nothing to a check that was reset": {
			was:     v1alpha1.HealthStatusPending,
			objects: []client.Object{source(inPass, webID), deployment("web")},
			want:    health.Pending("Waiting for Kustomization shop/web: Flux is applying it"),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"a pass with a new revision makes a healthy check pending": {
			was: v1alpha1.HealthStatusHealthy,
			objects: []client.Object{with(source(inPass, webID), func(k *kustomizev1.Kustomization) {
				k.Status.LastAttemptedRevision = "2"
			}), deployment("web")},
			want:  health.Pending("Waiting for Kustomization shop/web: Flux is applying it"),
			kinds: []schema.GroupVersionResource{deployments},
		},
		"a new generation makes a healthy check pending": {
			was: v1alpha1.HealthStatusHealthy,
			objects: []client.Object{with(source(applied, webID), func(k *kustomizev1.Kustomization) {
				k.Generation = 2
			}), deployment("web")},
			want: health.Pending("Waiting for Kustomization shop/web: " +
				"Kustomization generation is 2, but latest observed generation is 1"),
			kinds: []schema.GroupVersionResource{deployments},
		},
		"what is applied to another cluster is not looked for in this one": {
			objects: []client.Object{with(source(applied, webID), func(k *kustomizev1.Kustomization) {
				k.Spec.KubeConfig = &meta.KubeConfigReference{}
			}), failed("web", oldTime)},
			want: health.Healthy("Kustomization shop/web is applied to another cluster, where its objects are not " +
				"looked at: set spec.wait on it to include their health"),
		},
		"a malformed entry keeps the check pending": {
			objects: []client.Object{source(applied, webID, "shop"), deployment("web")},
			want:    health.Pending(`Could not observe Kustomization shop/web: The inventory entry "shop" is malformed`),
			kinds:   []schema.GroupVersionResource{deployments},
		},
		"unhealthy without the Kustomization": {
			want: health.Unhealthy("Kustomization shop/web does not exist: create it, or name another in the annotation "+
				"healthcheck.kuberik.com/kustomization", time.Time{}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			hc := checkWith(v1alpha1.KustomizationAnnotation, "web")
			hc.Status.Status = tc.was
			got := check(t, hc, interceptor.Funcs{}, tc.objects...)
			got.Basis, got.Reason = "", "" // pods_test.go looks at the reason
			got.ErrorTime = got.ErrorTime.UTC()
			tc.want.ErrorTime = tc.want.ErrorTime.UTC()
			tc.want.Kinds = tc.kinds
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestReferenceToNothingIsUnhealthyAndSaysWhatToDo(t *testing.T) {
	for _, value := range []string{"", "a/b/c"} {
		t.Run(value, func(t *testing.T) {
			g := NewWithT(t)
			got := check(t, checkWith(v1alpha1.KustomizationAnnotation, value), interceptor.Funcs{})
			g.Expect(got.Status).To(Equal(v1alpha1.HealthStatusUnhealthy))
			g.Expect(got.Message).To(HavePrefix("The annotation healthcheck.kuberik.com/kustomization is"))
			g.Expect(got.Err).NotTo(HaveOccurred())
		})
	}
}

func TestReferenceToAnotherNamespaceMayBeRefused(t *testing.T) {
	g := NewWithT(t)
	reader := fake.NewClientBuilder().WithScheme(scheme(t)).Build()
	checker := kustomization.Checker{Objects: stored{reader}, Mapper: mapper(), Now: time.Now, NoCrossNamespaceRefs: true}
	got := evaluate(&checker, checkWith(v1alpha1.KustomizationAnnotation, "apps/web"))
	g.Expect(got.Status).To(Equal(v1alpha1.HealthStatusUnhealthy))
	g.Expect(got.Message).To(ContainSubstring("references across namespaces are not allowed"))
}

func TestReadThatFailsIsPendingAndAsksToLookAgain(t *testing.T) {
	forbidden := apierrors.NewForbidden(deployments.GroupResource(), "web", errors.New("rbac"))
	for name, tc := range map[string]struct {
		kind  string
		err   error
		want  string
		kinds []schema.GroupVersionResource
	}{
		"the Kustomization may not be read": {
			"Kustomization", forbidden,
			"Could not observe Kustomization shop/web: this controller may not read it; let its role get, list and watch " +
				"kustomizations.kustomize.toolkit.fluxcd.io",
			nil,
		},
		"an object may not be read": {
			"Deployment", forbidden,
			"Could not observe Deployment shop/web: this controller may not read it; let its role get, list and watch deployments.apps",
			nil,
		},
		"the API server is too slow": {
			"Deployment", fmt.Errorf("get: %w", context.DeadlineExceeded),
			"Could not observe Deployment shop/web: the API server did not answer in time",
			[]schema.GroupVersionResource{deployments},
		},
		"the connection breaks, from a port that differs each time": {
			"Deployment", errors.New("read tcp 10.0.0.1:4711->10.0.0.2:443: connection reset by peer"),
			"Could not observe Deployment shop/web: the API server could not be asked; trying again",
			[]schema.GroupVersionResource{deployments},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hooks := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if o.GetObjectKind().GroupVersionKind().Kind == tc.kind {
					return tc.err
				}
				return c.Get(ctx, key, o, opts...)
			}}
			hc := checkWith(v1alpha1.KustomizationAnnotation, "web")
			got := check(t, hc, hooks, source([]metav1.Condition{ready}, webID), failed("web", oldTime))
			g.Expect(got.Status).To(Equal(v1alpha1.HealthStatusPending))
			g.Expect(got.Message).To(Equal(tc.want))
			g.Expect(got.Err).To(MatchError(tc.err))
			g.Expect(got.Kinds).To(Equal(tc.kinds), "what is watched remains watched, unless it may not be read")
		})
	}
}

func TestManyObjectsOfAKindAreListed(t *testing.T) {
	g := NewWithT(t)
	var gets, lists int
	hooks := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			gets++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			lists++
			return c.List(ctx, l, opts...)
		},
	}
	var ids []string
	var objects []client.Object
	for i := range 40 {
		name := fmt.Sprintf("web-%02d", i)
		ids = append(ids, "shop_"+name+"_apps_Deployment")
		objects = append(objects, rolling(name))
	}
	objects = append(objects, source([]metav1.Condition{ready}, append(ids, "shop_gone_apps_Deployment")...))

	got := check(t, checkWith(v1alpha1.KustomizationAnnotation, "web"), hooks, objects...)
	g.Expect(got.Message).To(HaveSuffix("Deployment shop/web-04: Updated: 0/1; and 35 more"))
	g.Expect(lists).To(Equal(1))
	g.Expect(gets).To(Equal(1), "the Kustomization")
}

// A user who may write the status of a Kustomization can name any object in its
// inventory. The verdict must not reveal the objects of others, or their state.
func TestObjectsThatTheKustomizationHasNotAppliedAreNotLookedAt(t *testing.T) {
	const healthy = "Kustomization shop/web is applied, and nothing of it is failed or in progress"
	foreign := func(labels map[string]string) client.Object {
		d := failed("app", time.Now())
		d.Namespace, d.Labels = "bert", labels
		return d
	}
	for name, labels := range map[string]map[string]string{
		"without labels":              nil,
		"of another Kustomization":    {ownerName: "app", ownerNamespace: "bert"},
		"of one of the same name":     {ownerName: "web", ownerNamespace: "bert"},
		"of another of the namespace": {ownerName: "app", ownerNamespace: "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ids := range [][]string{
				{"bert_app_apps_Deployment"},
				{"bert_app_apps_Deployment", "bert_b_apps_Deployment", "bert_c_apps_Deployment", "bert_d_apps_Deployment"}, // are listed
			} {
				got := check(t, checkWith(v1alpha1.KustomizationAnnotation, "web"), interceptor.Funcs{}, foreign(labels), source([]metav1.Condition{ready}, ids...))
				if got.Status != v1alpha1.HealthStatusHealthy || got.Message != healthy {
					t.Errorf("of %d objects it says %s: %s", len(ids), got.Status, got.Message)
				}
			}
		})
	}
}

func TestInventoryThatIsTooLargeIsNotRead(t *testing.T) {
	reads := 0
	hooks := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		reads++
		return nil
	}}
	var ids []string
	for n := range 2001 {
		ids = append(ids, fmt.Sprintf("shop_web-%d_apps_Deployment", n), fmt.Sprintf("shop_web-%d__ConfigMap", n))
	}
	got := check(t, checkWith(v1alpha1.KustomizationAnnotation, "web"), hooks, source([]metav1.Condition{ready}, ids...))
	const want = "Could not observe Kustomization shop/web: 2001 objects of its inventory have a health of their own, and at most 2000 are looked at: " +
		"divide it into several Kustomizations"
	if got.Status != v1alpha1.HealthStatusPending || got.Message != want || reads > 0 {
		t.Errorf("it says %s: %s, after %d reads", got.Status, got.Message, reads)
	}
}

// counting counts the requests to a mapper.
type counting struct {
	apimeta.RESTMapper
	asked int
}

func (c *counting) RESTMapping(kind schema.GroupKind, versions ...string) (*apimeta.RESTMapping, error) {
	c.asked++
	return c.RESTMapper.RESTMapping(kind, versions...)
}

// A request for a kind that is not served costs a full discovery, and blocks the others.
func TestKindsThatAreNotServedAreRarelyAskedFor(t *testing.T) {
	g := NewWithT(t)
	now, asked := time.Now(), &counting{RESTMapper: mapper()}
	var ids []string
	for n := range 500 {
		ids = append(ids, fmt.Sprintf("shop_web_group-%03d.example.com_Thing", n))
	}
	reader := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(source([]metav1.Condition{ready}, ids...), rolling("web")).Build()
	checker := kustomization.Checker{Objects: stored{reader}, Mapper: asked, Now: func() time.Time { return now }}
	look := func() health.Result {
		return evaluate(&checker, checkWith(v1alpha1.KustomizationAnnotation, "web"))
	}
	for range 10 {
		got := look()
		g.Expect(got.Status).To(Equal(v1alpha1.HealthStatusPending), "not all of it is known")
		g.Expect(got.Message).To(ContainSubstring("too many kinds were asked for that the API server does not serve; trying again"))
	}
	g.Expect(asked.asked).To(Equal(2*60), "with the version and without")

	now = now.Add(time.Minute)
	look()
	g.Expect(asked.asked).To(Equal(2*120), "others, or the same")
}

func TestPodThatNobodySchedulesIsLookedAtAgainInTime(t *testing.T) {
	g := NewWithT(t)
	created := time.Now().Truncate(time.Second)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: ofWeb(), CreationTimestamp: metav1.Time{Time: created}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}},
	}
	got := check(t, checkWith(v1alpha1.KustomizationAnnotation, "web"), interceptor.Funcs{},
		source([]metav1.Condition{ready}, "shop_web__Pod"), pod)
	g.Expect(got.Status).To(Equal(v1alpha1.HealthStatusPending))
	g.Expect(got.RecheckAt).To(BeTemporally("==", created.Add(15*time.Second)))
}

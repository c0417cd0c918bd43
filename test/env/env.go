// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/conditions/check"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/live"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Env is a namespace of its own on a real API server, with what the test of a reconciler
// needs: a clock, and records of what the reconciler writes, announces and logs. The test
// acts as users and as other controllers, through the embedded client.
type Env struct {
	*gomega.WithT
	// WithWatch has all permissions and no cache.
	client.WithWatch

	Ctx       context.Context
	Namespace string
	Clock     *fixture.Clock
	Events    *fixture.Events
	Wire      *fixture.Wire
	Log       *fixture.Log

	opened []string // namespaces
}

// Kinds returns an object of each kind that Rollouts depend on.
func Kinds() []client.Object {
	return []client.Object{
		&v1alpha1.Rollout{}, &v1alpha1.RolloutGate{}, &v1alpha1.RolloutSchedule{}, &v1alpha1.HealthCheck{},
		&imagev1.ImageRepository{}, &imagev1.ImagePolicy{}, &sourcev1.OCIRepository{}, &sourcev1.GitRepository{}, &kustomizev1.Kustomization{},
		&helmv2.HelmRelease{}, &environmentsv1.Environment{}, &v1alpha1.ReleaseQuarantine{}, &v1alpha1.RolloutApproval{},
		&generatorv1.ArtifactGenerator{}, &sourcev1.ExternalArtifact{},
	}
}

// Open creates the namespace. At the end of the test it removes the objects of some kinds,
// to spare other tests the search through them.
func Open(t *testing.T, everything client.WithWatch, kinds ...client.Object) *Env {
	t.Helper()
	e := &Env{
		WithT: gomega.NewWithT(t), WithWatch: everything, Ctx: t.Context(),
		Clock: &fixture.Clock{}, Events: &fixture.Events{}, Wire: &fixture.Wire{}, Log: &fixture.Log{},
	}
	t.Cleanup(func() { e.clear(kinds) })
	e.Namespace = e.OpenNamespace(nil)
	return e
}

// OpenNamespace creates another namespace, and returns its name.
func (e *Env) OpenNamespace(labels map[string]string) string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels}}
	e.Expect(e.Create(e.Ctx, namespace)).To(gomega.Succeed())
	e.opened = append(e.opened, namespace.Name)
	return namespace.Name
}

// clear removes the objects of the kinds. For a thousand objects that may take longer than
// one request may, or several: what one has removed, the next finds gone.
func (e *Env) clear(kinds []client.Object) {
	ctx := context.WithoutCancel(e.Ctx)
	for _, namespace := range e.opened {
		for _, kind := range kinds {
			e.Eventually(func() error { return e.DeleteAllOf(ctx, kind, client.InNamespace(namespace)) }).
				WithTimeout(5 * fixture.Patience).Should(gomega.Succeed())
		}
	}
}

// LabelNamespace sets a label of the namespace; an empty value removes it.
func (e *Env) LabelNamespace(key, value string) {
	namespace := &corev1.Namespace{}
	e.Expect(e.Get(e.Ctx, client.ObjectKey{Name: e.Namespace}, namespace)).To(gomega.Succeed())
	namespace.Labels[key] = value
	if value == "" {
		delete(namespace.Labels, key)
	}
	e.Expect(e.Update(e.Ctx, namespace)).To(gomega.Succeed())
}

// Pass moves the clock forward.
func (e *Env) Pass(d time.Duration) { e.Clock.Pass(d) }

// Key returns the key of an object in the namespace.
func (e *Env) Key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: name}
}

// own moves an object of the fixtures to the namespace.
func (e *Env) own(o client.Object) {
	if o.GetNamespace() == fixture.Namespace {
		o.SetNamespace(e.Namespace)
	}
}

// Add creates objects, with their status if they have one. Those of the fixtures are
// created in the namespace.
func (e *Env) Add(objects ...client.Object) {
	for _, o := range objects {
		e.own(o)
		stated := o.DeepCopyObject().(client.Object)
		e.Expect(e.Create(e.Ctx, o)).To(gomega.Succeed())
		stated.SetResourceVersion(o.GetResourceVersion())
		stated.SetUID(o.GetUID())
		if err := e.Status().Update(e.Ctx, stated); err != nil {
			e.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed(), "the status of %s", o.GetName())
		}
	}
}

// Change edits an object as a user does.
func (e *Env) Change(o client.Object, edit func(client.Object)) {
	e.Expect(e.Get(e.Ctx, e.Key(o.GetName()), o)).To(gomega.Succeed())
	edit(o)
	e.Expect(e.Update(e.Ctx, o)).To(gomega.Succeed())
}

// ChangeStatus edits the status of an object as its controller does.
func (e *Env) ChangeStatus(o client.Object, edit func(client.Object)) {
	e.Expect(e.Get(e.Ctx, e.Key(o.GetName()), o)).To(gomega.Succeed())
	edit(o)
	e.Expect(e.Status().Update(e.Ctx, o)).To(gomega.Succeed())
}

// Merge edits an object with a JSON merge patch, although the controller may write it at
// the same time.
func (e *Env) Merge(o client.Object, patch string) {
	e.own(o)
	e.Expect(e.Patch(e.Ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))).To(gomega.Succeed())
}

// Remove deletes an object of the namespace.
func (e *Env) Remove(o client.Object, name string) {
	o.SetNamespace(e.Namespace)
	o.SetName(name)
	e.Expect(e.Delete(e.Ctx, o)).To(gomega.Succeed())
}

// CheckConditions checks that the conditions of an object are what Flux and kstatus
// expect: Ready exists, and is not True together with Reconciling or Stalled, of which there is
// at most one.
func (e *Env) CheckConditions(o conditions.Setter) {
	checker := check.NewChecker(e, &check.Conditions{
		NegativePolarity: []string{v1alpha1.StalledCondition, v1alpha1.ReconcilingCondition},
	})
	checker.DisableFetch = true
	fail, _ := checker.Check(e.Ctx, o)
	e.Expect(fail).NotTo(gomega.HaveOccurred(), "the conditions are %+v", o.GetConditions())
}

// Stored returns an object of our API as clients without its type see it.
func (e *Env) Stored(kind string, key client.ObjectKey) (*unstructured.Unstructured, error) {
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return stored, e.Get(e.Ctx, key, stored)
}

// Kstatus returns what kstatus says of an object.
func (e *Env) Kstatus(stored *unstructured.Unstructured) status.Status {
	computed, err := status.Compute(stored)
	e.Expect(err).NotTo(gomega.HaveOccurred())
	return computed.Status
}

// NewManager returns a manager as some user, with a cache of the namespace, and without
// metrics. Each edit changes its options.
func (e *Env) NewManager(user *rest.Config, scheme *runtime.Scheme, cached cache.Options, edits ...func(*ctrl.Options)) ctrl.Manager {
	known := memoryOf(e.WithWatch)
	known.distrust(e.Namespace)
	cached.DefaultNamespaces = map[string]cache.Config{e.Namespace: {}}
	options := ctrl.Options{
		Scheme: scheme, Cache: cached, NewCache: fieldindex.NewCache(cache.New), Metrics: metricsserver.Options{BindAddress: "0"},
		NewClient: client.New, Controller: fixture.ControllerConfig(), Logger: e.Log.Logger(),
	}
	for _, edit := range edits {
		edit(&options)
	}
	options.NewClient = known.noticing(options.NewClient)
	mgr, err := ctrl.NewManager(user, options)
	e.Expect(err).NotTo(gomega.HaveOccurred())
	return mgr
}

// Live returns what reads past the caches of a manager.
func (e *Env) Live(mgr ctrl.Manager, cached cache.Options) *live.Reader {
	objects, err := live.NewObjects(mgr.GetConfig(), mgr.GetHTTPClient())
	e.Expect(err).NotTo(gomega.HaveOccurred())
	return live.NewReader(objects, mgr.GetScheme(), mgr.GetRESTMapper(), cached)
}

// Run starts a manager. The returned function or the end of the test stops it.
func (e *Env) Run(t *testing.T, mgr ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		e.Expect(<-done).To(gomega.Succeed())
	})
	t.Cleanup(stop)
	return stop
}

// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	user        = types.NamespacedName{Namespace: "shop", Name: "check"}
	other       = types.NamespacedName{Namespace: "shop", Name: "other"}
	web         = kustomization.Of(types.NamespacedName{Namespace: "shop", Name: "web"})
)

// cluster is a fake API server and what the watches have reported.
type cluster struct {
	*kindWatches
	api *metadatafake.FakeMetadataClient

	mu      sync.Mutex
	now     time.Time
	changed []kustomization.Subject
	lost    []types.NamespacedName
}

// start runs watches until the end of the test. It verifies that none runs longer.
func start(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	before := goleak.IgnoreCurrent()
	scheme := metadatafake.NewTestScheme()
	NewWithT(t).Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())
	c := &cluster{api: metadatafake.NewSimpleMetadataClient(scheme, objects...), now: time.Unix(0, 0)}
	c.kindWatches = &kindWatches{
		client:  c.api,
		changed: func(_ context.Context, by kustomization.Subject) { note(c, &c.changed, by) },
		lost:    func(users []types.NamespacedName) { note(c, &c.lost, users...) },
		now:     func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now },
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.start(ctx)
	t.Cleanup(func() {
		cancel()
		c.running.Wait()
		goleak.VerifyNone(t, before)
	})
	return c
}

func note[T any](c *cluster, list *[]T, keys ...T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, keys...)
}

func noted[T any](c *cluster, list *[]T) func() []T {
	return func() []T {
		c.mu.Lock()
		defer c.mu.Unlock()
		return append([]T(nil), *list...)
	}
}

// refuse makes the lists of a resource fail from now on.
func (c *cluster) refuse(resource schema.GroupVersionResource, err error) {
	c.api.PrependReactor("list", resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, err
	})
}

func (c *cluster) lists(resource schema.GroupVersionResource) int {
	n := 0
	for _, action := range c.api.Actions() {
		if action.Matches("list", resource.Resource) {
			n++
		}
	}
	return n
}

func object(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, ResourceVersion: version,
			Annotations: map[string]string{"large": "value"},
			Labels:      web.Labels(),
		},
	}
}

func TestKindIsWatchedFromWhenItIsFirstUsed(t *testing.T) {
	g := NewWithT(t)
	c := start(t, object("web", "1"))
	g.Expect(c.use(user, "Kustomization", nil)).To(BeTrue(), "nothing to watch is watched")
	c.use(user, "Kustomization", []schema.GroupVersionResource{deployments})
	g.Eventually(noted(c, &c.changed)).Should(Equal([]kustomization.Subject{web}))
	g.Eventually(func() bool { return c.use(user, "Kustomization", []schema.GroupVersionResource{deployments}) }).Should(BeTrue())
	g.Expect(c.lists(deployments)).To(Equal(1))
}

func TestEveryChangeOfAnObjectIsReported(t *testing.T) {
	g := NewWithT(t)
	c := start(t)
	use := func() bool { return c.use(user, "Kustomization", []schema.GroupVersionResource{deployments}) }
	g.Eventually(use).Should(BeTrue())
	tracker := c.api.Tracker()
	g.Eventually(func() int { return countWatches(c) }).Should(Equal(1))
	g.Expect(tracker.Create(deployments, object("web", "1"), "shop")).To(Succeed())
	g.Eventually(noted(c, &c.changed)).Should(HaveLen(1))
	g.Expect(tracker.Update(deployments, object("web", "2"), "shop")).To(Succeed())
	g.Eventually(noted(c, &c.changed)).Should(HaveLen(2))
	g.Expect(tracker.Update(deployments, object("web", "2"), "shop")).To(Succeed())
	g.Consistently(noted(c, &c.changed), "200ms").Should(HaveLen(2), "the same version again is no change")
	g.Expect(tracker.Delete(deployments, "shop", "web")).To(Succeed())
	g.Eventually(noted(c, &c.changed)).Should(HaveLen(3))
}

func countWatches(c *cluster) int {
	n := 0
	for _, action := range c.api.Actions() {
		if action.GetVerb() == "watch" {
			n++
		}
	}
	return n
}

func TestKindThatMayNotBeWatchedIsLeftAlone(t *testing.T) {
	for name, err := range map[string]error{
		"forbidden":     apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("rbac")),
		"gone":          apierrors.NewNotFound(widgets.GroupResource(), ""),
		"not watchable": apierrors.NewMethodNotSupported(widgets.GroupResource(), "list"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := start(t)
			c.refuse(widgets, err)
			both := []schema.GroupVersionResource{deployments, widgets}
			c.use(user, "Kustomization", both)
			g.Eventually(noted(c, &c.lost)).Should(Equal([]types.NamespacedName{user}))
			g.Eventually(func() bool { return c.use(other, "Kustomization", []schema.GroupVersionResource{deployments}) }).
				Should(BeTrue(), "other kinds are watched")
			g.Consistently(func() bool { return c.use(user, "Kustomization", both) }, "200ms").Should(BeFalse())
			g.Expect(c.lists(widgets)).To(Equal(1), "nobody asks again in a hurry")

			c.mu.Lock()
			c.now = c.now.Add(time.Hour)
			c.mu.Unlock()
			c.use(user, "Kustomization", both)
			g.Eventually(func() int { return c.lists(widgets) }).Should(Equal(2), "but in time")
		})
	}
}

func TestKindThatNobodyUsesIsNotWatched(t *testing.T) {
	g := NewWithT(t)
	c := start(t)
	some := []schema.GroupVersionResource{deployments}
	c.use(other, "Kustomization", some)
	g.Eventually(func() bool { return c.use(user, "Kustomization", some) }).Should(BeTrue())
	c.drop(user)
	g.Expect(c.use(other, "Kustomization", some)).To(BeTrue(), "somebody else still uses it")
	c.use(other, "Kustomization", nil)
	listed := c.lists(deployments)
	c.use(user, "Kustomization", some)
	g.Eventually(func() int { return c.lists(deployments) }).Should(Equal(listed+1), "it starts anew")
}

// What a HelmRelease has applied has other labels, and is watched only where a HelmRelease
// is asked for.
func TestObjectsOfHelmReleasesAreWatchedForThemselves(t *testing.T) {
	g := NewWithT(t)
	byHelm := kustomization.OfHelmRelease(web.NamespacedName)
	installed := object("web", "1")
	installed.Labels = byHelm.Labels()
	c, some := start(t, installed), []schema.GroupVersionResource{deployments}
	g.Eventually(func() bool { return c.use(user, "Kustomization", some) }).Should(BeTrue())
	g.Expect(c.lists(deployments)).To(Equal(1))
	g.Eventually(func() bool { return c.use(user, "HelmRelease", some) }).Should(BeTrue())
	g.Eventually(noted(c, &c.changed)).Should(ContainElement(byHelm))
	g.Expect(c.lists(deployments)).To(Equal(2))
	c.use(other, "Kustomization", some)
	g.Eventually(func() int { return c.lists(deployments) }).Should(Equal(3), "the first use has ended")
}

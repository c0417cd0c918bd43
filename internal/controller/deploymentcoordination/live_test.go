// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/env"
)

// component is the source of the events of this reconciler.
const component = "deploymentcoordination-controller"

// street is an env in which Kubernetes itself rolls out Deployments, and in which the
// reconciler runs with the caches and watches of production.
type street struct {
	*env.Env

	t     *testing.T
	plane *controlplane.ControlPlane
}

func openStreet(t *testing.T) *street {
	t.Helper()
	env.Parallel(t)
	plane, live := livePlane.open(t)
	s := &street{Env: env.Open(t, live), t: t, plane: plane}
	s.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	return s
}

// play runs the reconciler. The returned function stops it.
func (s *street) play(edits ...func(*Reconciler)) (stop func()) {
	return s.playAs(s.plane.RESTConfig(), edits...)
}

// playAs runs the reconciler as the given user.
func (s *street) playAs(user *rest.Config, edits ...func(*Reconciler)) (stop func()) {
	caches := cache.Options{ByObject: CacheByObject()}
	mgr := s.NewManager(user, testScheme(), caches)
	r := &Reconciler{
		Client: mgr.GetClient(), APIReader: s.Live(mgr, caches), Now: time.Now,
		Events: mgr.GetEventRecorderFor(component), //nolint:staticcheck // as the controller does
	}
	for _, edit := range edits {
		edit(r)
	}
	s.Expect(r.SetupWithManager(s.Ctx, mgr, controller.Options{})).To(Succeed())
	return s.Run(s.t, mgr)
}

func (s *street) coordinate(name string, edits ...func(*coordinationv1.DeploymentCoordination)) {
	s.Expect(s.Create(s.Ctx, coordination(s.Namespace, name, edits...))).To(Succeed())
}

func (s *street) deploy(names []string, edits ...func(*appsv1.Deployment)) {
	for _, name := range names {
		s.Expect(s.Create(s.Ctx, deployment(s.Namespace, name, edits...))).To(Succeed())
	}
}

func (s *street) deployment(name string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	s.Expect(s.Get(s.Ctx, s.Key(name), d)).To(Succeed())
	return d
}

func (s *street) coordination(name string) *coordinationv1.DeploymentCoordination {
	c := &coordinationv1.DeploymentCoordination{}
	s.Expect(s.Get(s.Ctx, s.Key(name), c)).To(Succeed())
	return c
}

// edit changes Deployments as a user does, and retries after a conflict.
func (s *street) edit(names []string, edits ...func(*appsv1.Deployment)) {
	for _, name := range names {
		s.Eventually(func() error {
			d := s.deployment(name)
			for _, edit := range edits {
				edit(d)
			}
			return s.Update(s.Ctx, d)
		}).Should(Succeed())
	}
}

// idles waits until a coordination has seen its present spec and all members, and nothing
// is left to do.
func (s *street) idles(name string, members ...string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		c := s.coordination(name)
		g.Expect(unlawful(c)).To(BeEmpty())
		g.Expect(conditionText(c, coordinationv1.ReadyCondition)).To(HavePrefix("True AllDeploymentsReady"))
		g.Expect(c.Status.ActiveDeployment).To(BeEmpty())
		g.Expect(c.Status.Deployments).To(Equal(s.keys(members)))
		for _, state := range c.Status.DeploymentStates {
			_, of, _ := strings.Cut(state.Name, "/")
			d := s.deployment(of)
			g.Expect(state.Generation).To(Equal(d.Generation), "of %s", of)
			g.Expect(d.Spec.Paused || c.Spec.IdlePolicy == coordinationv1.IdleResume).To(BeTrue(), "%s is to be paused, which follows the status", of)
		}
	}).Should(Succeed(), func() string { return s.describe(name) })
}

// activates waits until a Deployment has the turn and is unpaused.
func (s *street) activates(coordination, name string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		g.Expect(s.coordination(coordination).Status.ActiveDeployment).To(Equal(s.Namespace + "/" + name))
		g.Expect(s.deployment(name).Spec.Paused).To(BeFalse())
	}).Should(Succeed(), func() string { return s.describe(coordination) })
}

// scaled changes the replicas through the subresource, as an autoscaler does.
func (s *street) scaled(name string, to int32) {
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: to}}
	s.Expect(s.SubResource("scale").Update(s.Ctx, deployment(s.Namespace, name), client.WithSubResourceBody(scale))).To(Succeed())
}

func (s *street) keys(names []string) []string {
	var keys []string
	for _, name := range names {
		keys = append(keys, s.Namespace+"/"+name)
	}
	return keys
}

// describe returns the details for the message of a failed test.
func (s *street) describe(name string) string {
	c := s.coordination(name)
	text := fmt.Sprintf("active %q\n", c.Status.ActiveDeployment)
	for _, condition := range c.Status.Conditions {
		text += fmt.Sprintf("%s=%s\n", condition.Type, conditionText(c, condition.Type))
	}
	for _, state := range c.Status.DeploymentStates {
		text += fmt.Sprintf("%+v\n", state)
	}
	list := &appsv1.DeploymentList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
	for i := range list.Items {
		d := &list.Items[i]
		text += fmt.Sprintf("%s generation %d paused %t %v %+v\n", d.Name, d.Generation, d.Spec.Paused, d.Annotations, d.Status)
	}
	return text
}

// versions returns how many Pods of a Deployment run each image.
func (s *street) versions(name string) map[string]int {
	pods := &corev1.PodList{}
	s.Expect(s.List(s.Ctx, pods, client.InNamespace(s.Namespace), client.MatchingLabels{"app": name})).To(Succeed())
	found := map[string]int{}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() {
			_, tag, _ := strings.Cut(pods.Items[i].Spec.Containers[0].Image, ":")
			found[tag]++
		}
	}
	return found
}

// stuck returns a version whose Pods do not become ready before fix is called.
func (s *street) stuck() (version string, fix func()) {
	version = "stuck-" + s.Namespace
	s.Expect(s.plane.BreakVersion(s.Ctx, version)).To(Succeed())
	fixed := false
	fix = func() {
		if !fixed {
			fixed = true
			s.Expect(s.plane.FixVersion(context.Background(), version)).To(Succeed())
		}
	}
	s.t.Cleanup(fix)
	return version, fix
}

// emitted returns the events of a coordination, oldest first, as "Type Reason".
func (s *street) emitted(name string) []string {
	list := &corev1.EventList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingFields{"involvedObject.name": name})).To(Succeed())
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) })
	var reported []string
	for i := range list.Items {
		e := &list.Items[i]
		s.Expect(e.Source.Component).To(Equal(component))
		s.Expect(e.LastTimestamp.IsZero()).To(BeFalse(), "kubectl sorts by lastTimestamp")
		reported = append(reported, slices.Repeat([]string{e.Type + " " + e.Reason}, int(max(e.Count, 1)))...)
	}
	return reported
}

// messages returns the events of a coordination with their messages.
func (s *street) messages(name string) string {
	list := &corev1.EventList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingFields{"involvedObject.name": name})).To(Succeed())
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) })
	text := ""
	for i := range list.Items {
		text += fmt.Sprintf("%s %s (%d)\n", list.Items[i].Reason, list.Items[i].Message, list.Items[i].Count)
	}
	return text
}

// awaitEvents waits until an event was emitted a number of times.
func (s *street) awaitEvents(of, event string, times int) {
	s.t.Helper()
	s.Eventually(func() int { return count(s.emitted(of), event) }).Should(Equal(times), func() string { return s.messages(of) + s.describe(of) })
}

// watched is what an observer saw, independently of the controller.
type watched struct {
	mu sync.Mutex
	// together are the Deployments that rolled out at the same moment, from the moment
	// with the most of them.
	together []string
	// turns contains a Deployment each time that it began to roll out.
	turns []string
	seen  map[string]*appsv1.Deployment
}

// observe observes every version of every Deployment from now on.
func (s *street) observe() *watched {
	list := &appsv1.DeploymentList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
	w := &watched{seen: map[string]*appsv1.Deployment{}}
	for i := range list.Items {
		w.seen[list.Items[i].Name] = &list.Items[i]
	}
	events, err := s.Watch(s.Ctx, &appsv1.DeploymentList{}, client.InNamespace(s.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Cleanup(events.Stop)
	go func() {
		for e := range events.ResultChan() {
			if d, ok := e.Object.(*appsv1.Deployment); ok {
				w.saw(d, e.Type == watch.Deleted)
			}
		}
	}()
	return w
}

func (w *watched) saw(d *appsv1.Deployment, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.seen[d.Name]
	w.seen[d.Name] = d
	if gone {
		delete(w.seen, d.Name)
	}
	if rolls(d) && (before == nil || !rolls(before)) {
		w.turns = append(w.turns, d.Name)
	}
	var rolling []string
	for _, name := range slices.Sorted(maps.Keys(w.seen)) {
		if rolls(w.seen[name]) {
			rolling = append(rolling, name)
		}
	}
	if len(rolling) > len(w.together) {
		w.together = rolling
	}
}

// rolls reports whether a Deployment may roll out and is not rolled out.
func rolls(d *appsv1.Deployment) bool {
	s, n := d.Status, *d.Spec.Replicas
	return !d.Spec.Paused && (s.ObservedGeneration < d.Generation || s.UpdatedReplicas != n || s.AvailableReplicas != n || s.Replicas != n)
}

// took returns the turns in their order.
func (w *watched) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.turns)
}

// atOnce returns the largest set of Deployments that rolled out at the same moment.
func (w *watched) atOnce() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.together)
}

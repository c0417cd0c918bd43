// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// moment is how long a test verifies that something does not happen.
const moment = 1500 * time.Millisecond

// testEnv is an env with the real StatefulSet controller. The test acts as the users.
type testEnv struct {
	*env.Env

	metrics  *metrics.Groups
	guard    *guard
	requests *requestLog
	// everywhere makes the controller watch all namespaces.
	everywhere bool
	// evicts makes it evict pods.
	evicts bool
}

func open(t *testing.T, sets ...*appsv1.StatefulSet) *testEnv {
	t.Helper()
	s := &testEnv{Env: env.Open(t, testClient, &appsv1.StatefulSet{}), metrics: metrics.NewGroups(), guard: &guard{}, requests: &requestLog{}}
	s.SetDefaultConsistentlyDuration(moment)
	t.Cleanup(func() { s.Expect(s.guard.broken()).To(BeEmpty(), "promises were broken") })
	s.add(sets...)
	return s
}

// zone returns a set of the group "ingester" with some pods of version 1.0.0.
func zone(name string, pods int32, changes ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{rolloutgroup.Label: "ingester"}},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &pods, Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: name,
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "ingester", Image: image("1.0.0")}}},
			},
		},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

func image(version string) string { return "registry.example/ingester:" + version }

func annotated(key, value string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value) }
}

func labelled(key, value string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { metav1.SetMetaDataLabel(&set.ObjectMeta, key, value) }
}

func version(v string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image(v) }
}

func scaled(pods int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Replicas = &pods }
}

func strategy(kind appsv1.StatefulSetUpdateStrategyType) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: kind} }
}

func minReady(seconds int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.MinReadySeconds = seconds }
}

func (s *testEnv) create(sets ...*appsv1.StatefulSet) {
	for _, set := range sets {
		set.Namespace = s.Namespace
		s.Expect(s.Create(s.Ctx, set)).To(Succeed())
	}
}

// add creates sets, and waits until they run.
func (s *testEnv) add(sets ...*appsv1.StatefulSet) {
	s.create(sets...)
	for _, set := range sets {
		s.comesUp(set.Name)
	}
}

// comesUp waits until all pods of a set are available. The controller waits a second
// longer than Kubernetes before a pod is available, because the time when it became Ready
// has a resolution of one second. A set whose pods are not available goes first.
func (s *testEnv) comesUp(name string) {
	wanted := s.set(name).Spec
	s.Eventually(func() int32 { return s.set(name).Status.AvailableReplicas }).Should(Equal(*wanted.Replicas))
	if wanted.MinReadySeconds > 0 {
		time.Sleep(time.Second)
	}
}

func (s *testEnv) set(name string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{}
	s.Expect(s.Get(s.Ctx, s.Key(name), set)).To(Succeed())
	return set
}

func (s *testEnv) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{}
	s.Expect(s.Get(s.Ctx, s.Key(name), pod)).To(Succeed())
	return pod
}

// change edits a set as users do.
func (s *testEnv) change(name string, changes ...func(*appsv1.StatefulSet)) {
	before := s.set(name)
	after := before.DeepCopy()
	for _, change := range changes {
		change(after)
	}
	s.Expect(s.Patch(s.Ctx, after, client.MergeFrom(before))).To(Succeed())
}

// release sets another version in the sets.
func (s *testEnv) release(v string, names ...string) {
	for _, name := range names {
		s.change(name, version(v))
	}
}

// broken returns a version whose pods do not become ready, in this test.
func (s *testEnv) broken(name string) string {
	v := name + "-" + s.Namespace
	s.Expect(testPlane.BreakVersion(s.Ctx, v)).To(Succeed())
	return v
}

func (s *testEnv) fix(v string) { s.Expect(testPlane.FixVersion(s.Ctx, v)).To(Succeed()) }

// hold sets a finalizer on a pod, which blocks its deletion, and letGo removes it.
func (s *testEnv) hold(pod string)  { s.finalizers(pod, []string{"example.com/hold"}) }
func (s *testEnv) letGo(pod string) { s.finalizers(pod, nil) }

func (s *testEnv) finalizers(name string, finalizers []string) {
	before := s.pod(name)
	after := before.DeepCopy()
	after.Finalizers = finalizers
	s.Expect(s.Patch(s.Ctx, after, client.MergeFrom(before))).To(Succeed())
}

// pods returns the versions of a set's pods by name; pods that are not ready have a tilde
// after the version.
func (s *testEnv) pods(set string) map[string]string {
	var list corev1.PodList
	s.Expect(s.List(s.Ctx, &list, client.InNamespace(s.Namespace), client.MatchingLabels{"app": set})).To(Succeed())
	all := map[string]string{}
	for i := range list.Items {
		pod := &list.Items[i]
		v := strings.TrimPrefix(pod.Spec.Containers[0].Image, image(""))
		if !ready(pod) {
			v += "~"
		}
		all[pod.Name] = v
	}
	return all
}

// runs waits until all pods of the sets have a version and are ready, and the status of
// the sets reports it.
func (s *testEnv) runs(v string, names ...string) {
	for _, name := range names {
		set := s.set(name)
		want := map[string]string{}
		for i := range *set.Spec.Replicas {
			want[fmt.Sprintf("%s-%d", name, i)] = v
		}
		s.Eventually(func() map[string]string { return s.pods(name) }).Should(Equal(want))
		s.isPromoted(name)
	}
}

// isPromoted waits until the newest revision of a set is its current one.
func (s *testEnv) isPromoted(name string) {
	s.Eventually(func() bool {
		set := s.set(name)
		seen := set.Status.ObservedGeneration == set.Generation
		return seen && set.Status.CurrentRevision == set.Status.UpdateRevision
	}).Should(BeTrue(), "the revision of %s is not promoted", name)
}

// play runs the controller as it runs in production. The returned function stops it.
func (s *testEnv) play(t *testing.T) (stop func()) {
	t.Helper()
	return s.playAs(t, testPlane.RESTConfig())
}

// playAs runs the controller as the given user.
func (s *testEnv) playAs(t *testing.T, user *rest.Config) (stop func()) {
	t.Helper()
	user.Wrap(s.requests.wrap)
	caches := cache.Options{ByObject: CacheByObject()}
	mgr := s.NewManager(user, clientgoscheme.Scheme, caches, func(o *ctrl.Options) {
		if s.everywhere {
			o.Cache.DefaultNamespaces = nil
		}
	})
	r := &Reconciler{
		Client: s.guarded(mgr), APIReader: s.Live(mgr, caches), Events: s.Events, Now: time.Now,
		UseEviction: s.evicts, Metrics: s.metrics,
	}
	s.Expect(r.SetupWithManager(s.Ctx, mgr, controller.Options{MaxConcurrentReconciles: 2})).To(Succeed())
	return s.Run(t, mgr)
}

// unwatched is a client whose Watch is never called. Interceptors require a Watch.
type unwatched struct{ client.Client }

func (unwatched) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("nobody watches here")
}

// guarded returns the manager's client with the guard in front.
func (s *testEnv) guarded(mgr ctrl.Manager) client.Client {
	return s.guard.through(unwatched{mgr.GetClient()})
}

// blocked returns the reason in the metric of a group of the namespace.
func (s *testEnv) blocked(group string) string { return s.blockedIn(s.Namespace, group) }

func (s *testEnv) blockedIn(namespace, group string) string {
	reasons := []string{}
	for _, series := range s.series("rollout_operator_group_blocked") {
		if series["namespace"] == namespace && series["rollout_group"] == group && series["value"] == "1" {
			reasons = append(reasons, series["reason"])
		}
	}
	return strings.Join(reasons, " ")
}

// series returns the labels of a metric with its value, or with its count if it is a
// histogram.
func (s *testEnv) series(name string) []map[string]string {
	registry := prometheus.NewPedanticRegistry()
	s.Expect(registry.Register(s.metrics)).To(Succeed())
	families, err := registry.Gather()
	s.Expect(err).NotTo(HaveOccurred())
	var all []map[string]string
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			one := map[string]string{"value": fmt.Sprint(value)}
			for _, label := range m.GetLabel() {
				one[label.GetName()] = label.GetValue()
			}
			all = append(all, one)
		}
	}
	return all
}

// reported returns the events so far, without those about replaced pods.
func reported(events []fixture.Event) []string {
	var all []string
	for _, e := range events {
		if e.Reason != rolloutgroup.PodReplacedEvent {
			all = append(all, e.On+" "+e.Reason)
		}
	}
	return all
}

// requestLog records the requests of a client, with the code of the response.
type requestLog struct {
	mu  sync.Mutex
	all []string
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		code := 0
		if err == nil {
			code = response.StatusCode
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, fmt.Sprintf("%s %s %d", r.Method, r.URL.Path, code))
		return response, err
	})
}

// about returns the requests whose method, path and code contain a text.
func (l *requestLog) about(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(line string) bool { return !strings.Contains(line, text) })
}

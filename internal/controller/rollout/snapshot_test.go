// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// A snapshot of a cluster and the caches of the controller give equal inputs, whatever
// objects there are.
func TestSnapshotGivesTheInputsOfTheCaches(t *testing.T) {
	s := openAlone(t)
	seed := rand.Uint64()
	r := &anyObjects{t: t, testEnv: s, rng: rand.New(rand.NewPCG(seed, 0))}
	r.create()
	cached, seen := s.cachedEverywhere(t), map[string]bool{}
	for _, namespace := range r.namespaces {
		one, all := s.snapshotOf(namespace), s.snapshotOf("")
		for _, name := range rollouts {
			key := client.ObjectKey{Namespace: namespace, Name: name}
			for _, refs := range []bool{true, false} {
				want := s.inputOf(cached, key, refs)
				note(seen, want)
				if diff := cmp.Diff(want, s.inputOf(all, key, refs), unexported); diff != "" {
					t.Errorf("seed %d, Rollout %s, a snapshot of all namespaces (-caches +snapshot):\n%s", seed, key, diff)
				}
				if diff := cmp.Diff(withoutConsumers(want), withoutConsumers(s.inputOf(one, key, refs)), unexported); diff != "" {
					t.Errorf("seed %d, Rollout %s, a snapshot of one namespace (-caches +snapshot):\n%s", seed, key, diff)
				}
			}
		}
	}
	s.Expect(seen).To(And(HaveKey("gates"), HaveKey("checks"), HaveKey("targets"), HaveKey("quarantines")),
		"seed %d: the inputs have nothing to compare", seed)
}

// withoutConsumers leaves out what consumes an OCIRepository: one namespace does not show
// the consumers of the others.
func withoutConsumers(in promotion.Input) promotion.Input {
	in.Targets.All = slices.Clone(in.Targets.All)
	for i := range in.Targets.All {
		t := &in.Targets.All[i]
		if t.Reason == v1alpha1.TargetNoConsumer || t.Reason == v1alpha1.TargetConsumerElsewhere {
			t.Reason, t.Message, t.PulledOnly = "", "", false
		}
	}
	return in
}

var unexported = cmp.Exporter(func(reflect.Type) bool { return true })

// note adds what an input has at least one of.
func note(seen map[string]bool, in promotion.Input) {
	for kind, n := range map[string]int{
		"gates": len(in.Gates.Gates), "checks": len(in.Health.Checks),
		"targets": len(in.Targets.All), "quarantines": len(in.Quarantines.All),
	} {
		if n > 0 {
			seen[kind] = true
		}
	}
}

// inputOf gathers the input of a Rollout, with only those fields that caches keep.
func (s *testEnv) inputOf(from client.Reader, key client.ObjectKey, noCrossNamespaceRefs bool) promotion.Input {
	rollout := &v1alpha1.Rollout{}
	s.Expect(from.Get(s.Ctx, key, rollout)).To(Succeed())
	gatherer := gather.Gatherer{Client: from, Live: s.WithWatch, HelmReleases: true, GitRepositories: true, Quarantines: true, NoCrossNamespaceRefs: noCrossNamespaceRefs}
	read := gatherer.Gather(s.Ctx, rollout, fixture.Noon)
	s.Expect(read.Err).NotTo(HaveOccurred())
	in := read.Input
	in.Rollout = trimmed(s, rollout)
	in.Gates.Gates, in.Gates.Copies = trimmedAll(s, in.Gates.Gates), trimmedAll(s, in.Gates.Copies)
	in.Health.Checks = trimmedAll(s, in.Health.Checks)
	return in
}

// trimmed returns what a cache keeps of an object, without its kind.
func trimmed[T client.Object](s *testEnv, o T) T {
	kept := o.DeepCopyObject().(T)
	_, err := cache.Options(cache.Setting{}).DefaultTransform(kept)
	s.Expect(err).NotTo(HaveOccurred())
	kept.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(""))
	return kept
}

func trimmedAll[T any, P interface {
	*T
	client.Object
}](s *testEnv, all []T) []T {
	var kept []T
	for i := range all {
		kept = append(kept, *trimmed[P](s, &all[i]))
	}
	return kept
}

// cachedEverywhere returns a client that reads from the same caches as in production.
func (s *testEnv) cachedEverywhere(t *testing.T) client.Client {
	t.Helper()
	mgr, err := ctrl.NewManager(testPlane.RESTConfig(), ctrl.Options{
		Scheme: env.Scheme(), Cache: cache.Options(cache.Setting{}), NewCache: fieldindex.NewCache(ctrlcache.New),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(errors.Join(gather.Index(s.Ctx, mgr.GetFieldIndexer()), targets.IndexHelmReleases(s.Ctx, mgr.GetFieldIndexer()), targets.IndexGitRepositories(s.Ctx, mgr.GetFieldIndexer()))).To(Succeed())
	s.Run(t, mgr)
	s.Expect(mgr.GetCache().WaitForCacheSync(s.Ctx)).To(BeTrue())
	return mgr.GetClient()
}

func (s *testEnv) snapshotOf(namespace string) *snapshot.Snapshot {
	taken, err := snapshot.Options{}.Take(s.Ctx, s.WithWatch, env.Scheme(), namespace)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(errors.Join(gather.Index(s.Ctx, taken), targets.IndexHelmReleases(s.Ctx, taken), targets.IndexGitRepositories(s.Ctx, taken))).To(Succeed())
	return taken
}

// rollouts are the names of the Rollouts of each namespace.
var rollouts = []string{"shop", "cart", "web", "mail"}

// anyObjects creates random objects that refer to each other, or to nothing.
type anyObjects struct {
	*testEnv
	t          *testing.T
	rng        *rand.Rand
	namespaces []string
}

func (r *anyObjects) create() {
	r.namespaces = []string{r.Namespace}
	for range 2 {
		r.namespaces = append(r.namespaces, r.OpenNamespace(r.labels()))
	}
	for _, namespace := range r.namespaces {
		for _, name := range rollouts {
			r.in(namespace, r.rollout(name), r.repository(name), r.policy(name), r.scan(name))
		}
		r.in(namespace, r.quarantine("one"), r.quarantine("two"))
		for i := range 5 {
			r.in(namespace, r.check(fmt.Sprintf("check-%d", i)), r.gate(fmt.Sprintf("gate-%d", i)),
				r.kustomization(fmt.Sprintf("app-%d", i)), r.release(fmt.Sprintf("chart-%d", i)))
		}
		nights := fixture.MakeSchedule("nights").Selecting(r.labels()).Obj()
		nights.SetNamespace(namespace)
		r.Add(nights)
		copied := fixture.MakeGate("nights", r.anyOf(rollouts...)).Closed().Obj()
		copied.SetNamespace(namespace)
		r.Expect(ctrl.SetControllerReference(nights, copied, env.Scheme())).To(Succeed())
		r.Add(copied)
	}
	r.AddSchedule(r.t, fixture.MakeSchedule("freeze").Deny().Selecting(r.labels()).Cluster(nil))
	for _, name := range []string{"recall", "recall-2"} {
		r.AddSchedule(r.t, r.recall(name))
	}
	r.AddSchedule(r.t, fixture.MakeSchedule("tiers").Cluster(&metav1.LabelSelector{MatchLabels: r.labels()}))
}

func (r *anyObjects) quarantine(name string) *v1alpha1.ReleaseQuarantine {
	q := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.Image, q.Spec.Tags, q.Spec.Lifted = r.anyOf("registry.example.com/shop", "shop"), []string{r.tag()}, r.yes()
	return q
}

// recall is a quarantine of some namespaces, or of all.
func (r *anyObjects) recall(name string) client.Object {
	q := &v1alpha1.ClusterReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.ReleaseQuarantineSpec = r.quarantine(name).Spec
	if r.yes() {
		q.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: r.labels()}
	}
	return q
}

func (r *anyObjects) in(namespace string, objects ...client.Object) {
	for _, o := range objects {
		if isRollout(o) || r.rng.IntN(8) > 0 {
			o.SetNamespace(namespace)
			r.Add(o)
		}
	}
}

func isRollout(o client.Object) bool {
	_, ok := o.(*v1alpha1.Rollout)
	return ok
}

func (r *anyObjects) yes() bool { return r.rng.IntN(2) == 0 }

func (r *anyObjects) anyOf(all ...string) string { return all[r.rng.IntN(len(all))] }

func (r *anyObjects) tag() string { return r.anyOf("1.0.0", "1.1.0", "1.2.0", "2.0.0-rc.1") }

// name is mostly that of an object of its kind.
func (r *anyObjects) name() string { return r.anyOf(append(rollouts, "missing")...) }

func (r *anyObjects) labels() map[string]string {
	all := map[string]string{"tier": r.anyOf("a", "b")}
	if r.yes() {
		all["app"] = r.anyOf("shop", "cart")
	}
	return all
}

func (r *anyObjects) rollout(name string) client.Object {
	made := fixture.MakeRollout(name).Ledger("1.0.0", "1.1.0")
	if r.yes() {
		made.History(fixture.MakeEntry(r.tag()).Succeeded())
	} else if r.yes() {
		made.FirstRelease(v1alpha1.FirstReleaseApplied)
	}
	rollout := made.Obj()
	rollout.Labels, rollout.Spec.ReleasesImagePolicy.Name = r.labels(), r.name()
	rollout.Annotations = map[string]string{"example.com/note": "not ours", v1alpha1.BypassGatesAnnotation: r.tag()}
	rollout.Spec.HealthCheckSelector = []*v1alpha1.HealthCheckSelector{
		nil, {MatchLabels: r.labels()}, {Selector: &metav1.LabelSelector{}},
		{MatchLabels: r.labels(), NamespaceSelector: &metav1.LabelSelector{MatchLabels: r.labels()}},
		{MatchLabels: r.labels(), NamespaceSelector: &metav1.LabelSelector{}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"cart"}}}},
	}[r.rng.IntN(6)]
	return rollout
}

func (r *anyObjects) policy(name string) client.Object {
	made := fixture.MakePolicy(name).Of(r.anyOf(append(r.namespaces, "", "", "nowhere")...), r.name())
	if r.yes() {
		made.Latest(r.tag()).Digest("sha256:a11b01f8")
	}
	if r.yes() {
		made.Semver(r.anyOf("*", "1.x", "no range"))
	}
	return made.Obj()
}

func (r *anyObjects) scan(name string) client.Object {
	made := fixture.MakeScan(name).AccessFrom(r.labels())
	if r.yes() {
		made.Found(r.tag(), "0.9.0").Among(2 + r.rng.IntN(2))
	}
	if r.rng.IntN(4) == 0 {
		made.NotReady("no login")
	}
	return made.Obj()
}

func (r *anyObjects) gate(name string) client.Object {
	made := fixture.MakeGate(name, r.name())
	if r.yes() {
		made.Closed()
	}
	if r.yes() {
		made.Allow(r.tag())
	}
	return made.Obj()
}

func (r *anyObjects) check(name string) client.Object {
	made := fixture.MakeHealthCheck(name).State(v1alpha1.HealthStatus(r.anyOf("Healthy", "Unhealthy", "Pending"))).ErrorAt(fixture.Noon)
	if r.yes() {
		made.LetsIn(map[string]string{})
	}
	check := made.Obj()
	check.Labels = r.labels()
	check.Annotations = map[string]string{"example.com/note": "not ours"}
	return check
}

func (r *anyObjects) repository(name string) client.Object {
	tag := r.tag()
	made := fixture.MakeRepository(name).DrivenBy(r.name()).Tag(tag)
	if r.yes() {
		made.Pulled(fixture.Revision(tag)).Observed(1).Ready()
	}
	return made.Obj()
}

func (r *anyObjects) kustomization(name string) client.Object {
	made := fixture.MakeKustomization(name).From(sourcev1.OCIRepositoryKind, r.name())
	if r.yes() {
		made.FromNamespace(r.anyOf(r.namespaces...))
	}
	if r.yes() {
		made.DrivenBy(r.name(), "VERSION").Substitute("VERSION", r.tag())
	}
	if r.yes() {
		made.Applied(fixture.Revision(r.tag())).Observed(1).Ready()
	}
	return made.Obj()
}

func (r *anyObjects) release(name string) client.Object {
	made := fixture.MakeHelmRelease(name).From(sourcev1.OCIRepositoryKind, r.name())
	if r.yes() {
		made.FromNamespace(r.anyOf(r.namespaces...))
	}
	if r.yes() {
		made.Observed(1).Deployed(fixture.Revision(r.tag())).Ready()
	}
	return made.Obj()
}

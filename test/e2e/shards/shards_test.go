// SPDX-License-Identifier: Apache-2.0

// Package shards runs several controllers on one cluster that share the work. It checks
// in the API server's audit log which of them did what: each of them has an account of
// its own.
package shards

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestMain(m *testing.M) { os.Exit(fixture.ExitCode(m.Run())) }

const shardKey = "sharding.fluxcd.io/key"

// longerThanOrphans is longer than the time after which an annotation that names a
// missing Rollout is reported.
const longerThanOrphans = 12 * time.Second

func TestEachInstanceActsForItsOwnObjectsAndNoOthers(t *testing.T) {
	mainMetrics, oneMetrics := env.FreeAddress(t), env.FreeAddress(t)
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true},
		"--enable-leader-election", "--watch-label-selector=!"+shardKey, "--metrics-bind-address="+mainMetrics, "--metrics-secure=false")
	start(t, plane, "shard-one", nil, "--enable-leader-election", "--watch-label-selector="+shardKey+"=one",
		"--metrics-bind-address="+oneMetrics, "--metrics-secure=false")

	main, one := env.New(t, plane), env.New(t, plane)
	everywhere := &v1alpha1.ClusterRolloutSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "shards", Labels: map[string]string{shardKey: "one"}},
	}
	everywhere.Spec.RolloutSelector, everywhere.Spec.Rules = &metav1.LabelSelector{}, []v1alpha1.ScheduleRule{{}}
	everywhere.Spec.Action = v1alpha1.ScheduleAllow
	main.Create(everywhere)
	for s, shard := range map[*env.Env]string{main: "", one: "one"} {
		s.CreateFlux()
		s.Create(in(shard, s.HealthCheck()), in(shard, s.Rollout(s.Baked(longerThanOrphans, time.Minute))))
		s.Publish(s.ConfigRelease("1.0.0"))
	}
	for _, s := range []*env.Env{main, one} {
		done := s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
		if diff := gocmp.Diff([]string{"1 1.0.0 Succeeded"}, env.History(done)); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		if missing := env.WithReason(s.Events(s.OCIRepository("")), v1alpha1.RolloutNotFoundReason); len(missing) > 0 {
			t.Errorf("a Rollout of another instance is said to be missing: %q", missing)
		}
	}
	env.Eventually(t, "the schedule's gates for the Rollouts of both", func() (bool, string) {
		main.Read(everywhere)
		return everywhere.Status.MatchingRollouts == 2 && len(everywhere.Status.ManagedGates) == 2, gocmp.Diff(2, len(everywhere.Status.ManagedGates))
	})

	promotes := []string{
		"create /events", "patch kuberik.com/healthchecks", "patch kuberik.com/healthchecks/status",
		"patch kuberik.com/rollouts/status", "patch source.toolkit.fluxcd.io/ocirepositories",
	}
	want := map[string][]string{
		scenario.Account + " " + main.Namespace: promotes,
		"shard-one " + one.Namespace:            append([]string{"create kuberik.com/rolloutgates"}, promotes...),
		"shard-one " + main.Namespace:           {"create kuberik.com/rolloutgates"},
		"shard-one everywhere":                  {"patch kuberik.com/clusterrolloutschedules/status"},
	}
	for _, verbs := range want {
		slices.Sort(verbs)
	}
	if diff := gocmp.Diff(want, writes(t, plane, scenario.Account, "shard-one")); diff != "" {
		t.Errorf("who wrote what where (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(2, len(leases(t, plane))); diff != "" {
		t.Errorf("each instance has a Lease of its own; there are %v", slices.Collect(maps.Keys(leases(t, plane))))
	}
	if _, shared := leases(t, plane)["8108ddc4.kuberik.com"]; shared {
		t.Error("the Lease of an instance without a selector was taken")
	}

	awaitTimed(t, mainMetrics, "HealthCheck "+main.Namespace, "Rollout "+main.Namespace)
	awaitTimed(t, oneMetrics, "ClusterRolloutSchedule ", "HealthCheck "+one.Namespace, "Rollout "+one.Namespace)
	passes := scenario.Labelled(env.Metrics(t, mainMetrics)["controller_runtime_reconcile_total"], "controller", "clusterrolloutschedule")
	if n := scenario.Total(passes); n > 0 {
		t.Errorf("schedules of another instance led to %v passes", n)
	}

	moveAndPromote(t, main, one)
	check := main.HealthCheck()
	main.Change(check, func() { in("one", check) })
	awaitTimed(t, mainMetrics)
	awaitTimed(t, oneMetrics, "ClusterRolloutSchedule ", "HealthCheck "+main.Namespace, "HealthCheck "+one.Namespace,
		"Rollout "+main.Namespace, "Rollout "+one.Namespace)
}

// awaitTimed waits until an instance reports reconcile durations for exactly these
// objects, as "kind namespace".
func awaitTimed(t *testing.T, address string, want ...string) {
	t.Helper()
	slices.Sort(want)
	env.Eventually(t, "durations of nothing but what the instance acts for", func() (bool, string) {
		var got []string
		for _, m := range env.Metrics(t, address)["gotk_reconcile_duration_seconds"].GetMetric() {
			got = append(got, scenario.Label(m, "kind")+" "+scenario.Label(m, "namespace"))
		}
		slices.Sort(got)
		return slices.Equal(want, got), gocmp.Diff(want, got)
	})
}

// moveAndPromote gives a Rollout to another instance in the middle of a bake, and checks
// that this instance promotes its next release.
func moveAndPromote(t *testing.T, main, one *env.Env) {
	t.Helper()
	main.Publish(main.ConfigRelease("1.1.0"))
	main.AwaitState("1.1.0", v1alpha1.BakeInProgress)
	rollout := main.Rollout()
	main.Change(rollout, func() { in("one", rollout) })
	main.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	main.Publish(main.ConfigRelease("1.2.0"))
	done := main.AwaitState("1.2.0", v1alpha1.BakeInProgress)
	if diff := gocmp.Diff([]string{"3 1.2.0 InProgress", "2 1.1.0 Succeeded", "1 1.0.0 Succeeded"}, env.History(done)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	repository := main.OCIRepository("")
	main.Read(repository)
	if repository.Generation != 4 {
		t.Errorf("the target has generation %d, want 4: written once for each release", repository.Generation)
	}
	got := writes(t, main.Plane, "shard-one")["shard-one "+main.Namespace]
	if !slices.Contains(got, "patch kuberik.com/rollouts/status") || !slices.Contains(got, "patch source.toolkit.fluxcd.io/ocirepositories") {
		t.Errorf("the new instance has written only %v", got)
	}
	if diff := gocmp.Diff([]string{"1 1.0.0 Succeeded"}, env.History(one.Live())); diff != "" {
		t.Errorf("history of the other one (-want +got):\n%s", diff)
	}
}

func TestInstanceOfOneNamespaceActsThereAlone(t *testing.T) {
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true}, "--watch-label-selector=unused")
	inside, outside := env.New(t, plane), env.New(t, plane)
	for _, s := range []*env.Env{inside, outside} {
		s.CreateFlux()
		s.Create(s.HealthCheck(), s.Rollout(s.Baked(time.Second, time.Minute)))
		s.Publish(s.ConfigRelease("1.0.0"))
	}
	freeze := &v1alpha1.ClusterRolloutSchedule{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}}
	freeze.Spec.RolloutSelector, freeze.Spec.Rules = &metav1.LabelSelector{}, []v1alpha1.ScheduleRule{{}}
	inside.Create(freeze) // schedules do not hold a first release, and nothing shows when this one is seen
	start(t, plane, "one-namespace", []string{"RUNTIME_NAMESPACE=" + inside.Namespace}, "--watch-all-namespaces=false")
	inside.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	inside.Publish(inside.ConfigRelease("1.1.0"))
	inside.AwaitCandidate("1.1.0")
	inside.Stays("frozen with the cluster", func(r *v1alpha1.Rollout) bool { return r.Current().Version.Tag == "1.0.0" })
	inside.Delete(freeze)
	inside.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	if outside.Live().Current() != nil {
		t.Error("a Rollout of another namespace was promoted")
	}
	for place := range writes(t, plane, "one-namespace", scenario.Account) {
		if place != "one-namespace "+inside.Namespace {
			t.Errorf("something was written where nothing should be: %s", place)
		}
	}
}

func start(t *testing.T, plane *env.Plane, account string, variables []string, args ...string) {
	t.Helper()
	if _, err := plane.StartAnother(t.Context(), account, account, variables, args...); err != nil {
		t.Fatal(err)
	}
}

// in labels an object with its shard. An empty text means none.
func in[T client.Object](shard string, o T) T {
	labels := maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	if shard != "" {
		labels[shardKey] = shard
	}
	o.SetLabels(labels)
	return o
}

// writes returns what each account has written in each namespace: "verb resource" by
// "account namespace". Leases are left out.
func writes(t *testing.T, plane *env.Plane, accounts ...string) map[string][]string {
	t.Helper()
	audited, err := plane.Audited()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, request := range audited {
		for _, account := range accounts {
			place, what := account+" "+cmp.Or(request.Namespace, "everywhere"), request.Verb+" "+request.Resource
			if request.User != scenario.User(account) || !request.IsWrite() || request.Namespace == scenario.Namespace {
				continue
			}
			if !slices.Contains(all[place], what) {
				all[place] = append(all[place], what)
			}
		}
	}
	for _, verbs := range all {
		slices.Sort(verbs)
	}
	return all
}

// leases returns the Leases of the controllers by name, with their holders.
func leases(t *testing.T, plane *env.Plane) map[string]string {
	t.Helper()
	list := &coordinationv1.LeaseList{}
	if err := plane.Client().List(t.Context(), list, client.InNamespace(scenario.Namespace)); err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for i := range list.Items {
		held[list.Items[i].Name] = *list.Items[i].Spec.HolderIdentity
	}
	return held
}

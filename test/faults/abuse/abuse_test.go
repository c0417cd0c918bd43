// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const kibi = 1 << 10

// texts returns a number of texts, each with size bytes.
func texts(prefix string, count, size int) map[string]string {
	all := map[string]string{}
	for i := range count {
		all[fmt.Sprintf("%s%d", prefix, i)] = fmt.Sprintf("%0*d", size, i)
	}
	return all
}

// labels returns labels of half a kilobyte each: the API server stores their keys once
// more, among the managed fields. Eight thousand with short keys are as large, but keep it
// busy for minutes.
func labels(count int) map[string]string {
	return texts(strings.Repeat("x", 200)+"/label-", count, 60)
}

// eventually waits for the effect of the attack.
func (a abuser) eventually(what string, of client.Object, done func() bool) {
	a.T.Helper()
	env.Eventually(a.T, what, func() (bool, string) {
		a.Read(of)
		shown, _ := json.Marshal(of)
		return done(), string(shown[:min(len(shown), 2000)])
	})
}

// suspended returns a Kustomization that Flux does not reconcile.
func (a abuser) suspended(name string) *kustomizev1.Kustomization {
	k := a.Another(name).Kustomization()
	k.Spec.Suspend = true
	return k
}

// awaitUnreadable waits until the controller reports that it cannot read an object.
func (a abuser) awaitUnreadable(o client.Object) {
	a.T.Helper()
	env.Eventually(a.T, "an event about "+o.GetName(), func() (bool, string) {
		events := &corev1.EventList{}
		if err := plane.Client().List(a.T.Context(), events, client.InNamespace(a.Namespace)); err != nil {
			return false, err.Error()
		}
		var seen []string
		for i := range events.Items {
			e := &events.Items[i]
			if e.Reason == v1alpha1.UnreadableReason && e.InvolvedObject.Name == o.GetName() {
				return true, ""
			}
			seen = append(seen, e.InvolvedObject.Name+" "+e.Reason)
		}
		return false, strings.Join(seen, "\n")
	})
}

func TestTimesThatNobodyCanDecode(t *testing.T) {
	x, a := begin(t, "writes times into the status of its HealthChecks that no program in Go can read"), newAbuser(t)
	if err := scenario.Grant(t.Context(), plane.ControlPlane, "tenant-of-"+a.Namespace, "rollout-controller-healthcheck-reporter-role", a.Namespace); err != nil {
		t.Fatal(err)
	}
	const checks = 50
	for i := range checks {
		check := a.Another(fmt.Sprint("odd-", i)).HealthCheck()
		a.makes(check)
		odd := client.RawPatch(types.MergePatchType, []byte(`{"status":{"lastErrorTime":"2026-03-02t12:00:00z"}}`))
		if err := a.own.Status().Patch(t.Context(), check, odd); err != nil && !strings.Contains(err.Error(), "cannot parse") {
			t.Fatal(err) // the test's own client cannot read the response either
		}
	}
	a.awaitUnreadable(a.Another("odd-0").HealthCheck())
	x.passes(checks, "each is reported by an event, and stops nothing")
}

func TestPatternsThatCompileToHundredsOfMegabytes(t *testing.T) {
	x, a := begin(t, "filters tags by patterns of 14 KB, each of which compiles to some 180 MB, and has them looked at again and again"), newAbuser(t)
	const policies = 20
	for i := range policies {
		other := a.Another(fmt.Sprint("pattern-", i))
		policy := other.ImagePolicy(">=1.0.0")
		policy.Spec.Suspend = true // keeps Flux from compiling it as well
		policy.Spec.FilterTags = &imagev1.TagFilter{Pattern: strings.Repeat("a{1000}", 2_000)}
		a.makes(policy, other.Rollout())
		a.says(policy, func() { policy.Status.LatestRef = &imagev1.ImageRef{Name: "any", Tag: "1.0.0"} })
	}
	rollout := a.Another("pattern-0").Rollout()
	a.eventually("a refusal", rollout, func() bool {
		return strings.Contains(env.Condition(rollout, v1alpha1.StalledCondition), v1alpha1.InvalidImagePolicyReason)
	})
	for round := range 5 {
		for i := range policies {
			poked := a.Another(fmt.Sprint("pattern-", i)).Rollout()
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, v1alpha1.ReconcileRequestAnnotation, round)
			a.changes(poked, patch)
		}
	}
	x.passes(policies, "each Rollout says that its ImagePolicy cannot be used")
}

func TestEventsThatAreLargeAndMany(t *testing.T) {
	x, a := begin(t, "gives a Rollout 200 KiB of metadata for its events and 100 targets, and flips its gate 100 times"), newAbuser(t)
	objects := a.Flux(plane.Registry.Host())[1:3]
	rollout := a.Rollout()
	rollout.Annotations = texts("event.toolkit.fluxcd.io/note-", 4_000, 20)
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "flips"}}
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: a.Name}, new(true)
	for i := range 100 {
		k := a.suspended(fmt.Sprint("target-", i))
		k.Annotations = map[string]string{v1alpha1.SubstituteAnnotationPrefix + "VERSION" + v1alpha1.SubstituteAnnotationSuffix: a.Name}
		objects = append(objects, k)
	}
	a.makes(append(objects, gate, rollout)...)
	a.Publish(a.ConfigRelease("1.0.0"))
	a.eventually("the first release", rollout, func() bool { return rollout.Current() != nil })
	a.Publish(a.ConfigRelease("1.1.0"))
	a.AwaitOffer("1.1.0")
	const flips = 100
	for i := range flips {
		patch := fmt.Sprintf(`{"spec":{"passing":%t}}`, i%2 == 1)
		a.changes(gate, patch)
	}
	x.passes(flips, fmt.Sprintf("%d of its events came", alerts.of(a.Namespace)))
}

func TestInventoriesOfKindsThatNobodyServes(t *testing.T) {
	x, a := begin(t, "writes 15,000 objects of as many unknown groups into the inventory of a Kustomization, and has 30 HealthChecks look at it"), newAbuser(t)
	a.looksAt(x, a.unknownKinds(15_000), 30)
}

func TestInventoriesOfUnknownKindsThatMayBeRead(t *testing.T) {
	x, a := begin(t, "writes 1,900 objects of as many unknown groups into the inventory of a Kustomization, and has 30 HealthChecks look at it"), newAbuser(t)
	a.looksAt(x, a.unknownKinds(1_900), 30)
}

// unknownKinds returns a Kustomization with objects in its inventory. Each is of a group
// of its own that the API server does not serve.
func (a abuser) unknownKinds(objects int) *kustomizev1.Kustomization {
	a.T.Helper()
	k := a.suspended("inventory")
	a.makes(k)
	a.says(k, func() {
		k.Status.Inventory = &kustomizev1.ResourceInventory{}
		for i := range objects {
			k.Status.Inventory.Entries = append(k.Status.Inventory.Entries, kustomizev1.ResourceRef{
				ID: fmt.Sprintf("%s_x_g%d.example.com_Thing", a.Namespace, i), Version: "v1",
			})
		}
	})
	return k
}

// looksAt creates HealthChecks that evaluate a Kustomization.
func (a abuser) looksAt(x *trial, k *kustomizev1.Kustomization, checks int) {
	a.T.Helper()
	for i := range checks {
		check := a.Another(fmt.Sprint("look-", i)).HealthCheck()
		check.Annotations[v1alpha1.KustomizationAnnotation] = k.Name
		a.makes(check)
	}
	last := a.Another(fmt.Sprint("look-", checks-1)).HealthCheck()
	a.eventually("a verdict", last, func() bool { return last.Status.Message != nil })
	x.passes(checks, fmt.Sprintf("they say %s: %q", last.Status.Status, (*last.Status.Message)[:min(len(*last.Status.Message), 60)]+"…"))
}

func TestJobsOfAMegabyteInAnInventory(t *testing.T) {
	x, a := begin(t, "creates 60 Jobs of a megabyte each, and has 10 HealthChecks look at all of them"), newAbuser(t)
	k := a.suspended("jobs")
	a.makes(k)
	inventory := &kustomizev1.ResourceInventory{}
	for i := range 60 {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: fmt.Sprint("large-", i), Labels: map[string]string{
			"kustomize.toolkit.fluxcd.io/name": k.Name, "kustomize.toolkit.fluxcd.io/namespace": k.Namespace,
		}}}
		job.Spec.Suspend, job.Spec.Template.Spec.RestartPolicy = new(true), corev1.RestartPolicyNever
		job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "any", Env: []corev1.EnvVar{{Name: "X", Value: strings.Repeat("x", 1000*kibi)}}}}
		a.makes(job)
		inventory.Entries = append(inventory.Entries, kustomizev1.ResourceRef{ID: a.Namespace + "_" + job.Name + "_batch_Job", Version: "v1"})
	}
	a.says(k, func() { k.Status.Inventory = inventory })
	a.looksAt(x, k, 10)
}

// deployment returns a Deployment without pods.
func deployment(namespace, name string, labels map[string]string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	d.Spec.Replicas, d.Spec.Selector = new(int32(0)), &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "any"}}
	return d
}

func TestQuantitiesOfMillionsOfDigits(t *testing.T) {
	x, a := begin(t, "creates Deployments that ask for a CPU quantity of a million digits, where Deployments roll out one at a time"), newAbuser(t)
	group := map[string]string{"group": "odd"}
	a.makes(&coordinationv1.DeploymentCoordination{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "odd"},
		Spec:       coordinationv1.DeploymentCoordinationSpec{LabelSelector: metav1.LabelSelector{MatchLabels: group}},
	})
	const deployments = 20
	for i := range deployments {
		d := deployment(a.Namespace, fmt.Sprint("digits-", i), group)
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1e1000000")}
		a.makes(d)
	}
	coordination := &coordinationv1.DeploymentCoordination{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "odd"}}
	a.eventually("a coordination of them all", coordination, func() bool { return len(coordination.Status.Deployments) == deployments })
	x.passes(deployments, "their coordination goes on")
}

func TestNamesByTheThousand(t *testing.T) {
	x, a := begin(t, "creates 10 Kustomizations that name 4,000 Rollouts each, and changes them 3 times"), newAbuser(t)
	const kustomizations, rounds = 10, 3
	var all []*kustomizev1.Kustomization
	for i := range kustomizations {
		k := a.suspended(fmt.Sprint("names-", i))
		k.Annotations = map[string]string{}
		for j := range 4_000 {
			k.Annotations[fmt.Sprintf("rollout.kuberik.com/substitute.V%d.from", j)] = fmt.Sprintf("r%d", j)
		}
		a.makes(k)
		all = append(all, k)
	}
	named := a.Another("r1").Rollout()
	a.makes(named)
	a.eventually("a Rollout that says so", named, func() bool {
		return strings.Contains(env.Condition(named, v1alpha1.StalledCondition), "at most 50 may write into one Kustomization") || len(named.Status.Conditions) > 0
	})
	for round := range rounds {
		for _, k := range all {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"rollout.kuberik.com/substitute.V%d.from":"other"}}}`, round)
			a.changes(k, patch)
		}
	}
	x.passes(kustomizations*rounds, "50 names of each count")
}

func TestObjectsOfAMegabyte(t *testing.T) {
	x, a := begin(t, "creates 140 objects that are as large as the API server takes, of 7 kinds, and changes most of them"), newAbuser(t)
	const ofEach = 20
	var last client.Object
	for i := range ofEach {
		name := fmt.Sprint("large-", i)
		other := a.Another(name)
		check := other.HealthCheck()
		check.Labels = labels(2_000)
		rollout := other.Rollout(func(spec *v1alpha1.RolloutSpec) {
			spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{MatchLabels: labels(2_000)}
		})
		rollout.Annotations = texts("rollout.kuberik.com/note-", 2_500, 60)
		gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name, Labels: labels(2_000)}}
		gate.Spec.RolloutRef = &v1alpha1.LocalObjectReference{Name: a.Name}
		k := a.suspended(name)
		k.Annotations = map[string]string{v1alpha1.SubstituteAnnotationPrefix + "VERSION" + v1alpha1.SubstituteAnnotationSuffix: name}
		k.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{"VERSION": strings.Repeat("x", 1000*kibi)}}
		policy := other.ImagePolicy(">=1.0.0")
		policy.Spec.Suspend = true
		policy.Spec.FilterTags = &imagev1.TagFilter{Pattern: strings.Repeat("x", 1000*kibi)}
		scan := other.ImageRepository(plane.Registry.Host())
		scan.Spec.Suspend = true
		scan.Spec.SecretRef = &meta.LocalObjectReference{Name: strings.Repeat("x", 1000*kibi)}
		a.makes(check, rollout, gate, k, policy, scan)
		d := deployment(a.Namespace, name, map[string]string{"app": name})
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: strings.Repeat("x", 1000*kibi)}}
		a.makes(d)
		last = check
		for _, o := range []client.Object{check, rollout, gate, k, policy, scan} {
			a.changes(o, `{"metadata":{"annotations":{"changed":"yes"}}}`)
		}
	}
	a.awaitUnreadable(last)
	x.passes(7*ofEach, "each is reported by an event, and little of it is kept")
	restarts(x)
}

// restarts makes the controller list everything again.
func restarts(x *trial) {
	x.T.Helper()
	if err := plane.Controller.Restart(x.T.Context()); err != nil {
		x.T.Fatal(err)
	}
	again := plane.Controller.PID()
	x.promote()
	if plane.Controller.PID() != again {
		x.T.Errorf("after a restart the controller has ended; it was killed %d times for its memory", allowed.Killed())
	}
}

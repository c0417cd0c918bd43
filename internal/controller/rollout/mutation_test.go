// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// detector makes client-go panic when an object of a cache is changed. client-go reads it
// once, when a process starts.
const detector = "KUBE_CACHE_MUTATION_DETECTOR"

// seed repeats the random edits of a run.
var seed = flag.Uint64("seed", 0, "what the random edits begin with; 0 is another one each time")

// TestNothingWritesToTheCachesWhateverPeopleDo: two hundred Rollouts are taken over from
// upstream's controller and promoted again and again, while users make random edits. In
// the end each is where it should be, no promotion was repeated, and no object in the
// shared caches was changed.
func TestNothingWritesToTheCachesWhateverPeopleDo(t *testing.T) {
	if testing.Short() {
		t.Skip("two hundred Rollouts take long: make test-all has them, in the process that asks the detector anyway")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("repeat it with -args -seed=%d", *seed)
	if watched, _ := strconv.ParseBool(os.Getenv(detector)); !watched {
		runWithDetector(t)
		return
	}
	c := openCrowd(t)
	c.play(t, testPlane.RESTConfig())
	c.comesToRest("1.14.0") // taken over as it is
	c.Expect(c.Events.All()).NotTo(ContainElement(HaveField("Reason", v1alpha1.BakeTimeDeployingReason)), "nothing is promoted for it")
	random := rand.New(rand.NewPCG(*seed, 0))
	c.releases("1.15.0")
	for range 3 {
		c.editAtRandom(random)
		c.Expect(c.others()).To(Succeed())
	}
	c.Expect(c.each(c.calm)).To(Succeed())
	c.releases("2.0.0")
	c.comesToRest("2.0.0")
	c.repeatsNothing()
	time.Sleep(2 * time.Second) // the detector checks each second
}

// runWithDetector runs the same test in a separate process.
func runWithDetector(t *testing.T) {
	t.Helper()
	t.Parallel()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", fmt.Sprintf("-seed=%d", *seed))
	command.Env = append(os.Environ(), detector+"=true")
	if output, err := command.CombinedOutput(); err != nil {
		const shown = 20_000
		t.Fatalf("%v\n%s", err, output[max(0, len(output)-shown):])
	}
}

// crowd is an env with many Rollouts, each with an OCIRepository and a Kustomization of
// the same name. A quarter waits for a HealthCheck.
type crowd struct {
	*testEnv
	names []string
	tags  []string // that were released
}

// trains are the ImagePolicies that the Rollouts share.
var trains = []string{"train-0", "train-1", "train-2", "train-3"}

func openCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{testEnv: openAlone(t), tags: []string{"1.13.0", "1.14.0"}}
	for i := range 200 {
		c.names = append(c.names, fmt.Sprintf("shop-%03d", i))
	}
	for _, train := range trains {
		c.Add(fixture.MakeScan(train).Found(c.tags...).Obj(), fixture.MakePolicy(train).Semver(">=1.0.0").Latest("1.14.0").Obj())
	}
	over := v1alpha1.ScheduleRule{Name: "over", DateRange: &v1alpha1.DateRange{Start: "2020-01-01", End: "2020-12-31"}}
	c.Add(fixture.MakeSchedule("always").Deny().Rules(over).Obj()) // maintains a gate for each
	text, err := os.ReadFile("testdata/upstream-status.yaml")
	c.Expect(err).NotTo(HaveOccurred())
	status := map[string]any{}
	c.Expect(yaml.UnmarshalStrict(text, &status)).To(Succeed())
	c.Expect(c.each(func(name string) error { return c.join(name, status) })).To(Succeed())
	c.Expect(c.others()).To(Succeed())
	return c
}

// join creates a Rollout and its targets as upstream's controller leaves them.
func (c *crowd) join(name string, status map[string]any) error {
	i := slices.Index(c.names, name)
	rollout := fixture.MakeRollout(name).Obj()
	rollout.Spec.ReleasesImagePolicy.Name = trains[i%len(trains)]
	objects := []client.Object{
		fixture.MakeRepository(name).DrivenBy(name).Obj(),
		fixture.MakeKustomization(name).DrivenBy(name, "VERSION").DrivenBy(c.names[(i+1)%len(c.names)], "NEXT").Obj(), rollout,
	}
	if i%4 == 0 {
		check := fixture.MakeHealthCheck(name).Obj()
		check.Labels = map[string]string{"app": name}
		rollout.Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{MatchLabels: check.Labels}
		objects = append(objects, check)
	}
	for _, o := range objects {
		o.SetNamespace(c.Namespace)
		if err := c.Create(c.Ctx, o); err != nil {
			return err
		}
	}
	return c.upstreamLeaves(name, status)
}

// upstreamLeaves simulates upstream's controller: it applied whole maps under our field
// manager, and wrote the whole status.
func (c *crowd) upstreamLeaves(name string, status map[string]any) error {
	for kind, spec := range map[string]values{
		"source.toolkit.fluxcd.io/v1 OCIRepository":    {"ref": values{"tag": "1.14.0", "semverFilter": ".*"}},
		"kustomize.toolkit.fluxcd.io/v1 Kustomization": {"postBuild": values{"substitute": values{"VERSION": "1.14.0", "NEXT": "1.14.0", "TIER": "gold"}}},
	} {
		applied := &unstructured.Unstructured{Object: map[string]any{}}
		if err := appliedBy(applied, kind, spec); err != nil {
			return err
		}
		applied.SetNamespace(c.Namespace)
		applied.SetName(name)
		err := c.Apply(c.Ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("rollout-controller"), client.ForceOwnership)
		if err != nil {
			return err
		}
	}
	rollout := &unstructured.Unstructured{}
	rollout.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
	if err := c.Get(c.Ctx, c.Key(name), rollout); err != nil {
		return err
	}
	rollout.Object["status"] = (&unstructured.Unstructured{Object: status}).DeepCopy().Object
	return c.Status().Update(c.Ctx, rollout, client.FieldOwner("manager"))
}

// appliedBy sets the kind, which is given after its group and version, and the spec.
func appliedBy(o *unstructured.Unstructured, kind string, spec values) error {
	var version, name string
	if _, err := fmt.Sscan(kind, &version, &name); err != nil {
		return err
	}
	text, err := yaml.Marshal(values{"apiVersion": version, "kind": name, "spec": spec})
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, o)
}

// each runs a function for each Rollout.
func (c *crowd) each(do func(name string) error) error {
	return atOnce(len(c.names), func(i int) error { return do(c.names[i]) })
}

// atOnce runs a function count times, concurrently.
func atOnce(count int, do func(i int) error) error {
	var waiting sync.WaitGroup
	errs := make([]error, 8)
	for part := range errs {
		waiting.Go(func() {
			for i := part; i < count; i += len(errs) {
				errs[part] = errors.Join(errs[part], do(i))
			}
		})
	}
	waiting.Wait()
	return errors.Join(errs...)
}

func (c *crowd) someTag(random *rand.Rand) string  { return c.tags[random.IntN(len(c.tags))] }
func (c *crowd) someName(random *rand.Rand) string { return c.names[random.IntN(len(c.names))] }

// releases publishes a tag for all Rollouts.
func (c *crowd) releases(tag string) {
	c.tags = append(c.tags, tag)
	for _, train := range trains {
		c.release(train, tag)
	}
}

func (c *crowd) editAtRandom(random *rand.Rand) {
	for range len(c.names) / 2 {
		c.Expect(edits[random.IntN(len(edits))](c, c.someName(random), random)).To(Succeed())
	}
}

// others simulates Flux, which pulls and applies what is requested, and the writers of
// HealthChecks.
func (c *crowd) others() error {
	sources, kustomizations, checks := &sourcev1.OCIRepositoryList{}, &kustomizev1.KustomizationList{}, &v1alpha1.HealthCheckList{}
	for _, list := range []client.ObjectList{sources, kustomizations, checks} {
		if err := c.List(c.Ctx, list, client.InNamespace(c.Namespace)); err != nil {
			return err
		}
	}
	err := atOnce(len(sources.Items), func(i int) error { return c.pull(&sources.Items[i]) })
	pulled := map[string]string{}
	for i := range sources.Items {
		if artifact := sources.Items[i].Status.Artifact; artifact != nil {
			pulled[sources.Items[i].Name] = artifact.Revision
		}
	}
	return errors.Join(err,
		atOnce(len(kustomizations.Items), func(i int) error {
			k := &kustomizations.Items[i]
			return c.applyOne(k, pulled[k.Name])
		}),
		atOnce(len(checks.Items), func(i int) error { return c.checkSays(&checks.Items[i], v1alpha1.HealthStatusHealthy) }))
}

func (c *crowd) pull(r *sourcev1.OCIRepository) error {
	if r.Spec.Reference == nil || c.upToDate(r) {
		return nil
	}
	before := r.DeepCopy()
	r.Status.ObservedGeneration, r.Status.Artifact = r.Generation, fixture.Artifact(c.revisionOf(r.Spec.Reference))
	r.Status.LastHandledReconcileAt = r.Annotations[v1alpha1.ReconcileRequestAnnotation]
	fluxSays(&r.Status.Conditions, r.Generation, metav1.ConditionTrue, "stored artifact")
	return client.IgnoreNotFound(c.Status().Patch(c.Ctx, r, client.MergeFrom(before)))
}

func (c *crowd) applyOne(k *kustomizev1.Kustomization, revision string) error {
	if revision == "" || k.Status.ObservedGeneration == k.Generation && k.Status.LastAppliedRevision == revision {
		return nil
	}
	before := k.DeepCopy()
	k.Status.ObservedGeneration, k.Status.LastAttemptedRevision, k.Status.LastAppliedRevision = k.Generation, revision, revision
	fluxSays(&k.Status.Conditions, k.Generation, metav1.ConditionTrue, "Applied revision: "+revision)
	return c.Status().Patch(c.Ctx, k, client.MergeFrom(before))
}

func (c *crowd) checkSays(check *v1alpha1.HealthCheck, verdict v1alpha1.HealthStatus) error {
	if check.Status.Status == verdict {
		return nil
	}
	before := check.DeepCopy()
	if check.Status.Status = verdict; verdict == v1alpha1.HealthStatusUnhealthy {
		check.Status.LastErrorTime = &metav1.Time{Time: c.Clock.Now()}
	}
	return c.Status().Patch(c.Ctx, check, client.MergeFrom(before))
}

// comesToRest waits until each Rollout has proven a release and its targets have it.
func (c *crowd) comesToRest(tag string) {
	c.Eventually(func() ([]string, error) {
		all := &v1alpha1.RolloutList{}
		if err := errors.Join(c.others(), c.List(c.Ctx, all, client.InNamespace(c.Namespace))); err != nil {
			return nil, err
		}
		var restless []string
		for i := range all.Items {
			if current := all.Items[i].Current(); current.Version.Tag != tag || current.State() != v1alpha1.BakeSucceeded {
				restless = append(restless, fmt.Sprintf("%s: %+v %+v", all.Items[i].Name, *current, all.Items[i].Status.Conditions))
				c.Expect(c.help(&all.Items[i])).To(Succeed())
			}
		}
		c.Pass(time.Minute) // conflicts from manual edits end with time
		return restless, nil
	}).WithPolling(500 * time.Millisecond).WithTimeout(5 * time.Minute).Should(BeEmpty()) // one check of so many takes up to 25 s under load
	for _, name := range c.names {
		c.Expect(c.carried(name)).To(And(HaveKeyWithValue("tag", tag), HaveKeyWithValue("VERSION", tag)), name)
	}
}

// help does what users do for a Rollout that waits for them, or for time to pass.
func (c *crowd) help(rollout *v1alpha1.Rollout) error {
	asked := values{v1alpha1.ReconcileRequestAnnotation: c.Clock.Now().String()}
	switch applied := apimeta.FindStatusCondition(rollout.Status.Conditions, v1alpha1.TargetsAppliedCondition); {
	case rollout.Current().State() == v1alpha1.BakeFailed:
		asked[v1alpha1.UnblockFailedAnnotation] = "true"
	case applied == nil || applied.Reason != v1alpha1.TargetConflictReason:
		return nil
	}
	return c.edit(&v1alpha1.Rollout{}, rollout.Name, annotations(asked))
}

// repeatsNothing checks that each promotion has the next ID and another release than the
// one before.
func (c *crowd) repeatsNothing() {
	promotions := 0
	for _, name := range c.names {
		history := c.history(name)
		for i := range len(history) - 1 {
			newer, older := history[i], history[i+1]
			if newer.ID <= 14 {
				break // of upstream
			}
			promotions++
			c.Expect(newer.ID).To(Equal(older.ID+1), "%s: %v", name, history)
			c.Expect(newer.Tag).NotTo(Equal(older.Tag), "%s: %v", name, history)
		}
	}
	c.Expect(promotions).To(BeNumerically(">", len(c.names)), "there was something to repeat")
}

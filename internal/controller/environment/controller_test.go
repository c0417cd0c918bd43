// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func staging() *fixture.EnvironmentBuilder { return fixture.MakeEnvironment("staging") }

func prod() *fixture.EnvironmentBuilder { return fixture.MakeEnvironment("prod") }

func rollouts(names ...string) []client.Object {
	var all []client.Object
	for _, name := range names {
		all = append(all, fixture.MakeRollout(name).Obj())
	}
	return all
}

func TestEnvironmentRecordsWhatItHasDeployed(t *testing.T) {
	s := open(t, append(rollouts("staging"), staging().Obj())...)
	s.reconcile("staging")
	s.Expect(s.ready("staging")).To(Equal(condition{
		metav1.ConditionTrue, environmentsv1.SucceededReason, "comes after no other environment"}))
	s.Expect(s.environment("staging").Status.Releases).To(BeEmpty())

	s.promotes("staging", entry("1.0.0").Deploying())
	s.reconcile("staging")
	said := s.environment("staging").Status
	s.Expect(said.Releases).To(HaveLen(1))
	s.Expect(said.Releases[0].State).To(Equal(v1alpha1.BakeDeploying))
	s.Expect(said.ObservedGeneration).To(Equal(int64(1)))

	s.promotes("staging", baked("1.0.0").Version(fixture.MakeRelease("1.0.0").Digest("sha256:1.0.0").Revision("9f3c").Obj()))
	s.Pass(2 * time.Hour)
	s.reconcile("staging")
	said = s.environment("staging").Status
	s.Expect(said.Releases).To(HaveLen(1))
	newest := said.Releases[0]
	s.Expect(newest.Soaked).To(Equal(&metav1.Duration{Duration: time.Hour}), "only the bake: nobody measured the time since")
	s.Expect(newest.Current).To(BeTrue())
	s.Expect(newest.Evidence).To(Equal(environmentsv1.EvidenceBaked))
	s.Expect(said.CurrentVersion).To(Equal("9f3c"))
	s.Expect(said.LastStatusChangeTime.Time).To(BeTemporally("==", fixture.Noon.Add(time.Hour)))
	s.Expect(s.writes()).To(Equal([]string{"patch Environment/status staging", "patch Environment/status staging", "patch Environment/status staging"}))
	s.Expect(s.Events.Take()).To(BeEmpty(), "what a Rollout does is announced by the Rollout")
}

func TestEnvironmentAtRestIsNotWritten(t *testing.T) {
	s := open(t, append(rollouts("staging", "prod"), staging().Obj(), prod().After("staging").Obj())...)
	s.promotes("staging", grownOld(entry("1.1.0")), baked("1.0.0"))
	s.promotes("prod", grownOld(entry("1.0.0")))
	s.reconcile("staging", "prod")
	s.writes()
	for range 5 {
		s.Pass(time.Hour)
		s.restart()
		s.reconcile("staging", "prod")
	}
	s.Expect(s.writes()).To(BeEmpty())
}

// grownOld makes a promotion one whose release was healthy for so long that nothing about it
// is confirmed any more.
func grownOld(e *fixture.EntryBuilder) *fixture.EntryBuilder {
	return e.Succeeded().BakeStart(fixture.Noon.Add(-8 * 24 * time.Hour)).BakeEnd(fixture.Noon)
}

func TestYoungReleaseIsConfirmed(t *testing.T) {
	s := open(t, append(rollouts("staging", "prod"), staging().Obj(), prod().After("staging").Obj())...)
	s.promotes("staging", baked("1.0.0"))
	s.reconcile("staging", "prod")
	s.writes()
	for range 60 {
		s.Pass(time.Minute)
		s.reconcile("staging", "prod")
	}
	s.Expect(s.writes()).To(HaveLen(4), "staging confirms it twice, and prod reads that")
	s.Expect(s.environment("staging").Status.Releases[0].Soaked.Duration).To(Equal(40 * time.Minute))
}

// kuberiksInfo has exactly the fields that other clients of this API know.
type kuberiksInfo struct {
	Environment    string `json:"environment"`
	EnvironmentURL string `json:"environmentUrl,omitempty"`
	Relationship   *struct {
		Environment string `json:"environment"`
		Type        string `json:"type"`
	} `json:"relationship,omitempty"`
	History []fixture.UpstreamEntry `json:"history,omitempty"`
}

func TestDashboardsSeeTheEnvironmentsInTheirOrder(t *testing.T) {
	s := open(t, append(rollouts("dev", "staging", "prod"), fixture.MakeEnvironment("dev").Obj(), staging().After("dev").Obj(),
		prod().After("staging").With(func(spec *environmentsv1.EnvironmentSpec) { spec.URL = "https://shop.example.com" }).Obj())...)
	built := func(tag string) v1alpha1.VersionInfo {
		return fixture.MakeRelease(tag).Digest("sha256:" + tag).Revision("commit of " + tag).Obj()
	}
	s.promotes("dev", baked("1.2.0").Version(built("1.2.0")), baked("1.1.0"))
	s.promotes("staging", baked("1.1.0").Version(built("1.1.0")), baked("1.0.0").Version(built("1.0.0")))
	s.promotes("prod", entry("1.0.0").Version(built("1.0.0")).Deploying())
	s.reconcile("dev", "staging", "prod")

	stored, err := json.Marshal(s.environment("prod").Status.EnvironmentInfos)
	s.Expect(err).NotTo(HaveOccurred())
	var infos []kuberiksInfo
	strict := json.NewDecoder(strings.NewReader(string(stored)))
	strict.DisallowUnknownFields()
	s.Expect(strict.Decode(&infos)).To(Succeed())
	var seen []string
	for _, info := range infos {
		text := info.Environment
		if info.Relationship != nil {
			text += " " + info.Relationship.Type + " " + info.Relationship.Environment
		}
		for _, entry := range info.History {
			// Dashboards find a release in other environments by its revision.
			text += fmt.Sprintf(", %d %s (%s) %s", *entry.ID, entry.Version.Tag, *entry.Version.Revision, *entry.BakeStatus)
		}
		seen = append(seen, text+info.EnvironmentURL)
	}
	s.Expect(seen).To(Equal([]string{
		"dev, 2 1.2.0 (commit of 1.2.0) Succeeded",
		"staging After dev, 2 1.1.0 (commit of 1.1.0) Succeeded, 1 1.0.0 (commit of 1.0.0) Succeeded",
		"prod After staging, 1 1.0.0 (commit of 1.0.0) Deployinghttps://shop.example.com",
	}))
}

func TestWhatAnOlderClientRemovesComesBack(t *testing.T) {
	s := open(t, append(rollouts("staging", "prod"), staging().Obj(), prod().After("staging").Obj())...)
	s.promotes("staging", baked("1.0.0"))
	s.reconcile("staging", "prod")
	before := s.environment("prod").Status
	s.ChangeStatus(prod().Obj(), func(o client.Object) {
		e := o.(*environmentsv1.Environment)
		e.Status = environmentsv1.EnvironmentStatus{Conditions: e.Status.Conditions}
	})
	s.Pass(time.Minute)
	s.reconcile("prod")
	after := s.environment("prod").Status
	s.Expect(after.Upstreams[0].VerifiedTime.Time).To(BeTemporally("==", before.Upstreams[0].VerifiedTime.Add(time.Minute)), "it soaks anew at worst")
	after.Upstreams[0].VerifiedTime = before.Upstreams[0].VerifiedTime
	s.Expect(cmp.Diff(before, after)).To(BeEmpty())
}

func TestProblemsOfAnEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		want    condition
	}{
		"no Rollout": {nil, condition{
			metav1.ConditionFalse, environmentsv1.RolloutNotFoundReason, "Rollout prod does not exist: create it, or correct spec.rolloutRef"}},
		"one upstream": {append(rollouts("prod", "staging"), staging().Obj()), condition{
			metav1.ConditionTrue, environmentsv1.SucceededReason, "takes releases that staging has proven"}},
		"no upstream": {rollouts("prod"), condition{
			metav1.ConditionFalse, environmentsv1.UpstreamNotFoundReason,
			"there is no Environment staging of application shop for Rollout staging: create it, or correct spec.upstreams"}},
		"another application": {append(rollouts("prod"), staging().With(func(s *environmentsv1.EnvironmentSpec) { s.Name = "cart" }).Obj()), condition{
			metav1.ConditionFalse, environmentsv1.UpstreamNotFoundReason,
			"there is no Environment staging of application shop for Rollout staging: create it, or correct spec.upstreams"}},
		"a cycle of two": {append(rollouts("prod", "staging"), staging().After("prod").Obj()), condition{
			metav1.ConditionFalse, environmentsv1.UpstreamCycleReason,
			"Environment prod comes after itself (prod after staging after prod): remove one of these upstreams"}},
		"a cycle of three": {
			append(rollouts("prod", "staging", "dev"), staging().After("dev").Obj(), fixture.MakeEnvironment("dev").After("prod").Obj()), condition{
				metav1.ConditionFalse, environmentsv1.UpstreamCycleReason,
				"Environment prod comes after itself (prod after staging after dev after prod): remove one of these upstreams"}},
		"an upstream that is parallel to it": {append(rollouts("prod", "staging"), staging().After("prod", fixture.InParallel).Obj()), condition{
			metav1.ConditionTrue, environmentsv1.SucceededReason, "takes releases that staging has proven"}},
		"an upstream of another controller": {
			append(rollouts("prod"), staging().With(func(s *environmentsv1.EnvironmentSpec) {
				s.Backend = environmentsv1.Backend{Type: environmentsv1.BackendGitHub, Project: "shop/shop"}
			}).Obj()), condition{metav1.ConditionFalse, environmentsv1.UpstreamUnreadableReason,
				"the Environment of staging has backend.type github, and does not say here what it has proven: give it type cluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, append(test.objects, prod().After("staging").Obj())...)
			for _, o := range test.objects {
				if e, ok := o.(*environmentsv1.Environment); ok && e.Spec.Backend.Type == environmentsv1.BackendCluster {
					s.reconcile(o.GetName())
				}
			}
			s.Events.Take()
			s.reconcile("prod")
			s.Expect(s.ready("prod")).To(Equal(test.want))
			wrong := test.want.Status == metav1.ConditionFalse
			s.Expect(s.stalled("prod")).To(Equal(wrong && test.want.Reason != environmentsv1.UpstreamUnreadableReason))
			if s.stalled("prod") {
				s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
					On: "prod", Type: corev1.EventTypeWarning, Reason: test.want.Reason, Message: test.want.Message}}))
			} else {
				s.Expect(s.Events.Take()).To(BeEmpty())
			}
			s.writes()
			s.Pass(time.Hour)
			s.reconcile("prod")
			s.Expect(s.writes()).To(BeEmpty(), "what stays as it is keeps its time")
		})
	}
}

func TestEnvironmentsMayBeParallelToEachOther(t *testing.T) {
	s := open(t, append(rollouts("eu", "us"), fixture.MakeEnvironment("eu").After("us", fixture.InParallel).Obj(),
		fixture.MakeEnvironment("us").After("eu", fixture.InParallel).Obj())...)
	s.reconcile("eu", "us", "eu")
	s.Expect(s.ready("eu")).To(Equal(condition{metav1.ConditionTrue, environmentsv1.SucceededReason, "takes releases that did not fail in us"}))
	s.Expect(s.ready("us")).To(Equal(condition{metav1.ConditionTrue, environmentsv1.SucceededReason, "takes releases that did not fail in eu"}))
}

func TestEnvironmentThatIsCorrectedCanBeUsedAgain(t *testing.T) {
	s := open(t, append(rollouts("prod", "staging"), prod().After("staging").Obj())...)
	s.reconcile("prod")
	s.Expect(s.ready("prod").Reason).To(Equal(environmentsv1.UpstreamNotFoundReason))
	s.Add(staging().Obj())
	s.reconcile("prod")
	s.Expect(s.ready("prod")).To(Equal(condition{metav1.ConditionFalse, environmentsv1.UpstreamUnreadableReason,
		"the Environment of staging has no status yet: it will be written as soon as the controller sees it"}))
	s.reconcile("staging", "prod")
	s.Expect(s.ready("prod").Status).To(Equal(metav1.ConditionTrue))
}

func TestUpstreamInAnotherNamespaceMustLetThisOneIn(t *testing.T) {
	s := open(t, rollouts("prod")...)
	other := s.OpenNamespace(nil)
	denied := condition{metav1.ConditionFalse, v1alpha1.AccessDeniedReason, fmt.Sprintf(
		"namespace %s has no Environment staging of application shop for Rollout staging whose spec.accessFrom lets in namespace %s: "+
			"create it there, or add the namespace", other, s.Namespace)}
	s.Add(prod().After("staging", fixture.From(other)).Obj())
	s.reconcile("prod")
	s.Expect(s.ready("prod")).To(Equal(denied), "there is none")

	s.Add(staging().InNamespace(other).LetsIn(map[string]string{"kubernetes.io/metadata.name": "another"}).Says().Obj())
	s.reconcile("prod")
	s.Expect(s.ready("prod")).To(Equal(denied), "there is one, which nobody may learn")

	s.LabelNamespace("team", "shop")
	open := &environmentsv1.Environment{}
	s.Expect(s.Get(s.Ctx, client.ObjectKey{Namespace: other, Name: "staging"}, open)).To(Succeed())
	open.Spec.AccessFrom = staging().LetsIn(map[string]string{"team": "shop"}).Obj().Spec.AccessFrom
	s.Expect(s.Update(s.Ctx, open)).To(Succeed())
	s.reconcile("prod")
	s.Expect(s.ready("prod").Status).To(Equal(metav1.ConditionTrue))

	s.reconciler.NoCrossNamespaceRefs = true
	s.reconcile("prod")
	s.Expect(s.ready("prod")).To(Equal(condition{metav1.ConditionFalse, v1alpha1.AccessDeniedReason, fmt.Sprintf(
		"the upstream staging is in namespace %s, but references across namespaces are not allowed: name one of this namespace", other)}))
}

// An Environment with the right names in a third namespace speaks for nobody.
func TestImpersonatorHasNoEffect(t *testing.T) {
	s := open(t, append(rollouts("prod", "staging"), staging().Obj(), prod().After("staging").Obj())...)
	s.promotes("staging", baked("1.0.0"))
	third := s.OpenNamespace(nil)
	s.Add(staging().InNamespace(third).LetsIn(nil).Says(environmentsv1.Release{Tag: "6.6.6", State: v1alpha1.BakeSucceeded}).Obj())
	s.reconcile("staging", "prod")
	s.Expect(s.environment("prod").Status.Upstreams[0].ObservedDigest).To(Equal(environment.Digest(s.environment("staging").Status.Releases)))
}

func TestSinceWhenAnUpstreamSaysSomething(t *testing.T) {
	s := open(t, append(rollouts("staging", "prod"), staging().Obj(), prod().After("staging").Obj())...)
	verified := func() time.Duration { return s.environment("prod").Status.Upstreams[0].VerifiedTime.Sub(fixture.Noon) }
	s.Pass(1500 * time.Millisecond)
	s.promotes("staging", baked("1.0.0"))
	s.reconcile("staging", "prod")
	s.Expect(verified()).To(Equal(2*time.Second), "it is rounded up, so that no soak is shorter")

	s.Pass(time.Minute)
	s.restart()
	s.reconcile("staging", "prod")
	s.Expect(verified()).To(Equal(2 * time.Second))

	s.Pass(59 * time.Minute)
	s.Expect(s.Delete(s.Ctx, s.environment("staging"))).To(Succeed())
	s.reconcile("prod")
	s.Expect(verified()).To(Equal(2 * time.Second))
	s.Expect(s.environment("prod").Status.Upstreams[0].Message).To(HavePrefix("there is no Environment staging"))

	s.Add(staging().Obj())
	s.promotes("staging", entry("1.1.0").Deploying(), baked("1.0.0"))
	s.reconcile("staging", "prod")
	s.Expect(verified()).To(Equal(time.Hour + 2*time.Second))
	s.Expect(s.environment("prod").Status.Upstreams[0].Message).To(BeEmpty())
}

func TestHealthOfAnEnvironmentIsRecorded(t *testing.T) {
	s := open(t, fixture.MakeRollout("staging").SelectAllChecks().Obj(), staging().Obj(), fixture.MakeHealthCheck("smoke").Healthy().Obj())
	s.promotes("staging", baked("1.0.0"))
	s.reconcile("staging")
	check := func(status v1alpha1.HealthStatus, at *metav1.Time) {
		s.ChangeStatus(fixture.MakeHealthCheck("smoke").Obj(), func(o client.Object) {
			o.(*v1alpha1.HealthCheck).Status.Status, o.(*v1alpha1.HealthCheck).Status.LastErrorTime = status, at
		})
	}
	s.Pass(time.Hour)
	check(v1alpha1.HealthStatusUnhealthy, &metav1.Time{Time: s.Clock.Now()})
	s.reconcile("staging")
	s.Expect(s.environment("staging").Status.Releases[0].Unhealthy).To(Equal("HealthCheck " + s.Namespace + "/smoke"))
	s.Expect(s.environment("staging").Status.Releases[0].HealthySince).To(BeNil())

	s.Pass(time.Minute)
	check(v1alpha1.HealthStatusHealthy, &metav1.Time{Time: s.Clock.Now().Add(-time.Minute)})
	s.reconcile("staging")
	recovered := s.environment("staging").Status.Releases[0]
	s.Expect(recovered.Unhealthy).To(BeEmpty())
	s.Expect(recovered.HealthySince.Time).To(BeTemporally("==", s.Clock.Now()))
	s.Expect(recovered.Soaked.Duration).To(BeZero())
}

func TestEnvironmentOfAnotherControllerIsLeftAlone(t *testing.T) {
	s := open(t, append(rollouts("prod"), prod().With(func(spec *environmentsv1.EnvironmentSpec) {
		spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendGitHub, Project: "shop/shop", Secret: "token"}
		spec.Relationship = &environmentsv1.Relationship{Environment: "staging", Type: environmentsv1.After}
	}).Obj())...)
	s.promotes("prod", baked("1.0.0"))
	_, err := s.reconciler.Reconcile(s.Ctx, ctrl.Request{NamespacedName: s.Key("prod")})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.writes()).To(BeEmpty())
	s.Expect(s.environment("prod").Status).To(BeZero())
}

// The statuses of the largest histories and the longest texts fit the limit for objects
// many times over.
func TestStatusHasALimit(t *testing.T) {
	long := strings.Repeat("ß", 4096)
	s := open(t, rollouts("prod")...)
	b := prod()
	for i := range 16 {
		name := fmt.Sprintf("staging-%02d-%s", i, strings.Repeat("x", 40))
		s.Add(fixture.MakeRollout(name).Obj(), fixture.MakeEnvironment(name).Obj())
		s.promotes(name, many(long)...)
		s.reconcile(name)
		b.After(name)
	}
	s.Add(b.Obj())
	s.promotes("prod", many(long)...)
	s.reconcile("prod")
	for _, name := range []string{"prod", "staging-00-" + strings.Repeat("x", 40)} {
		text, err := json.Marshal(s.environment(name).Status)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(len(text)).To(BeNumerically("<", 64<<10), name)
	}
}

func many(text string) []*fixture.EntryBuilder {
	var entries []*fixture.EntryBuilder
	for i := range 50 {
		tag := fmt.Sprintf("1.0.%d-%s", i, strings.Repeat("t", 100))
		e := entry(tag).Failed().BakeEnd(fixture.Noon).Because(text[:2000])
		entries = append(entries, e.Version(fixture.MakeRelease(tag).Digest("sha256:"+strings.Repeat("a", 60)+fmt.Sprintf("%04d", i)).Revision(text[:1000]).Obj()))
	}
	return entries
}

func TestEventsWakeTheEnvironmentsThatTheyConcern(t *testing.T) {
	s := open(t, fixture.MakeRollout("staging").SelectAllChecks().Obj(), fixture.MakeRollout("prod").Obj(),
		fixture.MakeHealthCheck("smoke").Healthy().Obj(), staging().Obj(), prod().After("staging").Obj())
	s.play(t)
	observed := func() string {
		upstreams := s.environment("prod").Status.Upstreams
		if len(upstreams) == 0 {
			return ""
		}
		return upstreams[0].ObservedDigest
	}
	said := func() string { return environment.Digest(s.environment("staging").Status.Releases) }
	s.promotes("staging", baked("1.0.0"))
	s.Eventually(func() []environmentsv1.Release { return s.environment("staging").Status.Releases }).Should(HaveLen(1))
	s.Eventually(observed).Should(Equal(said()))

	s.ChangeStatus(fixture.MakeHealthCheck("smoke").Obj(), func(o client.Object) {
		o.(*v1alpha1.HealthCheck).Status.Status = v1alpha1.HealthStatusUnhealthy
	})
	s.Eventually(func() string { return s.environment("staging").Status.Releases[0].Unhealthy }).ShouldNot(BeEmpty())
	s.Eventually(observed).Should(Equal(said()))

	s.Remove(&environmentsv1.Environment{}, "staging")
	s.Eventually(s.reason("prod")).Should(Equal(environmentsv1.UpstreamNotFoundReason))
	again := staging().After("prod").Obj()
	again.Namespace = s.Namespace
	s.Expect(s.Create(s.Ctx, again)).To(Succeed(), "its status is the controller's, at once")
	s.Eventually(s.reason("prod")).Should(Equal(environmentsv1.UpstreamCycleReason))
	s.Eventually(s.reason("staging")).Should(Equal(environmentsv1.UpstreamCycleReason))
}

// Each instance records the Environments of its own Rollouts, and reads what the others
// have recorded.
func TestEnvironmentIsRecordedByTheInstanceOfItsRollout(t *testing.T) {
	one := fixture.MakeRollout("staging").Obj()
	one.Labels = map[string]string{"sharding.fluxcd.io/key": "one"}
	s := open(t, one, fixture.MakeRollout("prod").Obj(), staging().Obj(), prod().After("staging").Obj())
	reported := map[string]*fixture.Events{}
	for _, selector := range []string{"!sharding.fluxcd.io/key", "sharding.fluxcd.io/key=one"} {
		parsed, err := labels.Parse(selector)
		s.Expect(err).NotTo(HaveOccurred())
		reported[selector] = &fixture.Events{}
		s.playShard(t, reported[selector], parsed)
	}
	s.promotes("staging", baked("1.0.0"))
	s.Eventually(func() []environmentsv1.Release { return s.environment("staging").Status.Releases }).Should(HaveLen(1))
	s.Eventually(func() []environmentsv1.UpstreamStatus { return s.environment("prod").Status.Upstreams }).Should(
		ConsistOf(HaveField("ObservedDigest", environment.Digest(s.environment("staging").Status.Releases))))

	s.Remove(&v1alpha1.Rollout{}, "staging")
	s.Eventually(s.reason("staging")).Should(Equal(environmentsv1.RolloutNotFoundReason))
	s.Eventually(func() []fixture.Event { return reported["!sharding.fluxcd.io/key"].All() }).Should(
		ConsistOf(HaveField("Reason", environmentsv1.RolloutNotFoundReason)), "the instance of what has no label says so")
	s.Expect(reported["sharding.fluxcd.io/key=one"].All()).To(BeEmpty())
	s.Expect(s.environment("staging").Status.Releases).To(HaveLen(1), "what it proved stays proven")
}

// TestRecordBeginsAnewForAnotherRollout: its promotions have higher numbers, so nothing in
// its history contradicts the record.
func TestRecordBeginsAnewForAnotherRollout(t *testing.T) {
	for name, change := range map[string]func(*environmentsv1.EnvironmentSpec){
		"another Rollout":     func(spec *environmentsv1.EnvironmentSpec) { spec.RolloutRef.Name = "other" },
		"another environment": func(spec *environmentsv1.EnvironmentSpec) { spec.Environment = "qa" },
		"another application": func(spec *environmentsv1.EnvironmentSpec) { spec.Name = "mail" },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, append(rollouts("staging", "other"), staging().Obj())...)
			s.promotes("staging", baked("1.2.0"), baked("1.1.0"), baked("1.0.0"))
			s.promotes("other", baked("1.2.0"), baked("1.1.0"), baked("1.0.0"))
			s.reconcile("staging")
			for _, rollout := range []string{"staging", "other"} { // its history is short
				s.ChangeStatus(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: rollout}}, func(o client.Object) {
					status := &o.(*v1alpha1.Rollout).Status
					status.History = status.History[:1]
				})
			}
			s.reconcile("staging")
			s.Expect(s.environment("staging").Status.Releases).To(HaveLen(3), "the record knows them")
			s.Change(s.environment("staging"), func(o client.Object) { change(&o.(*environmentsv1.Environment).Spec) })
			s.reconcile("staging")
			s.Expect(s.environment("staging").Status.Releases).To(HaveLen(1))
			s.reconcile("staging")
			s.Expect(s.environment("staging").Status.Releases).To(HaveLen(1))
		})
	}
}

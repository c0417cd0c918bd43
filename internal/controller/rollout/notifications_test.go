// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestAlertsInTheLifeOfARollout plays a scenario and checks after each step what
// an Alert on the Rollout received. Each step is reconciled until nothing changes any
// more, and then twice more: no fact is sent again.
func TestAlertsInTheLifeOfARollout(t *testing.T) {
	s := open(t, shopWith(baked(), "1.0.0", fixture.MakeHealthCheck("smoke").Obj(), fixture.MakeHealthCheck("web").Obj())...)
	gate := func(name string, o *fixture.GateBuilder) func() { return func() { s.Add(o.Obj()) } }
	for _, step := range []struct {
		name     string
		happen   func()
		reported []string
	}{
		{"the first release", func() { s.deployAndBake("shop") }, []string{
			"info ReleaseDetected 1.0.0: release 1.0.0 was detected",
			"info BakeTimeDeploying 1.0.0: promoted 1.0.0 (the first release of this environment, from ImagePolicy shop); " +
				"waiting for Flux to apply 1.0.0 to 2 targets, then for 2 HealthChecks",
			"info BakeTimeStarted 1.0.0: 1.0.0: applied and healthy (2 HealthChecks); baking for 10m0s, until 2026-03-02T12:10:00Z",
			"info BakeTimePassed 1.0.0: 1.0.0: applied and healthy (2 HealthChecks) for the bake time of 10m0s",
		}},
		{"a gate closes, and nothing is there to hold", gate("manual", fixture.MakeGate("manual", "shop").Closed()), nil},
		{"a release meets the gate", func() { s.release("shop", "1.1.0") }, []string{
			"info ReleaseDetected 1.1.0: release 1.1.0 was detected",
			"info SomeGatesBlocking 1.1.0: 1.1.0: not passing: RolloutGate manual",
		}},
		{"a newer one does", func() { s.release("shop", "1.2.0") }, []string{
			"info ReleaseDetected 1.2.0: release 1.2.0 was detected; it waits: not passing: RolloutGate manual",
		}},
		{"another gate closes", gate("review", fixture.MakeGate("review", "shop").Closed()), []string{
			"info SomeGatesBlocking 1.2.0: 1.2.0: not passing: RolloutGate manual, RolloutGate review",
		}},
		{"the gates are gone", func() {
			s.Expect(s.DeleteAllOf(s.Ctx, &v1alpha1.RolloutGate{}, client.InNamespace(s.Namespace))).To(Succeed())
		}, []string{
			"info BakeTimeDeploying 1.2.0: promoted 1.2.0 (the newest eligible release of ImagePolicy shop); " +
				"waiting for Flux to apply 1.2.0 to 2 targets, then for 2 HealthChecks",
		}},
		{"the release is ill", s.fail, []string{
			"error BakeTimeFailed 1.2.0: 1.2.0: HealthCheck " + s.Namespace + "/smoke: it does not answer; last good release: 1.0.0" + wayBack,
		}},
		{"a user rolls back", func() { s.pinTo("1.0.0") }, []string{
			"info RolledBack 1.0.0: rolled back to 1.0.0 (pinned manually in spec.wantedVersion); " +
				"waiting for Flux to apply 1.0.0 to 2 targets, then for 2 HealthChecks",
		}},
		{"and forward", func() { s.deploy("shop"); s.pinTo("1.1.0") }, []string{
			"info BakeTimeStarted 1.0.0: 1.0.0: applied and healthy (2 HealthChecks); baking for 10m0s, until 2026-03-02T12:20:00Z",
			"info BakeTimeCancelled 1.0.0: 1.0.0 was superseded by 1.1.0",
			"info Pinned 1.1.0: promoted 1.1.0 (pinned manually in spec.wantedVersion); " +
				"waiting for Flux to apply 1.1.0 to 2 targets, then for 2 HealthChecks",
		}},
		{"a check becomes unhealthy during a pin", func() {
			s.deployAndBake("shop")
			s.checkFails("web", "slow", s.Clock.Now())
		}, []string{
			"info BakeTimeStarted 1.1.0: 1.1.0: applied and healthy (2 HealthChecks); baking for 10m0s, until 2026-03-02T12:20:00Z",
			"info BakeTimePassed 1.1.0: 1.1.0: applied and healthy (2 HealthChecks) for the bake time of 10m0s",
		}},
		{"which is removed", func() { s.pin("shop", nil) }, []string{
			"error HealthCheckBlocking 1.2.0: automatic promotions wait: 1 of 2 HealthChecks Unhealthy: " + s.Namespace + "/web",
		}},
		{"and another check", func() { s.checkFails("smoke", "slow too", s.Clock.Now()) }, []string{
			"error HealthCheckBlocking 1.2.0: automatic promotions wait: 2 of 2 HealthChecks Unhealthy: " +
				s.Namespace + "/smoke, " + s.Namespace + "/web",
		}},
		{"Flux cannot apply", func() { s.fluxFails("shop", "no such namespace") }, []string{
			"error TargetFailed 1.1.0: Kustomization shop: no such namespace",
		}},
		{"somebody sets a digest", func() { s.setDigest("sha256:aaa") }, []string{
			"error TargetConflict 1.1.0: OCIRepository shop: spec.ref.digest outranks spec.ref.tag in Flux: remove it",
		}},
		{"a request has no effect", func() { s.ask(v1alpha1.RetryAnnotation, "") }, nil},
	} {
		step.happen()
		for range 3 {
			s.rest("shop")
		}
		s.Expect(heard(s.notifications.Take(), "Rollout")).To(Equal(step.reported), step.name)
	}
}

// setDigest sets a digest on the OCIRepository shop, which takes precedence over the tag.
func (s *testEnv) setDigest(digest string) {
	s.setRef(func(ref *sourcev1.OCIRepositoryRef) { ref.Digest = digest })
}

func TestSetOfReleasesIsDetectedAtOnce(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.2.0")...)
	s.scanFinds("1.0.0", "1.1.0", "1.2.0")
	s.rest("shop")
	s.Expect(heard(s.notifications.Take(), "Rollout")[0]).To(Equal("info ReleaseDetected 1.2.0: release 1.2.0 was detected, and 2 releases before it"))
}

func TestClosedScheduleIsReportedWithoutAlarm(t *testing.T) {
	s := openLabelledShop(t, nil)
	s.Add(fixture.MakeSchedule("nights").Deny().Obj())
	s.notifications.Take()
	s.release("shop", "1.1.0")
	s.rest("shop")
	reported := s.notifications.Take()
	s.Expect(heard(reported, "Rollout")).To(Equal([]string{
		"info ReleaseDetected 1.1.0: release 1.1.0 was detected",
		"info ScheduleClosed 1.1.0: 1.1.0: RolloutSchedule nights is closed by rule mornings until 2026-03-02T13:00:00Z",
	}))
	s.Expect(reported[len(reported)-1].Metadata).To(HaveKeyWithValue("event.toolkit.fluxcd.io/gate", "RolloutSchedule nights"))
	for range 3 {
		s.Pass(time.Minute)
		s.rest("shop")
	}
	s.Expect(s.notifications.Take()).To(BeEmpty())
}

func TestBlockNamesTheGates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		gates []client.Object
		want  string
	}{
		"those that are closed": {[]client.Object{
			fixture.MakeGate("a", "shop").Closed().Obj(), fixture.MakeGate("b", "shop").Obj(), fixture.MakeGate("c", "shop").Closed().Obj(),
		}, "a, c"},
		"those that allow others": {[]client.Object{
			fixture.MakeGate("a", "shop").Allow("1.0.0").Obj(), fixture.MakeGate("b", "shop").Allow("1.1.0").Obj(),
		}, "a"},
		"no gate if a schedule is broken": {[]client.Object{
			fixture.MakeGate("a", "shop").Obj(), fixture.MakeSchedule("days").Zone("Atlantis/Capital").Obj(),
		}, "RolloutSchedule days"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.deploy("shop")
			s.Add(test.gates...)
			s.release("shop", "1.1.0")
			s.notifications.Take()
			s.rest("shop")
			reported := s.notifications.Take()
			s.Expect(reported[len(reported)-1].Metadata).To(HaveKeyWithValue("event.toolkit.fluxcd.io/gate", test.want))
		})
	}
}

// TestWhoseEventsAreSent: those of the objects that are written, because Alerts then need
// not know Rollouts, and the Rollout's own.
func TestWhoseEventsAreSent(t *testing.T) {
	t.Parallel()
	consumer := fixture.MakeKustomization("consumer").From("OCIRepository", "shop").Obj()
	for name, test := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"each object that is written": {
			shopWith(fixture.MakeRollout("shop"), "1.0.0", consumer),
			[]string{"kustomize.toolkit.fluxcd.io/v1 Kustomization shop", "source.toolkit.fluxcd.io/v1 OCIRepository shop", "kuberik.com/v1alpha1 Rollout shop"},
		},
		"the ImagePolicy if there is none": {
			[]client.Object{fixture.MakeScan("shop").Found("1.0.0").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(), fixture.MakeRollout("shop").Obj()},
			[]string{"image.toolkit.fluxcd.io/v1 ImagePolicy shop", "kuberik.com/v1alpha1 Rollout shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, test.objects...)
			s.rest("shop")
			var got []string
			for _, e := range s.notifications.Take() {
				if e.Reason == v1alpha1.BakeTimeDeployingReason {
					s.Expect(e.InvolvedObject.UID).NotTo(BeEmpty())
					s.Expect(e.InvolvedObject.Namespace).To(Equal(s.Namespace))
					got = append(got, fmt.Sprintf("%s %s %s", e.InvolvedObject.APIVersion, e.InvolvedObject.Kind, e.InvolvedObject.Name))
				}
			}
			s.Expect(got).To(Equal(test.want))
		})
	}
}

func TestFluxEventMetadata(t *testing.T) {
	rollout := fixture.MakeRollout("shop").
		Annotate("event.toolkit.fluxcd.io/team", "web").Annotate("event.toolkit.fluxcd.io/rollout", "another").
		Annotate("example.com/team", "web")
	s := open(t, shopWith(rollout, "1.0.0")...)
	s.deploy("shop")
	s.notifications.Take()
	s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		setLatest(o, "1.1.0")
		o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = "sha256:abc"
	})
	s.ask(v1alpha1.ForceDeployAnnotation, "1.1.0", v1alpha1.DeployUserAnnotation, "jane")
	s.reconcile("shop")
	s.reconcile("shop")

	reported := s.notifications.Take()
	about := reported[len(reported)-3:] // the promotion, on behalf of both targets and for the Rollout
	recorded := about[2].InvolvedObject.ResourceVersion
	s.Expect(about[0]).To(Equal(eventv1.Event{
		InvolvedObject: about[0].InvolvedObject,
		Severity:       eventv1.EventSeverityInfo,
		Timestamp:      metav1.NewTime(s.Clock.Now()),
		Reason:         v1alpha1.ForcedReason,
		Message: "Rollout shop: promoted 1.1.0 (requested with rollout.kuberik.com/force-deploy); " +
			"waiting for Flux to apply 1.1.0 to 2 targets",
		Metadata: map[string]string{
			"kustomize.toolkit.fluxcd.io/revision": "1.1.0@sha256:abc",
			"kustomize.toolkit.fluxcd.io/token":    string(about[2].InvolvedObject.UID) + "/" + recorded,
			"event.toolkit.fluxcd.io/rollout":      "shop",
			"event.toolkit.fluxcd.io/deployment":   "2",
			"event.toolkit.fluxcd.io/from":         "1.0.0",
			"event.toolkit.fluxcd.io/to":           "1.1.0",
			"event.toolkit.fluxcd.io/actor":        "jane",
			"event.toolkit.fluxcd.io/team":         "web",
		},
		ReportingController: "rollout-controller",
		ReportingInstance:   "test",
	}))
	s.Expect(about[2].Metadata).To(HaveKeyWithValue("kuberik.com/revision", "1.1.0@sha256:abc"))
	s.Expect(about[2].Message).To(HavePrefix("promoted 1.1.0"))
}

// A thousand events of all tenants may wait while notification-controller is not
// reachable. The text of one tenant must not make each of them large.
func TestFluxEventMetadataIsBounded(t *testing.T) {
	rollout := fixture.MakeRollout("shop").Annotate(v1alpha1.DeployMessageAnnotation, strings.Repeat("x", 1<<15))
	for n := range 100 {
		rollout.Annotate(fmt.Sprintf("event.toolkit.fluxcd.io/%03d", n), strings.Repeat("y", 1<<10))
	}
	var more []client.Object
	for n := range 30 {
		more = append(more, fixture.MakeKustomization(fmt.Sprintf("more-%02d", n)).DrivenBy("shop", "VERSION").Obj())
	}
	s := open(t, shopWith(rollout, "1.0.0", more...)...)
	s.rest("shop")
	promoted, size := 0, 0
	for _, e := range s.notifications.Take() {
		if e.Reason != v1alpha1.BakeTimeDeployingReason {
			continue
		}
		promoted++
		wire, err := json.Marshal(e)
		s.Expect(err).NotTo(HaveOccurred())
		size = max(size, len(wire))
		s.Expect(e.Metadata).To(HaveKey("event.toolkit.fluxcd.io/015"))
		s.Expect(e.Metadata).NotTo(HaveKey("event.toolkit.fluxcd.io/016"))
	}
	s.Expect(promoted).To(Equal(21), "of 20 targets and of the Rollout")
	s.Expect(size).To(BeNumerically("<", 8<<10), "bytes")
}

// TestSameMessageIsAnotherFact: notification-controller recognises duplicates by the
// message, the revision and the token, and drops them.
func TestSameMessageIsAnotherFact(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").SelectAllChecks(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.deploy("shop")
	tokens := map[string]bool{}
	for range 3 {
		s.notifications.Take()
		s.checksSay(v1alpha1.HealthStatusUnhealthy)
		s.rest("shop")
		reported := s.notifications.Take()
		s.Expect(heard(reported, "Rollout")).To(HaveLen(1))
		tokens[reported[0].Metadata["kustomize.toolkit.fluxcd.io/token"]] = true
		s.checksSay(v1alpha1.HealthStatusHealthy)
		s.rest("shop")
	}
	s.Expect(tokens).To(HaveLen(3))
}

func TestNothingIsReportedThatWasNotStored(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.Wire.Fail = func(int, string, client.Object) fixture.Fault { return fixture.Fault{Err: errors.New("out of order")} }
	_, err := s.try("shop")
	s.Expect(err).To(HaveOccurred())
	s.Expect(s.notifications.Take()).To(BeEmpty())
	s.Expect(s.Events.Take()).To(BeEmpty())
}

func TestKubernetesEventsAreTheSameWithoutNotifications(t *testing.T) {
	var with []fixture.Event
	for _, on := range []bool{true, false} {
		s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
		if !on {
			s.reconciler.Notifications = nil
		}
		s.deploy("shop")
		s.Add(fixture.MakeGate("manual", "shop").Closed().Obj())
		s.release("shop", "1.1.0")
		s.rest("shop")
		if on {
			with = s.Events.Take()
			continue
		}
		s.Expect(s.Events.Take()).To(Equal(with))
		s.Expect(with).To(ContainElement(fixture.Event{On: "shop", Type: corev1.EventTypeWarning,
			Reason: v1alpha1.SomeGatesBlockingReason, Message: "1.1.0: not passing: RolloutGate manual"}))
		s.Expect(with).NotTo(ContainElement(HaveField("Reason", v1alpha1.ReleaseDetectedReason)))
	}
}

// heard returns the events of a kind as text: severity, reason, release, message.
func heard(events []eventv1.Event, kind string) []string {
	var all []string
	for _, e := range events {
		if e.InvolvedObject.Kind == kind {
			group := e.InvolvedObject.GroupVersionKind().Group
			tag, _, _ := strings.Cut(e.Metadata[group+"/revision"], "@")
			all = append(all, fmt.Sprintf("%s %s %s: %s", e.Severity, e.Reason, tag, e.Message))
		}
	}
	return all
}

func TestPageOfEventsHasTheirSeverity(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "spec", "v1alpha1", "rollout-status.md"))
	g.Expect(err).NotTo(HaveOccurred())
	row := regexp.MustCompile("(?m)^\\| (?:Normal|Warning|no event) \\| (`.+?) \\| (info|error) \\|")
	var reasons int
	for _, cells := range row.FindAllStringSubmatch(string(page), -1) {
		for reason := range strings.SplitSeq(cells[1], ", ") {
			reasons++
			g.Expect(severityOf(strings.Trim(reason, "`"))).To(Equal(cells[2]), reason)
		}
	}
	g.Expect(reasons).To(BeNumerically(">", 25))
}

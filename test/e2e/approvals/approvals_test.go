// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"fmt"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// asked is an application of which 1.0.0 runs, and a gate that asks for the approval of one
// person. Bob may approve.
type asked struct {
	*env.Env
	bob *env.CommandLine
}

func newAsked(t *testing.T, reflects imagev1.ReflectionPolicy) asked {
	t.Helper()
	t.Parallel()
	if err := install(); err != nil {
		t.Fatal(err)
	}
	s := env.New(t, plane)
	for _, object := range s.Flux(plane.Registry.Host()) {
		if p, ok := object.(*imagev1.ImagePolicy); ok {
			if p.Spec.DigestReflectionPolicy = reflects; reflects == imagev1.ReflectAlways {
				p.Spec.Interval = &metav1.Duration{Duration: time.Second}
			}
		}
		s.Create(object)
	}
	s.Create(s.Rollout())
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	gate := fixture.MakeGate("four-eyes", s.Name).Asking(fixture.AskFor(1)).Obj()
	gate.Namespace = s.Namespace
	s.Create(gate)
	s.Await("the gate", func(r *v1alpha1.Rollout) bool { return len(r.Status.Gates) == 1 })
	user := "bob-" + s.Namespace
	if err := scenario.Grant(t.Context(), plane.ControlPlane, user, "rollout-controller-release-approver-role", s.Namespace); err != nil {
		t.Fatal(err)
	}
	return asked{s, s.CommandLine(user)}
}

// offer publishes a release, which waits.
func (s asked) offer(version string) (digest string) {
	s.T.Helper()
	digest = s.Push(s.ConfigRelease(version))
	s.Scan()
	s.Await("the candidate to wait for approval", func(r *v1alpha1.Rollout) bool {
		c := r.Status.ReleaseCandidates
		return len(c) > 0 && c[0].Tag == version && len(c[0].Holds) > 0 && c[0].Holds[0].Reason == v1alpha1.ApprovalRequiredReason
	})
	return digest
}

// approves lets Bob approve a version.
func (s asked) approves(version string) {
	s.T.Helper()
	s.bob.MustRun("approve", s.Name, "--version", version, "-y")
}

// moves pushes other content under a tag.
func (s asked) moves(tag string) (digest string) {
	again := s.ConfigRelease(tag)
	again.Files["more.yaml"] = strings.ReplaceAll(again.Files["configmap.yaml"], "name: "+s.Name, "name: more")
	return s.Push(again)
}

func (s asked) suspendPull(suspend bool) {
	s.T.Helper()
	source := s.OCIRepository("")
	s.Change(source, func() { source.Spec.Suspend = suspend })
}

func (s asked) pull() {
	s.T.Helper()
	if err := plane.RequestReconcile(s.T.Context(), s.OCIRepository("")); err != nil {
		s.T.Fatal(err)
	}
}

// unapproved returns the condition RunsUnapproved, without its message.
func unapproved(r *v1alpha1.Rollout) string {
	condition, _, _ := strings.Cut(env.Condition(r, v1alpha1.RunsUnapprovedCondition), ":")
	return condition
}

const runsUnapproved = "RunsUnapproved=True RunsUnapproved"

// entries returns the history, newest first, with digests and how it passed the gate.
func entries(r *v1alpha1.Rollout) []string {
	var all []string
	for _, e := range r.Status.History {
		outcome := v1alpha1.ApprovalOutcome("")
		if e.Approval != nil {
			outcome = e.Approval.Outcome
		}
		all = append(all, fmt.Sprintf("%s@%s %s %s", e.Version.Tag, *e.Version.Digest, e.State(), outcome))
	}
	return all
}

// What Flux pulls instead proves nothing, although the policy has seen it, too.
func TestContentThatMovesBeforeThePullIsNoApprovedRelease(t *testing.T) {
	for _, reflects := range []imagev1.ReflectionPolicy{imagev1.ReflectIfNotPresent, imagev1.ReflectAlways} {
		t.Run(string(reflects), func(t *testing.T) {
			s := newAsked(t, reflects)
			s.suspendPull(true)
			digest := s.offer("1.1.0")
			s.approves("1.1.0")
			promoted := s.AwaitState("1.1.0", v1alpha1.BakeDeploying)
			if diff := cmp.Diff("1.1.0@"+digest+" Deploying Approved", entries(promoted)[0]); diff != "" {
				t.Errorf("promoted (-want +got):\n%s", diff)
			}
			other := s.moves("1.1.0")
			s.suspendPull(false)
			s.Await("the mismatch", func(r *v1alpha1.Rollout) bool {
				return strings.Contains(env.Condition(r, v1alpha1.TargetsAppliedCondition), v1alpha1.DigestMismatchReason)
			})
			s.Stays("Deploying: nothing proves what was approved", func(r *v1alpha1.Rollout) bool {
				return len(r.Status.History) == 2 && r.Current().State() == v1alpha1.BakeDeploying
			})
			if reflects != imagev1.ReflectAlways {
				return
			}
			s.approves("1.1.0@" + other)
			done := s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
			want := []string{"1.1.0@" + other + " Succeeded Approved", "1.1.0@" + digest + " Cancelled Approved"}
			if diff := cmp.Diff(want, entries(done)[:2]); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContentThatMovesAfterThePullRunsUnapproved(t *testing.T) {
	for name, end := range map[string]func(s asked) string{
		"until it is approved": func(s asked) string {
			s.approves("1.1.0")
			return "1.1.0"
		},
		"until it is replaced": func(s asked) string {
			s.offer("1.2.0")
			s.approves("1.2.0")
			return "1.2.0"
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAsked(t, imagev1.ReflectIfNotPresent)
			digest := s.offer("1.1.0")
			s.approves("1.1.0")
			s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
			other := s.moves("1.1.0")
			s.pull()
			s.runsUnapproved("1.1.0@"+other+" Succeeded Missing", "1.1.0@"+digest+" Succeeded Approved")

			version := end(s)
			s.Await("an approved release", func(r *v1alpha1.Rollout) bool {
				current := r.Current()
				return unapproved(r) == "" && current.Version.Tag == version && current.State() == v1alpha1.BakeSucceeded &&
					current.Approval.Outcome == v1alpha1.OutcomeApproved && strings.HasPrefix(current.Approval.By[0].Username, "bob-")
			})
		})
	}
}

// runsUnapproved waits for the condition, and compares the newest entries.
func (s asked) runsUnapproved(newest ...string) {
	s.T.Helper()
	moved := s.Await("content that runs unapproved", func(r *v1alpha1.Rollout) bool {
		return unapproved(r) == runsUnapproved && !r.Current().State().Running()
	})
	if diff := cmp.Diff(newest, entries(moved)[:len(newest)]); diff != "" {
		s.T.Errorf("history (-want +got):\n%s", diff)
	}
	s.AwaitEvents(moved, v1alpha1.RunsUnapprovedReason)
	s.Stays("unapproved", func(r *v1alpha1.Rollout) bool { return unapproved(r) == runsUnapproved })
	if events := env.WithReason(s.Events(moved), v1alpha1.RunsUnapprovedReason); len(events) != 1 {
		s.T.Errorf("it was reported as %q, want once", events)
	}
}

func TestAlertAsksOnceWithACommandToPaste(t *testing.T) {
	s := newAsked(t, imagev1.ReflectIfNotPresent)
	team := s.OpenChannel("team", eventv1.EventSeverityInfo, notificationv1.CrossNamespaceObjectReference{Kind: "OCIRepository", Name: "*"})
	s.offer("1.1.0")
	asks := func() (all []eventv1.Event) {
		for _, e := range team.Ours() {
			if e.Reason == v1alpha1.ApprovalRequiredReason {
				all = append(all, e)
			}
		}
		return all
	}
	env.Eventually(t, "an alert that asks", func() (bool, string) { return len(asks()) > 0, fmt.Sprint(team.Ours()) })
	alert := asks()[0]
	command := "kubectl rollouts approve shop -n " + s.Namespace + " --version 1.1.0"
	got := map[string]string{"severity": alert.Severity, "message": alert.Message, "command": alert.Metadata["command"], "gate": alert.Metadata["gate"], "to": alert.Metadata["to"]}
	want := map[string]string{
		"severity": "info", "message": "Rollout shop: 1.1.0: RolloutGate four-eyes: 0 of 1 approvals",
		"command": command, "gate": "four-eyes", "to": "1.1.0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the alert (-want +got):\n%s", diff)
	}
	s.Stays("asked for", func(r *v1alpha1.Rollout) bool { return r.Current().Version.Tag == "1.0.0" })

	// Without a terminal nobody answers its question.
	if answer := s.bob.Shell(alert.Metadata["command"] + " -y"); answer.Code != 0 {
		t.Fatalf("the pasted command: %+v", answer)
	}
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	env.Eventually(t, "an alert of the end", func() (bool, string) {
		all := team.Ours()
		return len(all) > 0 && all[len(all)-1].Reason == v1alpha1.DeploymentSucceededReason || len(all) > 4, fmt.Sprint(all)
	})
	if n := len(asks()); n != 1 {
		t.Errorf("it asked %d times:\n%v", n, asks())
	}
}

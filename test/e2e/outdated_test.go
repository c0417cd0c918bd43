// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// restored is an application that runs 1.1.0, while a gate holds 1.2.0, and whose status
// was then restored from a backup, in which it runs 1.0.0.
type restored struct {
	*env.Env
	kubectl func(args ...string) env.Answer
	anna    *env.CommandLine
}

func restoredStatus(t *testing.T) restored {
	t.Helper()
	s := newEnv(t)
	s.CreateFlux()
	s.Create(s.Rollout())
	s.Publish(s.ConfigRelease("1.0.0"))
	backup, err := json.Marshal(s.AwaitState("1.0.0", v1alpha1.BakeSucceeded).Status)
	if err != nil {
		t.Fatal(err)
	}
	s.Publish(s.ConfigRelease("1.1.0"))
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	s.Create(closedGate(s))
	s.AwaitClosed()
	s.Publish(s.ConfigRelease("1.2.0"))
	s.AwaitCandidate("1.2.0")

	anna := s.CommandLine(s.Namespace+":anna", masters)
	r := restored{s, under(t, anna, "kubectl"), anna}
	r.must("patch", "rollout", s.Name, "--subresource=status", "--type=json", "-p", `[{"op":"replace","path":"/status","value":`+string(backup)+`}]`)
	return r
}

// must runs kubectl.
func (r restored) must(args ...string) string {
	r.T.Helper()
	answer := r.kubectl(args...)
	if answer.Code != 0 {
		r.T.Fatalf("kubectl %q: %+v", args, answer)
	}
	return answer.Stdout
}

// specs returns the targets as users and Flux see them, without their status.
func (r restored) specs() []any {
	repository, kustomization := r.OCIRepository(""), r.Kustomization()
	r.Read(repository)
	r.Read(kustomization)
	return []any{repository.Spec, repository.Annotations, kustomization.Spec, kustomization.Annotations}
}

func (r restored) isStalled(rollout *v1alpha1.Rollout) bool {
	stalled := apimeta.FindStatusCondition(rollout.Status.Conditions, v1alpha1.StalledCondition)
	return stalled != nil && stalled.Reason == v1alpha1.HistoryOutdatedReason
}

func TestRestoredStatusTakesNothingBack(t *testing.T) {
	r := restoredStatus(t)
	before := r.specs()
	r.Await("HistoryOutdated", r.isStalled)
	r.Stays("as it was restored", func(rollout *v1alpha1.Rollout) bool {
		return r.isStalled(rollout) && len(rollout.Status.History) == 1
	})
	if diff := cmp.Diff(before, r.specs()); diff != "" {
		t.Errorf("targets were written (-before +after):\n%s", diff)
	}

	const message = "the history ends with 1.0.0 (#1), but promotion #2 has written "
	for verb, answer := range map[string]string{
		"get":     r.must("get", "rollout", r.Name, "-o", "wide"),
		"explain": r.must("rollouts", "explain", r.Name),
		"status":  r.must("rollouts", "status", r.Name),
	} {
		if said := strings.Join(strings.Fields(strings.ReplaceAll(answer, "│", "")), " "); !strings.Contains(said, message) {
			t.Errorf("kubectl %s does not say %q:\n%s", verb, message, answer)
		}
	}

	explanation := r.must("rollouts", "explain", r.Name)
	remedies := suggested.FindAllStringSubmatch(explanation, -1)
	if len(remedies) == 0 || !strings.HasPrefix(remedies[0][1], "kubectl rollouts adopt "+r.Name) {
		t.Fatalf("the first remedy is not to adopt what runs:\n%s", explanation)
	}
	if answer := r.anna.Shell(remedies[0][1] + " -y"); answer.Code != 0 {
		t.Fatalf("%s: %+v", remedies[0][1], answer)
	}
	r.goesOn("1.1.0")
	if diff := cmp.Diff(before, r.specs()); diff != "" {
		t.Errorf("targets were written (-before +after):\n%s", diff)
	}
}

func TestRestoredStatusGoesOnWithAPin(t *testing.T) {
	r := restoredStatus(t)
	r.Await("HistoryOutdated", r.isStalled)
	r.must("patch", "rollout", r.Name, "--type=merge", "-p", `{"spec":{"wantedVersion":"1.0.0"}}`)
	r.Stays("at 1.1.0, for the old history names the same version", r.isStalled)
	r.must("patch", "rollout", r.Name, "--type=merge", "-p", `{"spec":{"wantedVersion":"1.2.0"}}`)
	r.goesOn("1.2.0")
}

// goesOn checks that the next entry has a new id, and that Flux has applied its version.
func (r restored) goesOn(version string) {
	r.T.Helper()
	rollout := r.AwaitState(version, v1alpha1.BakeSucceeded)
	if id := *rollout.Current().ID; id <= 2 || len(rollout.Status.History) != 2 {
		r.T.Errorf("history %v: want an id above #2, and then #1", env.History(rollout))
	}
	repository := r.OCIRepository("")
	r.Read(repository)
	if tag := repository.Spec.Reference.Tag; tag != version {
		r.T.Errorf("the OCIRepository has %s, want %s", tag, version)
	}
	r.Stays("at "+version+", as the gate is closed", func(rollout *v1alpha1.Rollout) bool { return rollout.Current().Version.Tag == version })
}

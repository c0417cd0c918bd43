// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
)

// Case 10. A dry run says what then happens, and sends nothing.
func TestRollbackIsWholeThoughTheCommandLineIsKilled(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	s.Create(s.Rollout())
	for _, version := range []string{"1.0.0", "1.1.0"} {
		s.Publish(s.Release(version))
		s.AwaitState(version, v1alpha1.BakeSucceeded)
	}
	kate, between := s.CommandLine(s.Namespace+":kate", masters, audited).Through()
	rollback := []string{"rollback", s.Name, "-m", "1.1.0 is slow"}
	predicted := kate.MustRun(append(rollback, "--dry-run")...)
	want := "► " + s.Namespace + "/shop: 1.1.0 → 1.0.0: pinned manually in spec.wantedVersion\n"
	if diff := cmp.Diff(want, predicted); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}

	running := make(chan *env.Running, 1)
	between.Inject(func(r wire.Request) wire.Fault {
		if r.Verb != "patch" {
			return wire.Fault{}
		}
		return wire.Lose().Then(func() { (<-running).Kill() })
	})
	run := kate.Start(append(rollback, "-y")...)
	running <- run
	if killed := run.End(); killed.Code != -1 || killed.Stdout != want {
		t.Errorf("it was killed before it had an answer, and yet it is %+v", killed)
	}

	done := s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	if diff := cmp.Diff([]string{"3 1.0.0 Succeeded", "2 1.1.0 Succeeded", "1 1.0.0 Succeeded"}, env.History(done)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	entry := done.Current()
	if *entry.Message != "1.1.0 is slow" || entry.TriggeredBy.Name != s.Namespace+":kate" {
		t.Errorf("the history says %q by %q", *entry.Message, entry.TriggeredBy.Name)
	}
	var patches []string
	for _, write := range between.Writes() {
		if write.Verb != "create" { // of a SelfSubjectReview
			patches = append(patches, write.String())
		}
	}
	if diff := cmp.Diff([]string{"patch kuberik.com/rollouts " + s.Namespace + "/shop"}, patches); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// Case 22.
func TestCommandLineGoesOnAfterTheAPIServerWasAway(t *testing.T) {
	s := gated(t)
	lucy, between := s.CommandLine(s.Namespace+":lucy", masters).Through()
	wait, watch := lucy.Start("wait", s.Name, "--for=version=1.1.0"), lucy.Start("watch", s.Name)
	env.Eventually(t, "two watches", func() (bool, string) {
		return between.OpenWatches() == 2, wait.Said() + watch.Said()
	})

	between.Inject(func(wire.Request) wire.Fault { return wire.Drop() })
	between.BreakConnections()
	const lost, found = "Rollouts cannot be read for now, and the API server is asked again: ", "Rollouts can be read again\n"
	for _, running := range []*env.Running{wait, watch} {
		running.AwaitText(lost)
	}
	gate := closedGate(s)
	s.Change(gate, func() { gate.Spec.Passing = new(true) })
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	between.Inject(nil)

	reached := wait.End()
	if reached.Code != 0 || !strings.Contains(reached.Stdout, "1.1.0 is Succeeded (#2)") {
		t.Errorf("the wait ended with %+v", reached)
	}
	said := slices.DeleteFunc(strings.SplitAfter(reached.Stderr, "\n"), func(line string) bool { return strings.Contains(line, "1.1.0 is ") })
	if len(said) != 3 || !strings.Contains(said[0], lost) || !strings.HasSuffix(said[1], found) || said[2] != "" {
		t.Errorf("the wait said of the connection %q, want that it was lost, and found again", said)
	}
	watch.AwaitText("shop  1.1.0    Succeeded")
	watch.AwaitText(found)
	watch.Interrupt()
	if ended := watch.End(); ended.Code != 130 {
		t.Errorf("the watch was interrupted, and ended with %+v", ended)
	}
}

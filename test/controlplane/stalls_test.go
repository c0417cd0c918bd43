// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/child"
)

func TestStallsStopAndWakeWhatRuns(t *testing.T) {
	t.Setenv(stallsVariable, "50ms")
	c, sleeper := startSleeper(t)
	if err := c.stall(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		await(t, "the process stopped", func() bool { return child.Stopped(sleeper.PID()) })
		await(t, "the process woken", func() bool { return !child.Stopped(sleeper.PID()) })
	}
}

func TestStallsLeaveAloneWhatATestHasPaused(t *testing.T) {
	_, sleeper := startSleeper(t)
	sleeper.Pause()
	sleeper.stall(time.Millisecond)
	if !child.Stopped(sleeper.PID()) {
		t.Error("a process that a test has paused was woken")
	}
	sleeper.Resume()
	await(t, "the process woken", func() bool { return !child.Stopped(sleeper.PID()) })
}

func TestStallsNeedADuration(t *testing.T) {
	for _, value := range []string{"often", "0s", "-1s"} {
		t.Setenv(stallsVariable, value)
		if err := (&ControlPlane{}).stall(); err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("%q: the error is %v", value, err)
		}
	}
}

// startSleeper starts a process that does nothing, in its own control plane.
func startSleeper(t *testing.T) (*ControlPlane, *Process) {
	t.Helper()
	c, err := prepare(Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	sleeper, err := c.StartProcess("sleeper", "/bin/sleep", []string{"300"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, sleeper
}

func await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for began := time.Now(); !happened(); time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("never saw %s", what)
		}
	}
}

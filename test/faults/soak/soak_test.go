// SPDX-License-Identifier: Apache-2.0

// Package soak looks for what grows slowly. For an hour, Rollouts release, fail, roll back
// and bake, and gates, HealthChecks, schedules and whole Rollouts come and go at random. The
// controller runs as it is shipped, with the shipped rights and memory. What it needs at
// rest afterwards is what it needed at rest after ten minutes.
package soak

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/limit"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestMain(m *testing.M) { os.Exit(fixture.ExitCode(m.Run())) }

// durationVariable is how long the disturbances last. Without it, nothing is run.
const durationVariable = "SOAK_DURATION"

func TestNothingGrowsWhileReleasesComeAndGo(t *testing.T) {
	given := os.Getenv(durationVariable)
	if given == "" {
		t.Skip("it takes an hour: make soak runs it")
	}
	duration, err := time.ParseDuration(given)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t)
	warm := duration / 2 // what is remembered up to a number fills meanwhile: events, texts, answers of registries
	s.disturb(warm)
	before := s.rest("before")
	s.disturb(duration - warm)
	after := s.rest("after")
	t.Logf("what was done: %v", s.crowd.done)
	for _, growth := range after.growth(before) {
		t.Error(growth)
	}
	if !s.plane.Controller.Running() || s.plane.Controller.PID() != s.pid {
		t.Errorf("the controller has ended; it was killed %d times for its memory", s.limit.Killed())
	}
}

// soak is a controller, and those who keep it busy.
type soak struct {
	t       *testing.T
	plane   *env.Plane
	limit   *limit.Limit
	pid     int
	metrics string // where the controller serves them
	crowd   *crowd
}

// start starts the controller, and creates the applications.
func start(t *testing.T) *soak {
	t.Helper()
	allowed, err := limit.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(allowed.Close) // after the controller has ended
	alerts, asked := serve(t, nothing), serve(t, ok)
	address := env.FreeAddress(t)
	plane := env.Setting{
		Options: controlplane.Options{Flux: true, ImageScanner: true},
		Args: append([]string{
			"--events-addr=" + alerts, "--health-destinations=" + asked, "--metrics-bind-address=" + address, "--metrics-secure=false",
		}, env.AsShipped...),
		Env:     []string{limit.Env()},
		Instead: allowed.Enter,
	}.For(t)
	go allowed.Watch(t.Context(), plane.Controller)
	t.Logf("a limit of %d MiB, enforced %s", limit.Memory>>20, allowed)
	return &soak{t: t, plane: plane, limit: allowed, pid: plane.Controller.PID(), metrics: address, crowd: gather(t, plane, asked)}
}

func nothing(http.ResponseWriter, *http.Request) {}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"status":"ok"}`) }

// serve returns the URL of a server. It leaves connections open, as real ones do.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// disturb disturbs the applications for some time. Every minute it logs what the controller
// needs meanwhile.
func (s *soak) disturb(duration time.Duration) {
	s.t.Helper()
	last := s.usage()
	for end, next := time.Now().Add(duration), time.Now().Add(time.Minute); time.Now().Before(end); s.crowd.pause() {
		s.crowd.move()
		if time.Now().After(next) {
			now := s.usage()
			s.t.Logf("busy: %v", now.since(last))
			last, next = now, time.Now().Add(time.Minute)
		}
	}
}

const (
	// settled is when a controller at rest has closed the connections that it does not use
	// (after 90 seconds), and has collected its garbage (at least every two minutes).
	settled = 150 * time.Second
	// observed is how long it is watched then.
	observed = time.Minute
)

// rest lets everything come to rest, and returns what the controller needs then. It keeps a
// profile of the memory.
func (s *soak) rest(name string) usage {
	s.t.Helper()
	s.crowd.calmDown()
	time.Sleep(settled)
	begun := s.usage()
	time.Sleep(observed)
	s.profile(name)
	rested := s.usage().since(begun)
	s.t.Logf("at rest: %v", rested)
	return rested
}

// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	mebi = 1 << 20
	// mostMemory is how many times as much memory the controller may need at the end: there
	// are more releases by then, and garbage is not collected at once.
	mostMemory = 1.2
	// few is how many goroutines, open files and requests may be more. The Lease is renewed
	// by the clock, and a watch ends and begins again from time to time.
	few = 8
)

// usage is what the controller needs.
type usage struct {
	memory     float64 // its own pages, in bytes
	live       float64 // what of it was in use at the last collection of garbage, in bytes
	goroutines float64
	files      float64 // open files; most are connections
	requests   float64 // to the API server, in a period
}

// usage returns what the controller needs now, and its requests so far.
func (s *soak) usage() usage {
	s.t.Helper()
	memory, err := controlplane.MemoryOf(s.pid)
	if err != nil {
		s.t.Fatalf("the controller has ended; it was killed %d times for its memory: %v", s.limit.Killed(), err)
	}
	all := env.Metrics(s.t, s.metrics)
	total := func(name string) float64 { return scenario.Total(all[name].GetMetric()) }
	return usage{float64(memory.Own), total("go_gc_heap_live_bytes"), total("go_goroutines"), total("process_open_fds"), total("rest_client_requests_total")}
}

// profile collects garbage, and writes what is in use then to a file of this repository.
func (s *soak) profile(name string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.metrics+"/debug/pprof/heap?gc=1", http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err == nil {
		err = errors.Join(os.MkdirAll(profiles(), 0o700), os.WriteFile(filepath.Join(profiles(), name+".pprof"), content, 0o600))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// profiles is the folder of the profiles.
func profiles() string { return filepath.Join(parts.Root(), "bin", "soak") }

// since returns the usage with the requests after an earlier one.
func (u usage) since(earlier usage) usage {
	u.requests -= earlier.requests
	return u
}

// String returns the usage for the log.
func (u usage) String() string {
	return fmt.Sprintf("%.1f MiB, %.1f live, %.0f goroutines, %.0f open files, %.0f requests per minute",
		u.memory/mebi, u.live/mebi, u.goroutines, u.files, u.requests)
}

// growth returns what has grown since an earlier usage at rest.
func (u usage) growth(earlier usage) (grown []string) {
	for _, of := range []struct {
		what         string
		now, earlier float64
		most         float64
	}{
		{"bytes of memory", u.memory, earlier.memory, mostMemory * earlier.memory},
		{"bytes in use", u.live, earlier.live, mostMemory * earlier.live},
		{"goroutines", u.goroutines, earlier.goroutines, earlier.goroutines + few},
		{"open files", u.files, earlier.files, earlier.files + few},
		{"requests per minute", u.requests, earlier.requests, earlier.requests + few},
	} {
		if of.now > of.most {
			grown = append(grown, fmt.Sprintf("%s at rest have grown from %.0f to %.0f", of.what, of.earlier, of.now))
		}
	}
	return grown
}

func TestGrowthIsWhatTheSoakFails(t *testing.T) {
	rested := usage{memory: 40, live: 12, goroutines: 300, files: 20, requests: 30}
	for name, tt := range map[string]struct {
		change func(*usage)
		want   int
	}{
		"nothing has grown":                   {func(*usage) {}, 0},
		"what chance explains has not grown":  {func(u *usage) { u.memory, u.goroutines = 45, 305 }, 0},
		"less is no growth":                   {func(u *usage) { *u = usage{memory: 20} }, 0},
		"memory":                              {func(u *usage) { u.memory, u.live = 51, 16 }, 2},
		"goroutines and the connections":      {func(u *usage) { u.goroutines, u.files = 320, 30 }, 2},
		"requests that nothing has asked for": {func(u *usage) { u.requests = 60 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			later := rested
			tt.change(&later)
			if got := later.growth(rested); len(got) != tt.want {
				t.Errorf("%q, want %d", got, tt.want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// milestone is a step of a release for one Rollout.
type milestone int

const (
	repositoryWritten    milestone = iota // the OCIRepository has the release's tag
	kustomizationWritten                  // the Kustomization has it as a variable
	applied                               // Flux reports that both are applied
	succeeded                             // the Rollout's status reports Succeeded
	milestones
)

// wave is a release for some Rollouts at once, and the times when it reached the
// milestones.
type wave struct {
	release release
	// rollouts are the numbers of the Rollouts that get the release. places maps each of
	// them to its index in the slices below.
	rollouts []int
	places   map[int]int
	// named is when the ImagePolicy was about to name the release.
	named []time.Time
	// reached is when each milestone was seen to be reached.
	reached [milestones][]time.Time
	missing [milestones]int
	// deploying is what each status of a Rollout said of the release while it deployed it.
	deploying [][]v1alpha1.VersionInfo
	// moved signals that all Rollouts have reached a milestone.
	moved chan struct{}
	// applied, if set, is called when Flux has applied the release for a Rollout.
	applied func(i int)
}

func newWave(r release, rollouts ...int) *wave {
	w := &wave{
		release: r, rollouts: rollouts, places: map[int]int{}, named: make([]time.Time, len(rollouts)), moved: make(chan struct{}, 1),
		deploying: make([][]v1alpha1.VersionInfo, len(rollouts)),
	}
	for place, i := range rollouts {
		w.places[i] = place
	}
	for m := range milestones {
		w.reached[m], w.missing[m] = make([]time.Time, len(rollouts)), len(rollouts)
	}
	return w
}

// note records a milestone. It is called under the observer's lock.
func (w *wave) note(i int, where milestone, at time.Time) {
	place, mine := w.places[i]
	if !mine || !w.reached[where][place].IsZero() {
		return
	}
	w.reached[where][place] = at
	w.missing[where]--
	if where == applied && w.applied != nil {
		w.applied(i)
	}
	if w.missing[where] == 0 {
		select {
		case w.moved <- struct{}{}:
		default:
		}
	}
}

// hears records a status about the release. It is called under the observer's lock.
func (w *wave) hears(i int, current *v1alpha1.DeploymentHistoryEntry) {
	if place, mine := w.places[i]; mine && current.State() == v1alpha1.BakeDeploying {
		w.deploying[place] = append(w.deploying[place], current.Version)
	}
}

// late returns how many statuses reported again that a Rollout deploys the release, because
// the promotion took long: one that it waits for its HealthCheck, and one more if the
// metadata of the release has come meanwhile. The controller waits from a stored time, which
// has whole seconds, and so up to a second less. It is called under the observer's lock.
func (w *wave) late() (n int) {
	for place, named := range w.named {
		said := w.deploying[place]
		if len(said) < 2 || w.reached[succeeded][place].Sub(named) <= promotion.Patience-time.Second {
			continue
		}
		most := 1
		if !equality.Semantic.DeepEqual(said[0], said[len(said)-1]) {
			most++
		}
		n += min(len(said)-1, most)
	}
	return n
}

// targets returns the time from the first policy that named the release until the last
// target was written.
func (w *wave) targets() time.Duration { return w.until(repositoryWritten, kustomizationWritten) }

// all returns the time until the last Rollout reported that it succeeded.
func (w *wave) all() time.Duration { return w.until(succeeded) }

func (w *wave) until(where ...milestone) time.Duration {
	last := time.Time{}
	for _, m := range where {
		for _, at := range w.reached[m] {
			if at.After(last) {
				last = at
			}
		}
	}
	return last.Sub(w.began())
}

// began returns when the first policy was about to name the release.
func (w *wave) began() time.Time { return slices.MinFunc(w.named, time.Time.Compare) }

// latencies returns, for each Rollout, the time from its policy naming the release until
// both of its targets were written.
func (w *wave) latencies() []time.Duration {
	var all []time.Duration
	for i, at := range w.named {
		written := w.reached[repositoryWritten][i]
		if other := w.reached[kustomizationWritten][i]; other.After(written) {
			written = other
		}
		all = append(all, written.Sub(at))
	}
	return all
}

// await waits until all have reached a milestone or one of the errs functions returns an
// error.
func (o *observer) await(ctx context.Context, w *wave, where milestone, errs ...func() error) error {
	for {
		o.mu.Lock()
		missing := w.missing[where]
		o.mu.Unlock()
		if missing == 0 {
			return nil
		}
		for _, failed := range append(errs, o.flux.err) {
			if err := failed(); err != nil {
				return err
			}
		}
		select {
		case <-w.moved:
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d promotions of %s are missing: %w", missing, len(w.named), w.release.tag, context.Cause(ctx))
		}
	}
}

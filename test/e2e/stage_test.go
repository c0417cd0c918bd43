// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// patience is how long a story waits for what must happen.
const patience = 90 * time.Second

// stage is one application in a namespace of its own, and the test that plays
// on it.
type stage struct {
	scenario.App
	t *testing.T
}

func newStage(t *testing.T) *stage {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("_", "-", "/", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	if len(name) > 40 {
		name = name[:40]
	}
	return &stage{App: scenario.NewApp(name, "shop"), t: t}
}

func (s *stage) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := plane.Client().Create(s.t.Context(), o); err != nil {
			s.t.Fatalf("create %T: %v", o, err)
		}
	}
}

// release pushes a version and makes Flux notice it.
func (s *stage) release(version string) {
	s.t.Helper()
	if _, err := plane.Registry.Push(s.t.Context(), s.Release(version)); err != nil {
		s.t.Fatal(err)
	}
	s.scan()
}

func (s *stage) scan() {
	s.t.Helper()
	if err := plane.Images.ScanNow(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) get() *v1alpha1.Rollout {
	s.t.Helper()
	rollout := &v1alpha1.Rollout{}
	if err := plane.Client().Get(s.t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, rollout); err != nil {
		s.t.Fatal(err)
	}
	return rollout
}

// await waits until the Rollout is as wanted, and says what it was otherwise.
func (s *stage) await(what string, wanted func(*v1alpha1.Rollout) bool) *v1alpha1.Rollout {
	s.t.Helper()
	var rollout *v1alpha1.Rollout
	eventually(s.t, what, func() (bool, string) {
		rollout = s.get()
		return wanted(rollout), describe(rollout)
	})
	return rollout
}

// awaitState waits until a version is the current one and in a bake state.
func (s *stage) awaitState(version string, state v1alpha1.BakeStatus) *v1alpha1.Rollout {
	s.t.Helper()
	return s.await(fmt.Sprintf("%s %s", version, state), func(r *v1alpha1.Rollout) bool {
		current := r.Current()
		return current != nil && current.Version.Tag == version && current.State() == state
	})
}

func eventually(t *testing.T, what string, check func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		done, seen := check()
		if done {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("never saw %s; last seen:\n%s", what, seen)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// describe shows what matters of a Rollout when a story fails.
func describe(r *v1alpha1.Rollout) string {
	var text strings.Builder
	for _, e := range r.Status.History {
		fmt.Fprintf(&text, "history: %s %s", e.Version.Tag, e.State())
		if e.BakeStatusMessage != nil {
			fmt.Fprintf(&text, " (%s)", *e.BakeStatusMessage)
		}
		text.WriteString("\n")
	}
	for _, target := range r.Status.Targets {
		fmt.Fprintf(&text, "target: %+v\n", target)
	}
	for _, c := range r.Status.Conditions {
		fmt.Fprintf(&text, "condition: %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return text.String()
}

// SPDX-License-Identifier: Apache-2.0

// Package crash kills the controller while it works, and checks that nothing is lost or
// done twice.
package crash

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestMain(m *testing.M) { os.Exit(fixture.ExitCode(m.Run())) }

// kills is how often the controller is killed.
const kills = 50

func TestKillingTheControllerLosesNothingAndRepeatsNothing(t *testing.T) {
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true})
	killer, err := env.NewKiller(plane, env.Random(t), &v1alpha1.RolloutList{})
	if err != nil {
		t.Fatal(err)
	}
	halfway := &halfway{client: plane.Client()}
	killer.Look = halfway.look
	cast := raise(t, plane)
	killed := make(chan error, 1)
	go func() { killed <- killer.Kill(t.Context(), kills) }()

	var released []string
	for over := false; !over; {
		select {
		case err := <-killed:
			if err != nil {
				t.Fatal(err)
			}
			over = true // one more round without a kill
		default:
		}
		released = append(released, cast.round(len(released)))
	}
	t.Logf("%d releases; %d of %d kills fell between the record of a promotion and the writing of its targets",
		len(released), halfway.kills, kills)

	for _, s := range cast.patient {
		s.HasEveryReleaseOnce(released)
		s.Agrees()
	}
	for _, s := range cast.hasty {
		s.hasNoneTwice()
		s.Agrees()
	}
}

// cast contains the applications that are released while the controller is killed.
type cast struct {
	// patient ones get their next release after the last one has succeeded, so none may
	// be skipped.
	patient []*application
	// hasty ones get releases in between, which may be skipped or superseded.
	hasty []*application
}

// application adds a check of the whole history.
type application struct{ *env.Application }

func raise(t *testing.T, plane *env.Plane) cast {
	t.Helper()
	app := func(options ...func(*v1alpha1.RolloutSpec)) *application {
		return &application{env.NewApplication(t, plane, options...)}
	}
	baked := func(spec *v1alpha1.RolloutSpec) { spec.BakeTime = &metav1.Duration{Duration: time.Second} }
	checked := scenario.App{Name: "shop"}.Baked(time.Second, time.Hour)
	return cast{
		patient: []*application{app(), app(baked), app(checked)},
		hasty:   []*application{app(), app(baked)},
	}
}

// round releases a version in all applications, after two versions that only the hasty
// applications get, and waits until it has succeeded.
func (c cast) round(n int) string {
	version := fmt.Sprintf("1.%d.2", n)
	for _, between := range []string{"0", "1"} {
		for _, s := range c.hasty {
			s.Release(fmt.Sprintf("1.%d.%s", n, between))
		}
	}
	all := append(append([]*application{}, c.hasty...), c.patient...)
	for _, s := range all {
		s.Release(version)
	}
	for _, s := range all {
		s.AwaitState(version, v1alpha1.BakeSucceeded)
	}
	return version
}

// hasNoneTwice checks that versions only rise, that ids have no gap, and that every
// promotion has succeeded, except those that a newer one superseded.
func (a *application) hasNoneTwice() {
	a.T.Helper()
	rollout := a.Live()
	entries := rollout.Status.History
	for i := range entries {
		e := &entries[i]
		inOrder := i == 0 || semver.MustParse(e.Version.Tag).LessThan(semver.MustParse(entries[i-1].Version.Tag))
		ended := e.State() == v1alpha1.BakeSucceeded || e.State() == v1alpha1.BakeCancelled
		if *e.ID != int64(len(entries)-i) || !inOrder || !ended {
			a.T.Errorf("%s: the history goes wrong at id %d: %q", a.Namespace, *e.ID, env.History(rollout))
			return
		}
	}
}

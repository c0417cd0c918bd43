// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// noon is when the environments of these tests are looked at.
var (
	noon   = fixture.Noon
	eleven = noon.Add(-time.Hour)
	ten    = noon.Add(-2 * time.Hour)
)

// said is a release as a line: what a test asserts of it.
func said(releases []environmentsv1.Release) []string {
	var lines []string
	for _, r := range releases {
		line := fmt.Sprintf("#%d %s %s", r.ID, r.Tag, r.State)
		if r.Current {
			line += ", current"
		}
		if r.Evidence != "" {
			line += ", " + string(r.Evidence)
		}
		if r.Soaked != nil && r.State == v1alpha1.BakeSucceeded {
			line += ", soaked " + r.Soaked.Duration.String()
		}
		if r.Unhealthy != "" {
			line += ", unhealthy: " + r.Unhealthy
		}
		if r.Withdrawn != "" {
			line += ", " + r.Withdrawn
		}
		lines = append(lines, line)
	}
	return lines
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}

func release(tag string) v1alpha1.VersionInfo {
	return fixture.MakeRelease(tag).Digest("sha256:" + tag).Obj()
}

func entry(tag string) *fixture.EntryBuilder { return fixture.MakeEntry(tag).Version(release(tag)) }

// view returns an environment whose history has these entries, the newest first. Its
// ImagePolicy ranks 1.0.0 before 1.1.0 before 1.2.0.
func view(entries ...*fixture.EntryBuilder) environment.View {
	return environment.View{Rollout: fixture.MakeRollout("shop").Releases(release("1.0.0"), release("1.1.0"), release("1.2.0")).History(entries...).Obj()}
}

func baked(tag string) *fixture.EntryBuilder {
	return entry(tag).Succeeded().ProvenBy(1, 1).BakeStart(ten).BakeEnd(eleven)
}

func TestHistoryAsARecord(t *testing.T) {
	bob := func(e *fixture.EntryBuilder) *fixture.EntryBuilder { return e.By(v1alpha1.TriggeredByUser, "bob") }
	for name, test := range map[string]struct {
		view environment.View
		want []string
	}{
		"nothing was promoted": {view(), nil},
		"one release":          {view(baked("1.0.0")), []string{"#1 1.0.0 Succeeded, current, Baked, soaked 1h0m0s"}},
		"it was only applied": {
			view(entry("1.0.0").Succeeded().BakeEnd(eleven)), []string{"#1 1.0.0 Succeeded, current, Applied, soaked 0s"},
		},
		"it was only applied, for a bake time": {view(baked("1.0.0").ProvenBy(1, 0)), []string{"#1 1.0.0 Succeeded, current, Applied, soaked 1h0m0s"}},
		"it was healthy": {
			view(entry("1.0.0").Succeeded().ProvenBy(1, 1).BakeStart(eleven).BakeEnd(eleven)), []string{"#1 1.0.0 Succeeded, current, Healthy, soaked 0s"},
		},
		"there was nothing to deploy, and a HealthCheck":    {view(baked("1.0.0").ProvenBy(0, 1)), []string{"#1 1.0.0 Succeeded, current, Baked, soaked 1h0m0s"}},
		"there was nothing to deploy, and nothing to check": {view(baked("1.0.0").ProvenBy(0, 0)), []string{"#1 1.0.0 Succeeded, current, None, soaked 1h0m0s"}},
		"another client has lost what it was proven by": {
			view(entry("1.0.0").Succeeded().BakeStart(ten).BakeEnd(eleven)), []string{"#1 1.0.0 Succeeded, current, Applied, soaked 1h0m0s"},
		},
		"a release that was replaced keeps its bake": {
			view(entry("1.1.0").Deploying().At(noon), baked("1.0.0")),
			[]string{"#2 1.1.0 Deploying, current", "#1 1.0.0 Succeeded, Baked, soaked 1h0m0s"},
		},
		"a cancelled promotion says nothing": {
			view(baked("1.2.0"), entry("1.1.0").Cancelled(), baked("1.0.0")),
			[]string{"#3 1.2.0 Succeeded, current, Baked, soaked 1h0m0s", "#1 1.0.0 Succeeded, Baked, soaked 1h0m0s"},
		},
		"nor does one in a state that only another client knows, or in none": {
			view(baked("1.2.0"), entry("1.1.0").State("Pending"), entry("1.0.0").State("")),
			[]string{"#3 1.2.0 Succeeded, current, Baked, soaked 1h0m0s"},
		},
		"the newest promotion of a release decides": {
			view(entry("1.0.0").Failed().BakeEnd(noon), baked("1.1.0"), baked("1.0.0")),
			[]string{"#3 1.0.0 Failed, current", "#2 1.1.0 Succeeded, Baked, soaked 1h0m0s, went back to 1.0.0"},
		},
		"a rollback withdraws what is newer": {
			view(bob(entry("1.0.0").Deploying()), baked("1.2.0"), baked("1.1.0"), baked("1.0.0")),
			[]string{
				"#4 1.0.0 Deploying, current", "#3 1.2.0 Succeeded, Baked, soaked 1h0m0s, went back to 1.0.0, by bob",
				"#2 1.1.0 Succeeded, Baked, soaked 1h0m0s, went back to 1.0.0, by bob",
			},
		},
		"a rollback to what was never deployed, too": {
			view(entry("1.0.0").Deploying(), baked("1.1.0")),
			[]string{"#2 1.0.0 Deploying, current", "#1 1.1.0 Succeeded, Baked, soaked 1h0m0s, went back to 1.0.0"},
		},
		"a new success lifts it": {
			view(baked("1.1.0"), baked("1.0.0"), baked("1.1.0")),
			[]string{"#3 1.1.0 Succeeded, current, Baked, soaked 1h0m0s", "#2 1.0.0 Succeeded, Baked, soaked 1h0m0s"},
		},
		"but not before it is one": {
			view(entry("1.1.0").Deploying(), baked("1.0.0"), baked("1.1.0")),
			[]string{"#3 1.1.0 Deploying, current, went back to 1.0.0", "#2 1.0.0 Succeeded, Baked, soaked 1h0m0s"},
		},
		"a step back that another one replaced": {
			view(baked("1.1.0"), entry("1.0.0").Cancelled(), baked("1.2.0"), baked("1.1.0")),
			[]string{"#4 1.1.0 Succeeded, current, Baked, soaked 1h0m0s", "#2 1.2.0 Succeeded, Baked, soaked 1h0m0s, went back to 1.1.0"},
		},
		"a step back over a build that no policy ranks": {
			view(baked("1.1.0"), baked("hotfix"), baked("1.2.0")),
			[]string{
				"#3 1.1.0 Succeeded, current, Baked, soaked 1h0m0s", "#2 hotfix Succeeded, Baked, soaked 1h0m0s",
				"#1 1.2.0 Succeeded, Baked, soaked 1h0m0s, went back to 1.1.0",
			},
		},
		"a step back, and forward again to another release": {
			view(baked("1.1.0"), bob(entry("1.0.0").Succeeded().BakeEnd(eleven)), baked("1.2.0")),
			[]string{
				"#3 1.1.0 Succeeded, current, Baked, soaked 1h0m0s", "#2 1.0.0 Succeeded, Applied, soaked 0s",
				"#1 1.2.0 Succeeded, Baked, soaked 1h0m0s, went back to 1.0.0, by bob",
			},
		},
		"two builds that no policy ranks, forward again": {
			view(baked("second"), baked("first"), baked("second"), baked("first")),
			[]string{"#4 second Succeeded, current, Baked, soaked 1h0m0s", "#3 first Succeeded, Baked, soaked 1h0m0s"},
		},
		"a build that no policy ranks, and back": {
			view(baked("1.1.0"), baked("hotfix"), baked("1.1.0")),
			[]string{"#3 1.1.0 Succeeded, current, Baked, soaked 1h0m0s", "#2 hotfix Succeeded, Baked, soaked 1h0m0s, went back to 1.1.0"},
		},
		"a lower version of another image withdraws nothing": {
			view(entry("1.0.0").Image("registry.example.com/new").Deploying(), baked("1.1.0").Image("registry.example.com/old")),
			[]string{"#2 1.0.0 Deploying, current", "#1 1.1.0 Succeeded, Baked, soaked 1h0m0s"},
		},
		"two contents of a tag are two releases": {
			view(baked("1.0.0").Version(fixture.MakeRelease("1.0.0").Digest("sha256:moved").Obj()), baked("1.0.0")),
			[]string{"#2 1.0.0 Succeeded, current, Baked, soaked 1h0m0s", "#1 1.0.0 Succeeded, Baked, soaked 1h0m0s"},
		},
		"two tags of a content are one": {
			view(baked("1.1.0").Version(fixture.MakeRelease("1.1.0").Digest("sha256:1.0.0").Obj()), baked("1.0.0")),
			[]string{"#2 1.1.0 Succeeded, current, Baked, soaked 1h0m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) { diff(t, test.want, said(environment.Read(test.view, noon))) })
	}
}

func TestRollbackHasABakeTimeOfItsOwn(t *testing.T) {
	v := view(entry("1.0.0").Baking(noon).Back("1.1.0", 2, 1), entry("1.1.0").Failed().BakeEnd(eleven), baked("1.0.0"))
	v.Rollout.Spec.BakeTime = &metav1.Duration{Duration: time.Hour}
	v.Rollout.Spec.Rollback = &v1alpha1.RolloutRollback{BakeTime: &metav1.Duration{Duration: 5 * time.Minute}}
	releases := environment.Read(v, noon)
	current := slices.IndexFunc(releases, func(r environmentsv1.Release) bool { return r.Current })
	diff(t, &metav1.Time{Time: noon.Add(5 * time.Minute)}, releases[current].Until)
}

// watched is an environment whose record is kept, as its controller does.
type watched struct {
	environment.View
	writes int
}

func watch(entries ...*fixture.EntryBuilder) *watched { return &watched{View: view(entries...)} }

func (w *watched) look(now time.Time) {
	next := environment.Record(w.View, now)
	if environment.Same(w.Recorded, next) {
		return
	}
	w.Recorded = next
	w.writes++
}

func (w *watched) promotes(entries ...*fixture.EntryBuilder) {
	w.Rollout.Status.History = view(entries...).Rollout.Status.History
}

// TestHealthThatNobodyHasConfirmedCountsForAWhile: the controller there may be away, while
// others see that a HealthCheck is Healthy again.
func TestHealthThatNobodyHasConfirmedCountsForAWhile(t *testing.T) {
	w := watch(baked("1.0.0"))
	w.look(noon)
	w.LastError = noon.Add(time.Minute)
	read := environment.Read(w.View, noon.Add(2*time.Minute))
	diff(t, &metav1.Duration{Duration: 10 * time.Minute}, read[0].RenewAfter)
	if read[0].HealthySince != nil || read[0].Soaked.Duration != 0 {
		t.Errorf("it is healthy since %v, for %v", read[0].HealthySince, read[0].Soaked)
	}
}

// TestInterruptionThatNobodySawLastsUntilItIsOver: the time of an error is that of its first
// sight.
func TestInterruptionThatNobodySawLastsUntilItIsOver(t *testing.T) {
	w := watch(baked("1.0.0"))
	w.look(noon)
	w.LastError, w.Recovered = noon.Add(time.Minute), noon.Add(13*time.Minute)
	w.look(noon.Add(15 * time.Minute))
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 2m0s"}, said(w.Recorded))

	w.Recovered = noon.Add(20 * time.Minute) // it was Pending in between
	w.look(noon.Add(25 * time.Minute))
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 2m0s"}, said(w.Recorded))

	w.promotes(entry("1.1.0").Deploying().At(noon.Add(30*time.Minute)), baked("1.0.0"))
	w.look(noon.Add(31 * time.Minute))
	diff(t, "soaked 17m0s", said(w.Recorded)[1][len("#1 1.0.0 Succeeded, Baked, "):][:len("soaked 17m0s")])
}

func TestSoakIsTimeWithoutInterruption(t *testing.T) {
	w := watch(entry("1.0.0").Baking(ten))
	w.look(eleven)
	w.promotes(baked("1.0.0"))
	w.look(noon)
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 2h0m0s"}, said(w.Recorded))

	w.Unhealthy = "HealthCheck shop/smoke"
	w.look(noon.Add(time.Minute))
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 0s, unhealthy: HealthCheck shop/smoke"}, said(w.Recorded))

	w.Unhealthy = ""
	diff(t, w.Recorded, environment.Read(w.View, noon.Add(48*time.Hour))) // for others, it is well only once that is recorded
	w.look(noon.Add(2 * time.Minute))
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 0s"}, said(w.Recorded))

	w.promotes(entry("1.1.0").Deploying().At(noon.Add(20*time.Minute)), baked("1.0.0"))
	w.look(noon.Add(25 * time.Minute)) // it counts until it was left, not until somebody looked
	diff(t, []string{"#2 1.1.0 Deploying, current", "#1 1.0.0 Succeeded, Baked, soaked 18m0s"}, said(w.Recorded))
	w.look(noon.Add(time.Hour))
	diff(t, []string{"#2 1.1.0 Deploying, current", "#1 1.0.0 Succeeded, Baked, soaked 18m0s"}, said(w.Recorded))
}

// lives lets the controller of the environment be woken until a time, as often as it wants.
func (w *watched) lives(until time.Time) {
	for at := environment.RenewalAt(w.Recorded); !at.IsZero() && !at.After(until); at = environment.RenewalAt(w.Recorded) {
		w.look(at)
	}
}

// A release is confirmed in growing steps, and not at all once it is a week old. So each
// release has a handful of reports.
func TestRecordIsWrittenToConfirmARelease(t *testing.T) {
	for _, bake := range []time.Duration{0, time.Minute, 11 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
		t.Run(bake.String(), func(t *testing.T) {
			w := watch(entry("1.0.0").Deploying().At(noon))
			w.look(noon)
			if bake > 0 {
				w.promotes(entry("1.0.0").Baking(noon))
				w.look(noon)
			}
			w.lives(noon.Add(bake))
			w.promotes(entry("1.0.0").Succeeded().ProvenBy(1, 1).BakeStart(noon).BakeEnd(noon.Add(bake)))
			w.look(noon.Add(bake))
			for i := range 24 * 60 {
				if at := noon.Add(time.Duration(i) * time.Minute); at.After(noon.Add(bake)) {
					w.lives(at)
					w.look(at) // at any time, for another reason
				}
			}
			if w.writes > 10 {
				t.Errorf("the record of a day was written %d times", w.writes)
			}
			w.lives(noon.Add(10 * 24 * time.Hour))
			diff(t, 10*24*time.Hour, noon.Add(10*24*time.Hour).Sub(w.Recorded[0].HealthySince.Time))
			diff(t, true, environment.RenewalAt(w.Recorded).IsZero())
		})
	}
}

func TestTimeWithoutTheControllerIsNoHealth(t *testing.T) {
	for name, test := range map[string]struct{ away, want time.Duration }{
		"a restart":         {time.Minute, 11 * time.Minute},
		"a longer one":      {time.Hour, 70 * time.Minute},
		"a little too long": {time.Hour + time.Second, 10 * time.Minute},
		"a whole night":     {12 * time.Hour, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(entry("1.0.0").Succeeded().ProvenBy(1, 0).At(noon))
			w.look(noon)
			w.lives(noon.Add(10 * time.Minute)) // the next confirmation is due 30 minutes later
			left := &watched{View: w.View}
			at := noon.Add(10*time.Minute + test.away)
			w.look(at)
			diff(t, test.want, at.Sub(w.Recorded[0].HealthySince.Time))

			left.promotes(entry("1.1.0").Deploying().At(at), entry("1.0.0").Succeeded().ProvenBy(1, 0).At(noon))
			left.look(at)
			diff(t, test.want, left.Recorded[1].Soaked.Duration)
		})
	}
}

// Time in which a HealthCheck has nothing to say counts only as far as others grant silence.
func TestInterruptionBeforeAReleaseWasLeft(t *testing.T) {
	for name, test := range map[string]struct {
		failed time.Time
		want   time.Duration
	}{
		"none":                        {time.Time{}, 70 * time.Minute},
		"seen by nobody":              {noon.Add(2 * time.Minute), 8 * time.Minute},
		"it may be of the next one":   {noon.Add(11 * time.Minute), time.Hour},
		"before the release was here": {ten, 70 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(baked("1.0.0"))
			w.look(noon)
			w.LastError = test.failed
			w.promotes(entry("1.1.0").Deploying().At(noon.Add(10*time.Minute)), baked("1.0.0"))
			w.look(noon.Add(12 * time.Minute))
			diff(t, test.want, w.Recorded[1].Soaked.Duration)
		})
	}
}

// A record that is lost leaves only the bake of a release that was left. An error after it, and
// before the release was left, shows that it did not stay healthy.
func TestErrorAfterTheBakeCountsWithoutARecord(t *testing.T) {
	for name, test := range map[string]struct {
		failed time.Time
		want   time.Duration
	}{
		"none":                        {time.Time{}, time.Hour},
		"after its bake":              {noon.Add(-time.Minute), 0},
		"when it was left":            {noon, 0},
		"it may be of the next one":   {noon.Add(time.Minute), time.Hour},
		"before the release was here": {ten.Add(-time.Minute), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(entry("1.1.0").Deploying().At(noon), baked("1.0.0"))
			w.LastError = test.failed
			w.look(noon.Add(2 * time.Minute))
			diff(t, test.want, w.Recorded[1].Soaked.Duration)
		})
	}
}

func TestNothingIsConfirmedWhileAHealthCheckIsPending(t *testing.T) {
	w := watch(baked("1.0.0"))
	w.look(noon)
	w.Pending = true
	w.look(noon.Add(3 * time.Hour))
	diff(t, noon, w.Recorded[0].RenewedTime.Time)
	w.Pending = false
	w.look(noon.Add(4 * time.Hour))
	diff(t, noon.Add(4*time.Hour), w.Recorded[0].RenewedTime.Time)
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 1h0m0s"}, said(w.Recorded))
}

func TestRecordKeepsWhatTheHistoryHasLost(t *testing.T) {
	w := watch(baked("1.1.0"), baked("1.0.0"))
	w.look(noon)
	w.promotes(baked("1.2.0").ID(3))
	w.look(noon)
	diff(t, []string{
		"#3 1.2.0 Succeeded, current, Baked, soaked 1h0m0s", "#2 1.1.0 Succeeded, Baked, soaked 1h0m0s", "#1 1.0.0 Succeeded, Baked, soaked 1h0m0s",
	}, said(w.Recorded))

	w.promotes() // the status was deleted; what was proven stays proven
	w.look(noon)
	diff(t, []string{
		"#3 1.2.0 Succeeded, Baked, soaked 1h0m0s", "#2 1.1.0 Succeeded, Baked, soaked 1h0m0s", "#1 1.0.0 Succeeded, Baked, soaked 1h0m0s",
	}, said(w.Recorded))

	w.promotes(entry("1.0.0").Deploying().ID(1)) // the Rollout was created again
	w.look(noon)
	diff(t, []string{"#1 1.0.0 Deploying, current"}, said(w.Recorded))
}

func TestEvidenceStays(t *testing.T) {
	w := watch(baked("1.0.0"))
	w.look(noon)
	w.promotes(entry("1.0.0").Succeeded().BakeStart(ten).BakeEnd(eleven)) // as a client with older types writes it
	w.look(noon)
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 1h0m0s"}, said(w.Recorded))

	w = watch(baked("1.0.0").ProvenBy(0, 0))
	w.look(noon)
	w.Rollout.Status.Targets = []v1alpha1.TargetStatus{{State: v1alpha1.TargetApplied}}
	w.look(noon)
	diff(t, []string{"#1 1.0.0 Succeeded, current, Applied, soaked 1h0m0s"}, said(w.Recorded))
	w.promotes(entry("1.1.0").Deploying().At(noon), baked("1.0.0").ProvenBy(0, 0))
	w.look(noon)
	diff(t, []string{"#2 1.1.0 Deploying, current", "#1 1.0.0 Succeeded, Applied, soaked 1h0m0s"}, said(w.Recorded))
}

func TestRecordDoesNotNeedTheHistory(t *testing.T) {
	w := watch(baked("1.0.0"))
	w.look(noon)
	w.lives(noon.Add(27 * time.Hour))
	w.promotes(baked("1.1.0").ID(2).At(noon.Add(27 * time.Hour))) // the history has only one entry
	w.look(noon.Add(28 * time.Hour))
	w.lives(noon.Add(30 * time.Hour))
	w.promotes(entry("1.2.0").ID(3).Succeeded().At(noon.Add(30 * time.Hour)))
	w.look(noon.Add(31 * time.Hour))
	diff(t, []string{
		"#3 1.2.0 Succeeded, current, Applied, soaked 0s", "#2 1.1.0 Succeeded, Baked, soaked 3h0m0s", "#1 1.0.0 Succeeded, Baked, soaked 28h0m0s",
	}, said(w.Recorded))

	w.lives(noon.Add(32 * time.Hour))
	w.promotes(entry("1.1.0").ID(4).Deploying().At(noon.Add(32 * time.Hour)))
	w.look(noon.Add(32 * time.Hour))
	diff(t, []string{
		"#4 1.1.0 Deploying, current", "#3 1.2.0 Succeeded, Applied, soaked 1h0m0s, went back to 1.1.0", "#1 1.0.0 Succeeded, Baked, soaked 28h0m0s",
	}, said(w.Recorded))
}

func TestRecordKnowsWhichBuildCameFirst(t *testing.T) {
	w := watch(baked("first"))
	w.look(noon)
	for id, tag := range []string{2: "second", 3: "first", 4: "second"} {
		if tag != "" {
			w.promotes(entry(tag).ID(int64(id)).Succeeded().At(noon))
			w.look(noon)
		}
	}
	diff(t, []string{"#4 second Succeeded, current, Applied, soaked 0s", "#3 first Succeeded, Applied, soaked 1h0m0s"}, said(w.Recorded))
}

func TestSoakDoesNotCountWhileTheBakeStandsStill(t *testing.T) {
	standing := func(e *fixture.EntryBuilder) *fixture.EntryBuilder { return e.StoodStill(10 * time.Minute) }
	w := watch(standing(baked("1.0.0")))
	w.look(noon)
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 50m0s"}, said(w.Recorded))

	w = watch(entry("1.0.0").Baking(ten))
	w.look(ten.Add(20 * time.Minute))
	w.promotes(entry("1.0.0").Baking(ten).StandsStill(ten.Add(20 * time.Minute)))
	for at := ten.Add(21 * time.Minute); at.Before(ten.Add(30 * time.Minute)); at = at.Add(time.Minute) {
		w.look(at)
	}
	diff(t, 2, w.writes)
	w.promotes(standing(entry("1.0.0").Baking(ten)))
	w.look(ten.Add(30 * time.Minute))
	w.lives(noon)
	w.promotes(standing(baked("1.0.0")))
	w.look(noon)
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 1h50m0s"}, said(w.Recorded))
}

func TestRecordCorrectsWhatTurnedOutDifferently(t *testing.T) {
	w := watch(entry("1.1.0").Deploying(), baked("1.0.0"))
	w.look(noon)
	w.promotes(entry("1.2.0").Deploying(), entry("1.1.0").Cancelled(), baked("1.0.0"))
	w.look(noon)
	diff(t, []string{"#3 1.2.0 Deploying, current", "#1 1.0.0 Succeeded, Baked, soaked 1h0m0s"}, said(w.Recorded))

	w = watch(entry("1.0.0").Version(fixture.MakeRelease("1.0.0").Obj()).Deploying()) // its digest is learned later
	w.look(noon)
	w.promotes(baked("1.0.0"))
	w.look(noon)
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 1h0m0s"}, said(w.Recorded))

	w = watch(entry("1.0.0").Failed().BakeEnd(eleven)) // and then it is retried
	w.look(noon)
	w.promotes(entry("1.0.0").Succeeded().ProvenBy(1, 1).BakeStart(eleven).BakeEnd(noon))
	w.look(noon)
	diff(t, []string{"#1 1.0.0 Succeeded, current, Baked, soaked 1h0m0s"}, said(w.Recorded))
}

func TestRecordHasALimit(t *testing.T) {
	var entries []*fixture.EntryBuilder
	for i := range 50 {
		entries = append(entries, baked(fmt.Sprintf("1.0.%d", 50-i)))
	}
	w := watch(entries...)
	w.look(noon)
	diff(t, environment.MostReleases, len(w.Recorded))
	diff(t, "1.0.50", w.Recorded[0].Tag)
	diff(t, true, environment.Same(w.Recorded, environment.Record(w.View, noon.Add(time.Minute))))
}

// Whatever happens, and whenever the record is looked at, it never says that a release was
// healthy for longer than it was.
func TestRecordNeverSaysThatAReleaseWasHealthyForLonger(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w, now := watch(entry("1.0.0").Baking(noon)), noon
		healthy := now // since when the current release is healthy without interruption
		for range 40 {
			now = now.Add(time.Duration(1+rng.IntN(600)) * time.Second)
			switch current := w.Rollout.Current(); rng.IntN(5) {
			case 0:
				w.Unhealthy = "HealthCheck shop/smoke"
			case 1:
				if w.Unhealthy != "" {
					w.Unhealthy, healthy, w.LastError = "", now, now
				}
			case 2:
				if current.State() == v1alpha1.BakeInProgress && w.Unhealthy == "" {
					succeeded := v1alpha1.BakeSucceeded
					current.BakeStatus, current.BakeEndTime = &succeeded, &metav1.Time{Time: now}
				}
			case 3:
				w.Recorded = nil // the status was deleted
			}
			if rng.IntN(3) > 0 {
				w.look(now)
			}
			for _, r := range environment.Read(w.View, noon.Add(48*time.Hour)) {
				if was := now.Sub(healthy); w.Unhealthy == "" && r.Current && r.Soaked != nil && r.Soaked.Duration > was {
					t.Fatalf("seed %d: it was healthy for %s, and the record says %s", seed, was, r.Soaked.Duration)
				}
			}
		}
	}
}

// A clock that was ahead has stored times that have not come yet. They count as now.
func TestTimeThatHasNotComeCountsAsNow(t *testing.T) {
	w := watch(entry("1.0.0").Succeeded().ProvenBy(1, 0).At(noon))
	w.look(noon.Add(24 * time.Hour))
	w.look(noon)
	diff(t, noon, w.Recorded[0].HealthySince.Time)
	diff(t, noon, w.Recorded[0].RenewedTime.Time)

	said := []environmentsv1.UpstreamStatus{{Environment: "staging", ObservedDigest: "sha256:a"}}
	ahead := environment.Upstreams(nil, said, noon.Add(24*time.Hour))
	diff(t, noon, environment.Upstreams(ahead, said, noon)[0].VerifiedTime.Time)
}

// The clock of whoever writes a HealthCheck may be ahead, too.
func TestErrorThatHasNotComeCountsOnce(t *testing.T) {
	w := watch(baked("1.0.0"))
	w.look(noon)
	w.LastError = noon.Add(24 * time.Hour)
	w.Unhealthy = "HealthCheck shop/smoke"
	w.look(noon.Add(time.Minute))
	w.Unhealthy = ""
	before := w.writes
	for i := range 60 {
		w.look(noon.Add(2*time.Minute + time.Duration(i)*time.Second))
	}
	diff(t, 1, w.writes-before)
	diff(t, noon.Add(2*time.Minute), w.Recorded[0].HealthySince.Time)
	diff(t, w.Recorded, environment.Read(w.View, noon.Add(3*time.Minute)))
}

// A release that was left at a time that has not come was healthy until now at most.
func TestReleaseThatWasLeftLaterWasHealthyUntilNow(t *testing.T) {
	w := watch(baked("1.0.0"))
	w.look(noon)
	w.promotes(entry("1.1.0").Deploying().At(noon.Add(15*time.Minute)), baked("1.0.0"))
	w.look(noon.Add(10 * time.Minute))
	diff(t, 70*time.Minute, w.Recorded[1].Soaked.Duration)
}

func TestRecordOfAnotherRolloutDoesNotCount(t *testing.T) {
	e := fixture.MakeEnvironment("staging").Obj()
	e.Status.Releases = []environmentsv1.Release{{Tag: "1.0.0"}}
	diff(t, e.Status.Releases, environment.Recorded(e)) // by a version that did not say of what
	e.Status.Source = environment.Source(e)
	diff(t, e.Status.Releases, environment.Recorded(e))
	e.Spec.RolloutRef.Name = "other"
	diff(t, []environmentsv1.Release(nil), environment.Recorded(e))
}

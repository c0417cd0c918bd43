// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"testing"
	"time"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// sees gives the environment a history, and looks at it.
func (w *watched) sees(at time.Time, entries ...*fixture.EntryBuilder) {
	w.promotes(entries...)
	w.look(at)
}

// counts returns what counts of a release that may be healthy: the longest time in health.
func counts(releases []environmentsv1.Release, tag string) time.Duration {
	for i := range releases {
		if releases[i].Tag == tag {
			return releases[i].Longest()
		}
	}
	return 0
}

// In all of these, 1.1.0 has soaked for 28 hours when 1.2.0 is promoted, and fails. An hour
// later, the environment has gone back to 1.1.0.
func TestLongestSoakIsKeptUnlessTheReleaseFails(t *testing.T) {
	day := noon.Add(27 * time.Hour)
	at := func(hours int, more ...time.Duration) time.Time {
		then := day.Add(time.Duration(hours) * time.Hour)
		for _, d := range more {
			then = then.Add(d)
		}
		return then
	}
	first := func() *fixture.EntryBuilder { return baked("1.1.0").ID(1) }
	bad := func() *fixture.EntryBuilder { return entry("1.2.0").ID(2).At(day).Failed().BakeEnd(at(1)) }
	back := func() *fixture.EntryBuilder { return entry("1.1.0").ID(3).At(at(1)).ProvenBy(1, 1) }
	isBack := func() *fixture.EntryBuilder { return back().Succeeded().BakeStart(at(1)).BakeEnd(at(2)) }
	next := func() *fixture.EntryBuilder { return entry("1.2.1").ID(4).At(at(3)).Deploying() }

	for name, test := range map[string]struct {
		then func(w *watched)
		want time.Duration
	}{
		"back": {func(w *watched) { w.sees(at(2), isBack(), bad(), first()) }, 28 * time.Hour},
		"and left again": {func(w *watched) {
			w.sees(at(2), isBack(), bad(), first())
			w.sees(at(3), next(), isBack(), bad(), first())
			w.look(at(4))
		}, 28 * time.Hour},
		"all before anybody looked": {func(w *watched) { w.sees(at(3), next(), isBack(), bad(), first()) }, 28 * time.Hour},
		"in a history of one entry": {func(w *watched) {
			w.sees(at(0), bad())
			w.sees(at(1), back().Deploying())
			w.sees(at(2), isBack())
			w.sees(at(3), next())
		}, 28 * time.Hour},
		"and the step back was cancelled": {func(w *watched) {
			w.sees(at(1), back().Deploying(), bad(), first())
			w.sees(at(3), next(), back().Cancelled(), bad(), first())
			w.look(at(4))
		}, 28 * time.Hour},
		"and it soaks for longer": {func(w *watched) {
			w.sees(at(2), isBack(), bad(), first())
			w.lives(at(32))
			w.sees(at(32), next().At(at(32)), isBack(), bad(), first())
		}, 31 * time.Hour},
		"but it fails this time": {func(w *watched) { w.sees(at(2), back().Failed().BakeEnd(at(2)), bad(), first()) }, 0},
		"but it fails, and once more it succeeds": {func(w *watched) {
			w.sees(at(4), entry("1.1.0").ID(4).At(at(3)).ProvenBy(1, 1).Succeeded().BakeStart(at(3)).BakeEnd(at(4)), back().Failed().BakeEnd(at(2)), bad(), first())
		}, time.Hour},
		"but it fails, and succeeds when it is retried": {func(w *watched) {
			w.sees(at(1), back().Failed().BakeEnd(at(1)), bad(), first())
			w.sees(at(2), isBack(), bad(), first())
		}, time.Hour},
		"but it becomes unhealthy": {func(w *watched) {
			w.sees(at(2), isBack(), bad(), first())
			w.Unhealthy = "HealthCheck shop/smoke"
			w.look(at(3))
			w.Unhealthy = ""
			w.look(at(4))
			w.look(at(4, time.Minute))
		}, 0},
		"but it is left because it is unhealthy": {func(w *watched) {
			w.sees(at(2), isBack(), bad(), first())
			w.Unhealthy = "HealthCheck shop/smoke"
			w.look(at(2))
			w.sees(at(3), next(), isBack(), bad(), first())
		}, 0},
		"but it was unhealthy for a moment in which nobody looked": {func(w *watched) {
			w.sees(at(2), isBack(), bad(), first())
			w.LastError = at(2, time.Minute)
			w.look(at(2, 2*time.Minute))
		}, time.Minute},
		"but it was unhealthy for a moment in its bake": {func(w *watched) {
			w.LastError = at(2, -time.Minute)
			w.sees(at(2), isBack(), bad(), first())
		}, time.Minute},
		"but it was unhealthy for a moment before it was left": {func(w *watched) {
			w.sees(at(2), isBack(), bad(), first())
			w.LastError = at(2, time.Minute)
			w.sees(at(3), next(), isBack(), bad(), first())
		}, 59 * time.Minute},
		"and the failure before it is not its own": {func(w *watched) {
			w.LastError = at(1)
			w.sees(at(2), isBack(), bad(), first())
		}, 28 * time.Hour},
		"but the environment had gone back from it": {func(w *watched) {
			w.sees(at(2), isBack(), entry("1.0.0").ID(2).At(day).Succeeded().BakeEnd(day), first())
		}, time.Hour},
		"but its tag has another content": {func(w *watched) {
			w.sees(at(2), isBack().Version(fixture.MakeRelease("1.1.0").Digest("sha256:moved").Obj()), bad(), first())
		}, time.Hour},
		"but it has no digest, and another revision": {func(w *watched) {
			w.Recorded[0].Digest, w.Recorded[0].Revision = "", "a"
			w.sees(at(2), isBack().Version(fixture.MakeRelease("1.1.0").Revision("b").Obj()), bad(), first().Version(fixture.MakeRelease("1.1.0").Revision("a").Obj()))
		}, time.Hour},
		"but the Rollout was created again": {func(w *watched) {
			w.sees(day, bad())
			w.sees(at(2), isBack().ID(1))
		}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(first())
			w.look(noon)
			w.lives(day)
			test.then(w)
			diff(t, test.want, counts(w.Recorded, "1.1.0"))
			diff(t, test.want, counts(environment.Read(w.View, at(48)), "1.1.0"))
		})
	}
}

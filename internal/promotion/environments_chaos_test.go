// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// mail carries what staging says to another cluster, as signed reports do.
type mail struct {
	key      report.SigningKey
	last     report.Report
	envelope []byte
	// contents are the digests of the world by the digests in reports.
	contents map[string]string
}

func newMail(t *testing.T) *mail {
	t.Helper()
	key, err := report.Generate(report.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	m := &mail{key: key, contents: map[string]string{}}
	m.publish(t, nil, noon)
	return m
}

// publish stores a report if it says something new.
func (m *mail) publish(t *testing.T, releases []environmentsv1.Release, now time.Time) {
	t.Helper()
	r := report.Report{Source: report.Source{Application: "shop", Environment: "staging", Cluster: "eu", Namespace: "shop", Rollout: "staging"}}
	r.Releases = slices.Clone(releases)
	for i := range r.Releases {
		content := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.Releases[i].Digest)))
		m.contents[content] = r.Releases[i].Digest
		r.Releases[i].Digest = content
	}
	if m.envelope != nil && r.Digest() == m.last.Digest() {
		return
	}
	signed := report.Dated(r, m.last.Sequence, now)
	envelope, err := report.Sign(signed, m.key)
	if err != nil {
		t.Fatal(err)
	}
	m.last, m.envelope = r, envelope
	m.last.Sequence = signed.Sequence
}

// delivered returns what the newest report says.
func (m *mail) delivered(t *testing.T) ([]environmentsv1.Release, int64) {
	t.Helper()
	r, err := report.Verify(m.envelope, m.key.Trusted(), report.Expected{Source: m.last.Source})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Releases {
		r.Releases[i].Digest = m.contents[r.Releases[i].Digest]
	}
	return r.Releases, r.Sequence
}

// truth is what happens in staging, seen from above.
type truth struct {
	// heard is when its controller last acted, and failed when it was last unhealthy.
	heard, failed time.Time
	entries       map[int64]v1alpha1.DeploymentHistoryEntry
	last, taken   int64 // the newest ids in staging and in prod
	isHealthy     bool
	// healthy is for how long the release of each promotion was healthy without interruption.
	healthy map[int64]time.Duration
	// broken are the promotions that failed or were unhealthy: what their releases had proven
	// before no longer counts.
	broken map[int64]bool
}

func newTruth() *truth {
	return &truth{entries: map[int64]v1alpha1.DeploymentHistoryEntry{}, healthy: map[int64]time.Duration{}, broken: map[int64]bool{}}
}

// granted returns for how long a release counts as healthy in silence that has been healthy
// for a time.
func granted(healthy time.Duration) time.Duration {
	for _, step := range []struct{ below, most time.Duration }{
		{10 * time.Minute, 20 * time.Minute}, {40 * time.Minute, time.Hour}, {100 * time.Minute, 2 * time.Hour}, {220 * time.Minute, 4 * time.Hour},
	} {
		if healthy < step.below {
			return step.most
		}
	}
	return 12 * time.Hour
}

// follow looks at staging after it has acted. What happens while its controller is away is
// not known to anybody, and counts as healthy only for as long as silence is granted.
func (tr *truth) follow(p *pair) {
	current, unhealthy := p.staging.current(), p.view().Unhealthy != ""
	if unhealthy {
		tr.failed = p.now
	}
	if p.staging.iteration < p.staging.awayUntil {
		return
	}
	was := tr.last
	switch gap := p.now.Sub(tr.heard); {
	case !tr.isHealthy:
	case tr.failed.After(tr.heard) && gap > granted(tr.healthy[was]):
		tr.healthy[was], tr.broken[was] = 0, true
	case tr.failed.After(tr.heard):
		tr.healthy[was], tr.broken[was] = p.now.Sub(tr.failed), true
	case gap <= granted(tr.healthy[was]):
		tr.healthy[was] += gap
	}
	tr.heard = p.now
	tr.read(p.staging.rollout.Status.History)
	bakes := current.State() == v1alpha1.BakeInProgress && current.UnprovenSince == nil
	tr.isHealthy = !unhealthy && (bakes || current.State() == v1alpha1.BakeSucceeded)
	if unhealthy {
		tr.healthy[tr.last] = 0
		tr.broken[tr.last] = tr.broken[tr.last] || current.State() == v1alpha1.BakeInProgress || current.State() == v1alpha1.BakeSucceeded
	}
}

// read takes over the history of staging.
func (tr *truth) read(history []v1alpha1.DeploymentHistoryEntry) {
	for id, e := range tr.entries {
		if e.State().Running() { // an entry that leaves the history before its outcome was cancelled
			e.BakeStatus = to(v1alpha1.BakeCancelled)
			tr.entries[id] = e
		}
	}
	for _, e := range slices.Backward(history) {
		tr.last = max(tr.last, *e.ID)
		if e.State() == v1alpha1.BakeSucceeded && tr.entries[*e.ID].BakeEndTime == nil && e.BakeStartTime != nil {
			tr.healthy[*e.ID] = max(tr.healthy[*e.ID], bakeOf(e)) // it was decided there that it has baked for so long
		}
		tr.broken[*e.ID] = tr.broken[*e.ID] || e.State() == v1alpha1.BakeFailed || e.LastRetryTimestamp != nil
		tr.entries[*e.ID] = e
	}
}

// forget loses what staging knew of the releases that it has left: only their bakes are in the
// history.
func (tr *truth) forget(history []v1alpha1.DeploymentHistoryEntry) {
	for i, e := range history {
		if i > 0 && e.State() == v1alpha1.BakeSucceeded && e.BakeStartTime != nil {
			tr.healthy[*e.ID] = max(tr.healthy[*e.ID], bakeOf(e))
			tr.broken[*e.ID] = e.LastRetryTimestamp != nil
		}
	}
}

func bakeOf(e v1alpha1.DeploymentHistoryEntry) time.Duration {
	return e.BakeEndTime.Sub(e.BakeStartTime.Time) - e.StoodStill(e.BakeEndTime.Time)
}

// wentBack returns what staging went back to from a release after a promotion of it; empty if
// it did not.
func (tr *truth) wentBack(p *pair, tag string, id int64) string {
	for other, e := range tr.entries {
		if newer, ok := p.staging.order.Compare(tag, e.Version.Tag); other > id && ok && newer > 0 && e.State() != v1alpha1.BakeCancelled {
			return e.Version.Tag
		}
	}
	return ""
}

// longest returns the longest time in which a release was healthy in one of its promotions up
// to one, and has not failed since.
func (tr *truth) longest(p *pair, tag string, last int64) time.Duration {
	longest := tr.healthy[last]
	if tr.isHealthy && last == tr.last {
		longest += min(p.now.Sub(tr.heard), granted(longest))
	}
	for id := last; id > 0; id-- {
		e := tr.entries[id]
		if e.Version.Tag != tag {
			continue
		}
		if id < last && e.State() == v1alpha1.BakeSucceeded && tr.wentBack(p, tag, id) == "" {
			longest = max(longest, tr.healthy[id])
		}
		if tr.broken[id] {
			break
		}
	}
	return longest
}

// keeps fails if the record of staging has forgotten a soak of a release that has not failed
// since, and that staging has not gone back from.
func (p *pair) keeps(before []environmentsv1.Release) {
	p.t.Helper()
	view := p.view()
	for _, was := range before {
		at := slices.IndexFunc(p.recorded, func(r environmentsv1.Release) bool { return r.Digest == was.Digest })
		interrupted := was.Current && (view.Unhealthy != "" || was.HealthySince == nil || view.LastError.After(was.HealthySince.Time))
		if at < 0 || was.State != v1alpha1.BakeSucceeded || was.Withdrawn != "" || interrupted || p.hasTurned(was) {
			continue
		}
		is, longest := p.recorded[at], was.Longest()
		if is.Current && is.ID == was.ID { // it may turn out that nobody looked for a while
			was.Soaked = nil
			longest = was.Longest()
		}
		if is.Longest() < longest {
			p.t.Fatalf("%s had soaked for %s, and the record says %s; staging: %s", is.Tag, longest, is.Longest(), p.staging.describeHistory())
		}
	}
}

// hasTurned reports whether a release has failed in staging, or staging went back from it,
// since that was recorded.
func (p *pair) hasTurned(was environmentsv1.Release) bool {
	return slices.ContainsFunc(p.staging.rollout.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool {
		failed := e.Version.Tag == was.Tag && (e.State() == v1alpha1.BakeFailed || e.LastRetryTimestamp != nil)
		newer, ok := p.staging.order.Compare(was.Tag, e.Version.Tag)
		return *e.ID >= was.ID && failed || *e.ID > was.ID && (!ok || newer > 0)
	})
}

// against returns what is to be said against a release that prod takes; empty if nothing.
func (tr *truth) against(p *pair, tag string) string {
	proof := int64(0)
	for id, e := range tr.entries {
		if e.Version.Tag == tag && e.State() != v1alpha1.BakeCancelled {
			proof = max(proof, id)
		}
	}
	if e := tr.entries[proof]; e.State() != v1alpha1.BakeSucceeded {
		return fmt.Sprintf("it is %q there", e.State())
	}
	if back := tr.wentBack(p, tag, proof); back != "" {
		return "staging went back from it to " + back
	}
	if healthy := tr.longest(p, tag, proof); healthy < p.rule.soak {
		return fmt.Sprintf("it was healthy there for %s of %s", healthy, p.rule.soak)
	}
	return ""
}

// compare fails if prod has just taken what it must not.
func (p *pair) compare(w *world) {
	p.t.Helper()
	current := w.current()
	switch {
	case w == p.staging:
		p.truth.follow(p)
	case current.ID != nil && *current.ID > p.truth.taken:
		p.truth.taken = *current.ID
		if against := p.truth.against(p, current.Version.Tag); against != "" {
			p.t.Fatalf("prod takes %s, but %s; staging: %s\n%s", current.Version.Tag, against, p.staging.describeHistory(), strings.Join(p.lines, "\n"))
		}
	}
}

// anything does at most one of the things that users or bad luck can cause in staging, or
// in what each knows of the other.
func (p *pair) anything() {
	w, tag := p.staging, fmt.Sprintf("1.%d.0", len(p.staging.registry))
	push := func() { w.push(tag); p.prod.push(tag) }
	if w.sick && w.chance(2) {
		w.sick = false // most interruptions are short
	}
	does := []func(){
		push, push, push,
		func() { push(); w.unhealthy[tag] = time.Duration(w.rng.IntN(60)) * time.Minute },
		w.pinAny, w.unpin, w.unpin,
		func() { w.pinAny(); w.reconcile(); w.pinAny(); w.reconcile() },
		func() { w.rollout.Spec.WantedVersion = to("hotfix-bob"); w.manually() },
		func() { w.sick = true }, func() { w.sick = true }, func() { w.sick = true }, w.goOn, w.goOn, w.goOn,
		func() { w.awayUntil = w.iteration + 1 + w.rng.IntN(20) },
		func() { p.recorded = nil; p.truth.forget(p.staging.rollout.Status.History) },
		func() { p.known = nil },
		func() { p.prod.awayUntil = p.prod.iteration + 1 + w.rng.IntN(12) },
		func() { p.prod.awayUntil = p.prod.iteration + 1 + w.rng.IntN(12) },
	}
	if w.rng.IntN(4) == 0 {
		does[w.rng.IntN(len(does))]()
	}
}

// Prod takes only what staging has proven, whatever happens there, and whether what staging
// says comes by a report or not. When staging is calm again, prod takes what runs there.
func TestProdTakesOnlyWhatStagingHasProven(t *testing.T) {
	for _, seed := range seeds(freshSeedsOfAScenario) {
		for _, byReport := range []bool{false, true} {
			t.Run(fmt.Sprintf("by report %t with seed %d", byReport, seed), func(t *testing.T) {
				rng := random(seed)
				staging := rollout().SelectAllChecks().HistoryLimit(anyOf(rng, int32(1), 2, 10))
				if rng.IntN(2) == 0 {
					staging.BakeTime(time.Duration(1+rng.IntN(40)) * time.Minute)
				}
				if rng.IntN(3) == 0 {
					staging.RollsBack(anyRollback(rng))
				}
				s := story{staging: staging, prod: guarded(), offset: time.Hour, rule: demand{soak: time.Duration(rng.IntN(4)) * 20 * time.Minute}}
				p := s.begin(t, rng)
				if byReport {
					p.reports = newMail(t)
				}
				p.truth = newTruth()
				for range 250 {
					p.anything()
					p.step()
				}
				p.comesToRest()
			})
		}
	}
}

// Nobody looks while staging is unhealthy, and both recoveries say the same.
func TestInterruptionThatNobodySawStartsTheSoakAnew(t *testing.T) {
	s := story{staging: rollout().SelectAllChecks(), prod: guarded(), rule: demand{soak: 2 * time.Hour}}
	p := s.begin(t, nil)
	p.reports = newMail(t)
	p.truth = newTruth()
	p.staging.push("1.0.0")
	p.prod.push("1.0.0")
	until := func(is func() bool) {
		t.Helper()
		for i := 0; !is(); i++ {
			if p.step(); i > 100 {
				t.Fatalf("it did not come; staging: %s; prod: %s", p.staging.describeHistory(), p.prod.describeHistory())
			}
		}
	}
	until(func() bool { return held("1.0.0", environmentsv1.UpstreamSoakingReason)(p.prod) })
	p.prod.awayUntil = p.prod.iteration + 8
	p.staging.sick = true
	until(func() bool { return p.view().Unhealthy != "" })
	p.staging.sick = false
	until(func() bool { return once("1.0.0", v1alpha1.BakeSucceeded)(p.prod) })
}

// comesToRest publishes a good release, and fails if prod does not take it.
func (p *pair) comesToRest() {
	p.t.Helper()
	p.staging.sick, p.prod.awayUntil, p.staging.awayUntil = false, 0, 0
	for _, w := range []*world{p.staging, p.prod} {
		w.rng = nil
		w.push(final)
	}
	for range 200 {
		if p.staging.current().Version.Tag != final {
			p.staging.rollout.Spec.WantedVersion = to(final)
			p.staging.manually()
		}
		p.step()
		if p.prod.current().Version.Tag == final && p.prod.current().State() == v1alpha1.BakeSucceeded {
			return
		}
	}
	p.t.Fatalf("prod does not take what runs in staging; staging: %s; prod: %s", p.staging.describeHistory(), p.prod.describeHistory())
}

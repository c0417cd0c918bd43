// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// requests are the annotations by which users request something.
var requests = []string{force, bypass, unblock, retry, message, user}

// FuzzRequests writes any values into annotations, in any state. Only annotations that
// exist may be used up, a release is promoted only if it is offered or requested, each
// request is fulfilled or answered, and in the end everything comes to rest.
func FuzzRequests(f *testing.F) {
	for seed := range byte(24) {
		some := make([]byte, 120)
		for i := range some {
			some[i] = byte(i*i)*seed + byte(i)*11 + seed
		}
		for _, asked := range [][6]string{
			{"1.1.0", "1.2.0", "true", "", "it is down", "ann"},
			{"2.0.0", "2.0.0", "yes", "now", "", ""},
			{"no tag", "\x00", " true", "\xff", strings.Repeat("ü", 2000), "system:serviceaccount:x"},
			{"hotfix", "hotfix", "TRUE", "true", " \n", strings.Repeat("a", 300)},
		} {
			f.Add(some, seed*11, asked[0], asked[1], asked[2], asked[3], asked[4], asked[5])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte, forced, bypassed, unblocked, retried, said, by string) {
		in := (&dice{data}).input()
		for i, value := range []string{forced, bypassed, unblocked, retried, said, by} {
			if which>>i&1 == 1 {
				in.Rollout.Annotations = with(in.Rollout.Annotations, requests[i], value)
			}
		}
		before := copyInput(in)
		d := promotion.Decide(in)
		if !reflect.DeepEqual(d, promotion.Decide(in)) {
			t.Error("Decide is not deterministic")
		}
		if !reflect.DeepEqual(before, in) {
			t.Error("Decide modified its input")
		}
		checkSpent(t, in, d)
		checkAnswered(t, in, d)
		checkReleaseIsWanted(t, in, d)
		comesToRest(t, in)
	})
}

func with(annotations map[string]string, key, value string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	return annotations
}

// checkSpent checks that only annotations that exist are used up, and only once. A
// message and a user name end with a promotion, or with a force that is not needed.
func checkSpent(t *testing.T, in promotion.Input, d promotion.Decision) {
	t.Helper()
	seen := map[string]bool{}
	for _, key := range d.Consumed {
		if _, there := in.Rollout.Annotations[key]; !there || seen[key] {
			t.Errorf("%s is used up, but is not there or was already: %v", key, d.Consumed)
		}
		seen[key] = true
	}
	promotes := d.Action == promotion.Promote || d.Action == promotion.Supersede
	for _, key := range []string{message, user} {
		text, there := in.Rollout.Annotations[key]
		blank := strings.TrimSpace(text) == "" // says nothing, whatever the current entry is
		if !blank && seen[key] != (there && (promotes || seen[force])) {
			t.Errorf("%s is used up: %t, by %s", key, seen[key], d.Action)
		}
	}
	if _, there := in.Rollout.Annotations[retry]; there && !seen[retry] {
		t.Errorf("a retry is left over after %s", d.Action)
	}
}

// checkAnswered checks that a request is used up by its own effect, or answered. A
// request that stays and cannot be fulfilled must be reported.
func checkAnswered(t *testing.T, in promotion.Input, d promotion.Decision) {
	t.Helper()
	current := in.Rollout.Current()
	promotes := d.Action == promotion.Promote || d.Action == promotion.Supersede
	done := map[string]bool{
		force:   promotes && d.Release.Tag == in.Rollout.Annotations[force],
		bypass:  promotes && d.Release.Tag == in.Rollout.Annotations[bypass],
		unblock: promotes && !d.Manual || current.State().Running(),
		retry:   promotes || d.Action == promotion.Retry || current.State().Running() && current.LastRetryTimestamp != nil,
	}
	answers := map[string][]string{
		force:   {v1alpha1.ForceDeployNotNeededReason, v1alpha1.QuarantinedReason},
		bypass:  {v1alpha1.BypassNotNeededReason, environmentsv1.BypassEndedReason, environmentsv1.BypassNeedsReasonReason, environmentsv1.BypassDeniedReason},
		unblock: {v1alpha1.UnblockNotNeededReason}, retry: {v1alpha1.RetryNotNeededReason},
	}
	for key, reasons := range answers {
		answered := slices.ContainsFunc(d.Answers, func(n verdict.Note) bool { return slices.Contains(reasons, n.Reason) && n.Message != "" })
		if slices.Contains(d.Consumed, key) && !done[key] && !answered {
			t.Errorf("%s=%q is removed without effect or answer by %s %s", key, in.Rollout.Annotations[key], d.Action, d.Release.Tag)
		}
		if answered && !slices.Contains(d.Consumed, key) {
			t.Errorf("%s is answered, but stays", key)
		}
	}
	checkRefused(t, in, d)
}

func checkRefused(t *testing.T, in promotion.Input, d promotion.Decision) {
	t.Helper()
	asked := in.Rollout.Annotations
	forced := in.Policy.Forced(in.Rollout)
	if forced != "" && in.Rollout.Pinned() == "" && d.Release.Tag != forced && d.Action != promotion.Adopt && d.Problem == nil {
		t.Errorf("force-deploy=%q has neither an effect nor a problem: %s", forced, d.Action)
	}
	value, there := asked[unblock]
	if there && value != "true" && !d.Action.Promotes() && d.Action != promotion.Retry && d.Declined == nil {
		t.Errorf("unblock-failed=%q is not refused", value)
	}
	tag := asked[bypass]
	candidate := slices.ContainsFunc(d.Candidates, func(v promotion.Verdict) bool { return v.Release.Tag == tag })
	adopted := d.Action == promotion.Adopt && d.Release.Tag == tag // it is answered once the release is current
	if tag != "" && !candidate && !adopted && !slices.Contains(d.Consumed, bypass) && d.Declined == nil {
		t.Errorf("bypass-gates=%q names no candidate, and nothing says so", tag)
	}
	if d.Declined != nil && (d.Declined.Reason == "" || d.Declined.Message == "") {
		t.Errorf("a refusal without reason or message: %+v", d.Declined)
	}
}

// checkReleaseIsWanted checks that a promoted release is a candidate or was requested by
// a user, and that an adopted release already runs.
func checkReleaseIsWanted(t *testing.T, in promotion.Input, d promotion.Decision) {
	t.Helper()
	tag := d.Release.Tag
	candidate := slices.ContainsFunc(d.Candidates, func(v promotion.Verdict) bool { return v.Release.Tag == tag })
	known := slices.ContainsFunc(d.Ledger, func(v v1alpha1.VersionInfo) bool { return v.Tag == tag })
	switch {
	case d.Action == promotion.Adopt:
		if !slices.Contains(in.Targets.Owned, tag) {
			t.Errorf("%q is adopted, but no target carries it", tag)
		}
	case !d.Action.Promotes():
	case !releases.IsTag(tag):
		t.Errorf("%q is promoted, but can be no tag", tag)
	case d.Manual && tag != in.Rollout.Pinned() && !(known && tag == in.Rollout.Annotations[force]):
		t.Errorf("%q is promoted by hand, but nobody asks for it or it is not known", tag)
	case d.Back != nil: // checkFuzzedRollback
	case !d.Manual && !candidate:
		t.Errorf("%q is promoted, but is no candidate", tag)
	}
}

// comesToRest carries out the decisions until there is nothing to do.
func comesToRest(t *testing.T, in promotion.Input) {
	t.Helper()
	var done []promotion.Action
	for range 100 {
		d := promotion.Decide(in)
		if calm := d.Action == promotion.Nothing || d.Action == promotion.Wait; calm && len(d.Consumed)+len(d.Resets) == 0 {
			if _, there := in.Rollout.Annotations[retry]; there {
				t.Error("a retry is left over at rest")
			}
			return
		}
		done = append(done, d.Action)
		in = carriedOut(t, in, d)
	}
	t.Errorf("there is no rest after %v", done[len(done)-10:])
}

// carriedOut returns the input of the next pass, as if everything took no time.
func carriedOut(t *testing.T, in promotion.Input, d promotion.Decision) promotion.Input {
	t.Helper()
	history, err := promotion.Record(in, d)
	if err != nil {
		t.Fatalf("%s cannot be recorded: %v", d.Action, err)
	}
	next := copyInput(in)
	status := &next.Rollout.Status
	status.AvailableReleases = d.Ledger
	if len(history) > 0 {
		status.History, next.Targets.Owned = history, nil
	}
	for _, key := range d.Consumed {
		delete(next.Rollout.Annotations, key)
	}
	for _, i := range d.Resets {
		for _, write := range fixture.ResetWrites(&next.Health.Checks[i], next.Rollout, next.Rollout.Current(), next.Now.Truncate(time.Second)) {
			write()
		}
	}
	return next
}

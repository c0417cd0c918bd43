// SPDX-License-Identifier: Apache-2.0

package statefulsets_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
)

func TestOneSetAfterTheOther(t *testing.T) {
	check(t, map[string]line{
		"nothing is outdated": {
			sets{zone("a", "new,new", current("new")), zone("b", "new,new", current("new"))}, "Done",
		},
		"the first by name begins": {
			sets{zone("b", "old,old"), zone("a", "old,old")}, "Rolling -a-0",
		},
		"a set that has begun goes on first": {
			sets{zone("a", "old,old"), zone("b", "new,old")}, "Rolling -b-1",
		},
		"a complete set is promoted, and the next begins": {
			sets{zone("a", "new,new"), zone("b", "old,old")}, "Rolling -b-0 ^a",
		},
		"the next waits while the last new pod is not ready": {
			sets{zone("a", "new,new~"), zone("b", "old,old")}, "Rolling",
		},
		"the next waits while the status shows a pod that is not ready": {
			sets{zone("a", "new,new", status(1)), zone("b", "old,old")}, "Rolling",
		},
		"the next waits while a pod is missing": {
			sets{zone("a", "new,-"), zone("b", "old,old")}, "Rolling",
		},
		"the next waits while a pod goes": {
			sets{zone("a", "new,old/"), zone("b", "old,old")}, "Rolling",
		},
		"the next waits while new pods are not ready for long enough": {
			sets{zone("a", "new,new:40", minReady(time.Minute)), zone("b", "old,old")}, "Rolling",
		},
		"going back replaces the pods of the abandoned revision": {
			sets{zone("a", "old,bad,bad", func(s *statefulsets.Set) { s.UpdateRevision = "old" })}, "Rolling -a-1",
		},
		"a change half-way goes on where it was": {
			sets{zone("a", "old,old"), zone("b", "mid,old", current("old"))}, "Rolling -b-0",
		},
		"a set without replicas is complete": {
			sets{zone("a", ""), zone("b", "old,old")}, "Rolling -b-0 ^a",
		},
		"no pod label and no other name is needed": {
			sets{zone("ingester-zone-a", "old")}, "Rolling -ingester-zone-a-0",
		},
	})
}

func TestSetWaitsUntilAllOthersAreReady(t *testing.T) {
	check(t, map[string]line{
		"two are not, by their status": {
			sets{zone("a", "old,old", status(1)), zone("b", "old,old", status(1))},
			"Blocked SetNotReady: a waits until all other sets are ready: b has 1 of 2 pods ready by its status (not reported)",
		},
		"two are not, by their pods": {
			sets{zone("a", "old,old~"), zone("b", "-,old")},
			"Blocked SetNotReady: a waits until all other sets are ready: b has 1 of 2 pods available: 1 do not exist",
		},
		"two are not, one by its status and one by its pods": {
			sets{zone("a", "old,old", status(1)), zone("b", "old/,old")},
			"Blocked SetNotReady: a waits until all other sets are ready: b has 1 of 2 pods available: b-0 is terminating",
		},
		"two others are not": {
			sets{zone("a", "old,old"), zone("b", "new~,new~,new~,new!,new", current("new")), zone("c", "new:5,new", current("new"), minReady(time.Hour))},
			"Blocked SetsNotReady: a waits until all other sets are ready: " +
				"b has 1 of 5 pods available: b-0 is not ready, b-1 is not ready, b-2 is not ready, and 1 more; " +
				"c has 1 of 2 pods available: c-0 is ready, though not for long enough",
		},
		"the one that is not ready goes first": {
			sets{zone("a", "old,old,old"), zone("b", "old,old~,old", allows("2"))}, "Rolling -b-0",
		},
		"its unready pods use up its budget": {
			sets{zone("a", "old,old,old"), zone("b", "old,old~,old")},
			"Blocked PodsNotReady: outdated pods are not ready, and use up what may be unavailable: b-1 is not ready",
		},
		"it does not go first if another has begun": {
			sets{zone("a", "new,old,old"), zone("b", "old,old~,old", allows("2"))},
			"Blocked SetNotReady: a waits until all other sets are ready: b has 2 of 3 pods available: b-1 is not ready",
		},
		"a set that is paused still counts": {
			sets{zone("a", "old,old~", paused), zone("b", "old,old")},
			"Blocked SetNotReady: b waits until all other sets are ready: a has 1 of 2 pods available: a-1 is not ready (paused)",
		},
		"a set that is being deleted counts until it is gone": {
			sets{zone("a", "old,old", deleting), zone("b", "old,old")},
			"Blocked SetNotReady: b waits until all other sets are ready: a is being deleted",
		},
		"a set that grows is not ready": {
			sets{zone("a", "new", current("new"), replicas(3)), zone("b", "old,old")},
			"Blocked SetNotReady: b waits until all other sets are ready: a has 1 of 3 pods available: 2 do not exist",
		},
		"a set that shrinks is not ready": {
			sets{zone("a", "new,new,new", current("new"), replicas(2)), zone("b", "old,old")},
			"Blocked SetNotReady: b waits until all other sets are ready: a has pods beyond its replicas: a-2",
		},
		"a set whose status is old is not ready": {
			sets{zone("a", "old,old", unseen), zone("b", "old,old")},
			"Blocked SetNotReady: b waits until all other sets are ready: a has changed, and its status does not say how yet (not reported)",
		},
		"a set without an update revision is not ready": {
			sets{zone("a", "old,old", unknown), zone("b", "old,old")},
			"Blocked SetNotReady: b waits until all other sets are ready: a has changed, and its status does not say how yet (not reported)",
		},
		"nothing is outdated, and pods are not ready": {
			sets{zone("a", "new,new~", current("new")), zone("b", "new")}, "Waiting ^b",
		},
	})
}

func TestReportedSets(t *testing.T) {
	for name, tt := range map[string]struct {
		sets sets
		want []string
	}{
		"the set that waits":             {sets{zone("a", "new~", current("new")), zone("b", "old"), zone("c", "old")}, []string{"b"}},
		"the sets that are wrong":        {sets{zone("a", "old"), zone("b", "old", strategy("RollingUpdate")), zone("c", "old", strategy("RollingUpdate"))}, []string{"b", "c"}},
		"the sets that are paused":       {sets{zone("a", "old", paused), zone("b", "new", current("new")), zone("c", "old", paused)}, []string{"a", "c"}},
		"the set whose pods are stuck":   {sets{zone("a", "new!,old"), zone("b", "old")}, []string{"a"}},
		"nobody of what takes a moment":  {sets{zone("a", "new:5", current("new"), minReady(time.Minute)), zone("b", "old")}, nil},
		"nobody of what is being rolled": {sets{zone("a", "new~,old"), zone("b", "old")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, decide(tt.sets...).About); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEverySetMustHaveOnDelete(t *testing.T) {
	check(t, map[string]line{
		"or nothing is replaced": {
			sets{zone("a", "old,old"), zone("b", "old,old", strategy("RollingUpdate")), zone("c", "new")},
			"Invalid NotOnDelete: every set of a rollout group must have the update strategy OnDelete, " +
				"and no pod is replaced until then: b has RollingUpdate",
		},
		"nor what has begun": {
			sets{zone("a", "new,old!"), zone("b", "old,old", strategy("RollingUpdate"), paused)},
			"Invalid NotOnDelete: every set of a rollout group must have the update strategy OnDelete, " +
				"and no pod is replaced until then: b has RollingUpdate",
		},
	})
}

func TestBudgetIsCountedFromPods(t *testing.T) {
	check(t, map[string]line{
		"as many as are allowed, in natural order": {
			sets{zone("a", "new,new,old,old,old,old,old,old,old,old,old,old", allows("9"))},
			"Rolling -a-2 -a-3 -a-4 -a-5 -a-6 -a-7 -a-8 -a-9 -a-10",
		},
		"spent by a new pod":               {sets{zone("a", "new~,old,old")}, "Rolling"},
		"spent by one that goes":           {sets{zone("a", "old,old,old/")}, "Rolling"},
		"spent by one that is missing":     {sets{zone("a", "-,old,old")}, "Rolling"},
		"spent by one the status knows of": {sets{zone("a", "old,old,old", status(2))}, "Rolling"},
		"spent in part": {
			sets{zone("a", "old,old/,old~,old,old", allows("3"))}, "Rolling -a-0",
		},
		"a set that grows": {
			sets{zone("a", "old,old", replicas(3), allows("2"))}, "Rolling -a-0",
		},
		"pods beyond the replicas give none": {
			sets{zone("a", "old~,old,old,old", replicas(3))},
			"Blocked PodsNotReady: outdated pods are not ready, and use up what may be unavailable: a-0 is not ready",
		},
		"pods beyond the replicas are not replaced": {
			sets{zone("a", "new,new,old", replicas(2))}, "Rolling",
		},
		"pods that are numbered from elsewhere": {
			sets{zone("a", "", replicas(2), also("a-7", "old"), also("a-8", "old"), func(s *statefulsets.Set) { s.FirstOrdinal = 7 })},
			"Rolling -a-7",
		},
		"a status that is old decides nothing": {sets{zone("a", "old,old", unseen)}, "Waiting"},
		"no update revision decides nothing":   {sets{zone("a", "old,old", unknown)}, "Waiting"},
		"a pod that is not ready for long enough is replaced for nothing": {
			sets{zone("a", "mid:5,old,old", minReady(time.Hour))}, "Rolling -a-0",
		},
		"but not more of them than the budget has": {
			sets{zone("a", "mid:5,mid:5,old", minReady(time.Hour))}, "Rolling -a-0",
		},
		"nor if a new one is not either": {
			sets{zone("a", "new:5,mid:5,old", minReady(time.Hour))}, "Rolling",
		},
		"nor if another one is not ready": {
			sets{zone("a", "new~,mid:5,old", minReady(time.Hour))}, "Rolling",
		},
	})
}

func TestMaxUnavailable(t *testing.T) {
	for value, want := range map[string]struct {
		pods int
		ok   bool
	}{
		"":            {1, true},
		"1":           {1, true},
		"3":           {3, true},
		"999":         {10, true},
		"25%":         {2, true}, // of 10, rounded down
		"1%":          {1, true}, // at least one
		"100%":        {10, true},
		"0":           {1, false},
		"-1":          {1, false},
		"0%":          {1, false},
		"101%":        {1, false},
		"-5%":         {1, false},
		"many":        {1, false},
		"1.5":         {1, false},
		"2 %":         {1, false},
		"%":           {1, false},
		"99999999999": {1, false},
	} {
		t.Run("of "+value, func(t *testing.T) {
			plan := decide(zone("a", "old,old,old,old,old,old,old,old,old,old", allows(value)))
			if len(plan.Delete) != want.pods {
				t.Errorf("%d pods are replaced, want %d", len(plan.Delete), want.pods)
			}
			var warnings []statefulsets.Note
			if !want.ok {
				warnings = []statefulsets.Note{{
					Set: "a", Reason: rolloutgroup.InvalidMaxUnavailableEvent,
					Message: `rollout-max-unavailable is "` + value + `", which is neither a positive number nor a percentage from 1% to 100%; 1 is used`,
				}}
			}
			if diff := cmp.Diff(warnings, plan.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStuckPodsThatAreOutdatedAreReplaced(t *testing.T) {
	check(t, map[string]line{
		"though the budget is used up": {
			sets{zone("a", "bad!,old,old")}, "Rolling -a-0",
		},
		"all at once, since nothing gets worse": {
			sets{zone("a", "bad!,bad!,old")}, "Rolling -a-0 -a-1",
		},
		"and healthy ones with what is left of the budget": {
			sets{zone("a", "old,bad!,old,old", allows("2"))}, "Rolling -a-0 -a-1",
		},
		"though two sets are not ready, one set after the other": {
			sets{zone("a", "bad!,old"), zone("b", "bad!,old")}, "Rolling -a-0",
		},
		"not in the second while pods of the first go": {
			sets{zone("a", "bad/,old"), zone("b", "bad!,old")},
			"Blocked SetNotReady: a waits until all other sets are ready: b has 1 of 2 pods available: b-0 is stuck in CrashLoopBackOff",
		},
		"not in the second while pods of the first come": {
			sets{zone("a", "new~,old"), zone("b", "bad!,old")},
			"Blocked SetNotReady: a waits until all other sets are ready: b has 1 of 2 pods available: b-0 is stuck in CrashLoopBackOff",
		},
		"in the second if the first is stuck again": {
			sets{zone("a", "new!,old"), zone("b", "bad!,old")}, "Rolling -b-0",
		},
		"where those behind them were never created": {
			sets{zone("a", "bad!,-,-"), zone("b", "bad!,-,-"), zone("c", "bad!,-,-")}, "Rolling -a-0",
		},
		"if another set is not ready they wait": {
			sets{zone("a", "bad!,old"), zone("b", "old~,old")},
			"Blocked SetNotReady: a waits until all other sets are ready: b has 1 of 2 pods available: b-0 is not ready",
		},
		"if another set lacks a pod they wait": {
			sets{zone("a", "bad!,old"), zone("b", "-,old")},
			"Blocked SetNotReady: a waits until all other sets are ready: b has 1 of 2 pods available: 1 do not exist",
		},
		"alone, while other sets are not ready": {
			sets{zone("a", "bad!,old,old", allows("3")), zone("b", "new!,new", current("new"))}, "Rolling -a-0",
		},
		"not those of a set that is paused": {
			sets{zone("a", "bad!,old", paused)},
			"Blocked RolloutPaused: what is outdated is paused by annotation: a",
		},
		"not those of the wanted revision, which would come back": {
			sets{zone("a", "new!,old")},
			"Blocked PodsStuck: pods of the wanted revision new do not start: a-0 is stuck in CrashLoopBackOff",
		},
		"not those that are not ready and may recover": {
			sets{zone("a", "bad~,old")},
			"Blocked PodsNotReady: outdated pods are not ready, and use up what may be unavailable: a-0 is not ready",
		},
		"not those that go already": {
			sets{zone("a", "bad/,old")}, "Rolling",
		},
	})
}

func TestSetThatIsPausedIsLeftAsItIs(t *testing.T) {
	check(t, map[string]line{
		"the next goes if all pods are ready": {
			sets{zone("a", "new,old", paused), zone("b", "old,old")}, "Rolling -b-0",
		},
		"nothing but it is outdated": {
			sets{zone("a", "new,old", paused), zone("b", "new,new")},
			"Blocked RolloutPaused: what is outdated is paused by annotation: a ^b",
		},
		"it is not promoted": {
			sets{zone("a", "new,new", paused)}, "Done",
		},
	})
}

func TestRevisionIsPromotedWhenAllPodsHaveIt(t *testing.T) {
	check(t, map[string]line{
		"and are ready":              {sets{zone("a", "new,new")}, "Done ^a"},
		"not while one is not":       {sets{zone("a", "new,new~")}, "Rolling"},
		"not while one is missing":   {sets{zone("a", "new,-")}, "Rolling"},
		"not when it is done":        {sets{zone("a", "new,new", current("new"))}, "Done"},
		"not before it is reported":  {sets{zone("a", "new,new", reported(1)), zone("b", "old")}, "Rolling -b-0"},
		"nor while its old pods are": {sets{zone("a", "new,new", updated(1)), zone("b", "old")}, "Rolling -b-0"},
		"while others are not done":  {sets{zone("a", "new,new"), zone("b", "new,new~"), zone("c", "old")}, "Rolling ^a"},
	})
}

func TestSetIsFinishedOnceThoughItsStatusIsLate(t *testing.T) {
	late := statefulsets.Group{Now: noon, Last: "a", Sets: sets{zone("a", "new,new", reported(1))}}
	if plan := statefulsets.Decide(late); plan.Finished != "" || plan.Acts() {
		t.Errorf("before its status counts all pods: %+v", plan)
	}
	late.Sets[0] = zone("a", "new,new")
	if got := described(statefulsets.Decide(late)); got != "Done ^a" {
		t.Errorf("after it: %s", got)
	}
}

func TestDeletedPodCountsUntilItsSuccessorIsSeen(t *testing.T) {
	old := statefulsets.Group{Now: noon, Sets: sets{zone("a", "old,old")}, Deleted: map[types.UID]bool{"a-0": true}}
	if got := described(statefulsets.Decide(old)); got != "Rolling" {
		t.Errorf("from old pods: %s", got)
	}
	successor := pod("a-0", "new")
	successor.UID = "another"
	old.Sets[0].Pods[0] = successor
	if got := described(statefulsets.Decide(old)); got != "Rolling -a-1" {
		t.Errorf("with its successor: %s", got)
	}
}

func TestPlanSaysWhenTimeAloneChangesIt(t *testing.T) {
	a := zone("a", "new:40,new:20,old", minReady(time.Minute), allows("2"))
	plan := decide(a, zone("b", "old"))
	if want := noon.Add(21 * time.Second); described(plan) != "Rolling" || !plan.RecheckAt.Equal(want) {
		t.Fatalf("%s, again at %s, want %s", described(plan), plan.RecheckAt, want)
	}
	for at, want := range map[int]string{20: "Rolling", 21: "Rolling -a-2"} {
		plan := statefulsets.Decide(statefulsets.Group{Now: noon.Add(time.Duration(at) * time.Second), Sets: sets{a}})
		if described(plan) != want {
			t.Errorf("%d s later: %s, want %s", at, described(plan), want)
		}
	}
	if at := decide(zone("a", "old,old")).RecheckAt; !at.IsZero() {
		t.Errorf("without minReadySeconds time changes nothing, and yet: %s", at)
	}
}

func TestStatusThatStaysOldIsReported(t *testing.T) {
	since := func(d time.Duration) func(*statefulsets.Set) {
		return func(s *statefulsets.Set) { s.UnobservedSince = noon.Add(-d) }
	}
	old := []statefulsets.Note{{
		Set: "a", Reason: rolloutgroup.NotObservedEvent,
		Message: "for more than 5 minutes, the status has not shown generation 4: it is of generation 3, and the rollout group waits for it; " +
			"check that kube-controller-manager runs, and its log for this StatefulSet",
	}}
	for name, tt := range map[string]struct {
		sets  sets
		again time.Time
		want  []statefulsets.Note
	}{
		"not for a moment":               {sets{zone("a", "old", unseen, since(time.Minute)), zone("b", "old")}, noon.Add(4 * time.Minute), nil},
		"after five minutes":             {sets{zone("a", "old", unseen, since(5*time.Minute)), zone("b", "old")}, time.Time{}, old},
		"also of a group of one":         {sets{zone("a", "old", unseen, since(time.Hour))}, time.Time{}, old},
		"not while the set is deleted":   {sets{zone("a", "old", unseen, since(time.Hour), deleting)}, time.Time{}, nil},
		"not if nobody knows since when": {sets{zone("a", "old", unseen)}, time.Time{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(tt.sets...)
			if diff := cmp.Diff(tt.want, plan.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if !plan.RecheckAt.Equal(tt.again) {
				t.Errorf("again at %s, want %s", plan.RecheckAt, tt.again)
			}
		})
	}
}

func TestTurnLastsUntilTheSetIsComplete(t *testing.T) {
	for name, tt := range map[string]struct {
		sets sets
		last types.UID
		want string
		next types.UID
	}{
		"it begins with the first pods":        {sets{zone("a", "old,old")}, "", "Rolling -a-0", "a"},
		"while the first pods go":              {sets{zone("a", "old,old"), zone("b", "old/,old")}, "b", "Rolling", "b"},
		"though others are half-way":           {sets{zone("a", "new,old"), zone("b", "new,old")}, "b", "Rolling -b-1", "b"},
		"a new template does not pass it on":   {sets{zone("a", "old,old"), zone("b", "old,old")}, "b", "Rolling -b-0", "b"},
		"it is over when the set is complete":  {sets{zone("a", "new,new", current("new"))}, "a", "Done", ""},
		"then the next has it":                 {sets{zone("a", "new,new"), zone("b", "old,old")}, "a", "Rolling -b-0 ^a", "b"},
		"it is over when the set is paused":    {sets{zone("a", "new,old", paused)}, "a", "Blocked RolloutPaused: what is outdated is paused by annotation: a", ""},
		"not before the pods are ready":        {sets{zone("a", "new~,old", paused)}, "a", "Blocked RolloutPaused: what is outdated is paused by annotation: a", "a"},
		"the set is gone":                      {sets{zone("b", "new", current("new"))}, "a", "Done", ""},
		"stuck pods of others do not end it":   {sets{zone("a", "new!,old"), zone("b", "bad!")}, "a", "Rolling -b-0", "a"},
		"nor does a set with another strategy": {sets{zone("a", "new,old"), zone("b", "old", strategy("RollingUpdate"))}, "a", "Invalid NotOnDelete: every set of a rollout group must have the update strategy OnDelete, and no pod is replaced until then: b has RollingUpdate", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := statefulsets.Decide(statefulsets.Group{Now: noon, Sets: tt.sets, Last: tt.last})
			if got := described(plan); got != tt.want || plan.Last != tt.next {
				t.Errorf("decided\n\t%s\nand then it is the turn of %q, want\n\t%s\nand %q", got, plan.Last, tt.want, tt.next)
			}
			if tt.last != "" && plan.Last != tt.last && !plan.Acts() {
				t.Error("a turn ends by what a cache shows")
			}
		})
	}
}

func TestBeginningAndEndOfATurnAreReported(t *testing.T) {
	for name, tt := range map[string]struct {
		sets     sets
		last     types.UID
		starts   bool
		finished string
	}{
		"the first pods":                          {sets{zone("a", "old,old")}, "", true, ""},
		"the first pods of the next":              {sets{zone("a", "new,new", current("new")), zone("b", "old")}, "a", true, "a"},
		"more pods while the first go":            {sets{zone("a", "old,old/", allows("2"))}, "a", false, ""},
		"more pods, after a restart":              {sets{zone("a", "new,old")}, "", false, ""},
		"the end, if there is nothing to promote": {sets{zone("a", "new", current("new"))}, "a", false, "a"},
		"a promotion overrides it":                {sets{zone("a", "new")}, "a", false, ""},
		"nothing, at rest":                        {sets{zone("a", "new", current("new"))}, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := statefulsets.Decide(statefulsets.Group{Now: noon, Sets: tt.sets, Last: tt.last})
			if plan.Starts != tt.starts || plan.Finished != tt.finished {
				t.Errorf("starts %v, finished %q, want %v and %q", plan.Starts, plan.Finished, tt.starts, tt.finished)
			}
		})
	}
}

func TestDeletionNamesThePodThatIsMeant(t *testing.T) {
	want := []statefulsets.Deletion{{Set: "a", Pod: "a-0", UID: "a-0", From: "old", To: "new"}}
	if diff := cmp.Diff(want, decide(zone("a", "old")).Delete); diff != "" {
		t.Errorf("deletions (-want +got):\n%s", diff)
	}
}

func TestOrderOfSetsAndPodsDecidesNothing(t *testing.T) {
	all := sets{zone("a", "old,old,old", allows("2")), zone("b", "old,old"), zone("c", "new,old")}
	want := decide(all...)
	for range 2 {
		slices.Reverse(all)
		for i := range all {
			slices.Reverse(all[i].Pods)
		}
		if diff := cmp.Diff(want, decide(all...)); diff != "" {
			t.Errorf("another order, another plan (-want +got):\n%s", diff)
		}
	}
}

func TestTurnNamesTheSetThatGoesNow(t *testing.T) {
	for name, tt := range map[string]struct {
		sets sets
		want string
	}{
		"nothing is outdated":                     {sets{zone("a", "new,new", current("new"))}, ""},
		"none has begun":                          {sets{zone("b", "old,old"), zone("a", "old,old")}, "a"},
		"one has begun":                           {sets{zone("a", "old,old"), zone("b", "new,old")}, "b"},
		"its last new pod is not ready":           {sets{zone("a", "new,new~"), zone("b", "old,old")}, "a"},
		"another one is in its way":               {sets{zone("a", "old,old"), zone("b", "new~", current("new"))}, "a"},
		"what is outdated is paused by its owner": {sets{zone("a", "old,old", paused)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := statefulsets.Turn(statefulsets.Group{Now: noon, Sets: tt.sets}); got != tt.want {
				t.Errorf("it is the turn of %q, want %q", got, tt.want)
			}
		})
	}
}

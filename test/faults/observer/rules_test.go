// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

func TestObserverFindsNothingWhereAllIsWell(t *testing.T) {
	for name, recording := range map[string]*recording{
		"one promotion":  firstPromotion(),
		"two promotions": firstPromotion().history(two().Deploying(), done(one())).written("1.1.0").deployed("1.1.0").proven().history(two().Baking(noon), done(one())),
		"a user goes back": firstPromotion().history(two().Deploying(), done(one())).written("1.1.0").
			chosen("1.0.0", two().Deploying(), done(one())).history(pinned(3).Deploying(), two().Cancelled(), done(one())).written("1.0.0"),
		"a rollback": failedSecond().history(back(), two().Failed(), done(one())).written("1.0.0"),
		"a retry": firstPromotion().history(two().Deploying(), done(one())).written("1.1.0").history(two().Failed(), done(one())).
			history(two().Deploying().Retried(noon), done(one())),
		"somebody changes a target and the controller takes it back": firstPromotion().tagged("kubectl", "6.6.6").tagged(manager, "1.0.0"),
		"what is too many is forgotten": func() *recording {
			t := newRecording()
			t.shop.HistoryLimit(1)
			return t.history(done(one())).history(two().Deploying())
		}(),
		"a HealthCheck that came later": newRecording().says(v1alpha1.HealthStatusHealthy).gone().history(one().Deploying()).
			written("1.0.0").says(v1alpha1.HealthStatusHealthy).deployed("1.0.0").history(one().Baking(noon)),
		"a target that is gone": newRecording().history(one().Deploying()).written("1.0.0").pulled("1.0.0").applied("0.9.0").gone().
			proven().history(one().Baking(noon)),
		"a tag that was pushed again": newRecording().history(done(content(one(), "a"))).history(
			content(one().ID(2), "b").By(v1alpha1.TriggeredBySystem, "rollout-controller").Deploying(), done(content(one(), "a"))),
		"a tag that was pushed again while the policy was away": newRecording().history(done(content(one(), "a"))).history(
			one().ID(2).By(v1alpha1.TriggeredBySystem, "rollout-controller").Message("tag 1.0.0 was pushed again, and so on").Deploying(), done(content(one(), "a"))),
		"states that nobody saw":     newRecording().history(done(one())).afterGap(),
		"a Rollout that begins anew": firstPromotion().history(done(one())).gone().state(anotherShop()),
	} {
		t.Run(name, func(t *testing.T) {
			if broken := Judge(recording.seen).Broken; len(broken) > 0 {
				t.Errorf("it complains:\n%s", strings.Join(broken, "\n"))
			}
		})
	}
}

func TestObserverSeesEachBrokenPromise(t *testing.T) {
	deploying := func() *recording { return newRecording().history(one().Deploying()) }
	for name, tt := range map[string]struct {
		recording *recording
		broken    string // part of the only complaint
	}{
		"a promotion vanishes":        {firstPromotion().history(), "promotion 1 has vanished"},
		"two at once":                 {newRecording().history(two().Deploying(), done(one())), "2 promotions were recorded at once"},
		"an id that was there before": {firstPromotion().history(done(one()), two().ID(0).Cancelled()), "promotion 0 was recorded after 1"},
		"out of order":                {newRecording().history(done(one())).history(done(one()), two().Cancelled()), "promotion 2 stands before 1"},
		"a tag that a user is said to have pushed again": {newRecording().history(done(content(one(), "a"))).history(
			content(one().ID(2), "b").By(v1alpha1.TriggeredByUser, "ann").Deploying(), done(content(one(), "a"))), "1.0.0 was promoted by itself after 1.0.0"},
		"a release twice":                    {firstPromotion().history(one().ID(2).Deploying(), done(one())), "1.0.0 was promoted"},
		"a user's choice twice":              {firstPromotion().chosen("1.0.0", done(one())).history(one().ID(2).Deploying(), done(one())), "1.0.0 was promoted twice in a row, as 1 and 2"},
		"back to an older one":               {newRecording().history(done(one())).history(two().Deploying(), done(one())).history(one().ID(3).Deploying(), two().Cancelled(), done(one())), "1.0.0 was promoted by itself after 1.1.0"},
		"an older one still runs":            {deploying().history(two().Deploying(), one().Deploying()), "promotion 1 is Deploying though it is not the newest"},
		"an entry becomes another":           {deploying().history(two().ID(1).Deploying()), "promotion 1 was rewritten"},
		"an entry has another author":        {deploying().history(one().By(v1alpha1.TriggeredByUser, "eve").Deploying()), "promotion 1 was rewritten"},
		"an entry has another time":          {deploying().history(one().At(noon).Deploying()), "promotion 1 was rewritten"},
		"what has succeeded fails":           {firstPromotion().history(one().Failed()), "promotion 1 went from Succeeded to Failed"},
		"what was cancelled runs again":      {newRecording().history(one().Cancelled()).history(one().Deploying()), "promotion 1 went from Cancelled to Deploying"},
		"an outcome is recorded again":       {firstPromotion().history(done(one()).BakeEnd(noon.Add(time.Hour))), "promotion 1 ended twice"},
		"a bake that is cut short":           {deploying().written("1.0.0").deployed("1.0.0").proven().history(one().Baking(noon)).history(done(one()).BakeEnd(noon)), "took less than 1m0s"},
		"a bake before anything was applied": {deploying().written("1.0.0").proven().history(one().Baking(noon)), "has never applied 1.0.0"},
		"a bake before all was applied":      {deploying().written("1.0.0").pulled("1.0.0").proven().history(one().Baking(noon)), "Kustomization shop-prod/shop has never applied 1.0.0"},
		"success without being applied":      {deploying().written("1.0.0").proven().history(one().Succeeded()), "has never applied 1.0.0"},
		"a bake on what was said before":     {deploying().written("1.0.0").deployed("1.0.0").history(one().Baking(noon)), "HealthCheck shop-prod/web was not Healthy since 1.0.0 was applied"},
		"a bake on what was asked before":    {deploying().written("1.0.0").proven().deployed("1.0.0").history(one().Baking(noon)), "HealthCheck shop-prod/web was not Healthy since 1.0.0 was applied"},
		"a bake before an answer":            {deploying().written("1.0.0").deployed("1.0.0").says(v1alpha1.HealthStatusPending).history(one().Baking(noon)), "HealthCheck shop-prod/web was not Healthy since 1.0.0 was applied"},
		"a target before the record":         {newRecording().tagged(manager, "1.0.0"), "spec.ref.tag became 1.0.0, which the history does not name"},
		"a variable before the record":       {newRecording().substituted(manager, "1.0.0"), "spec.postBuild.substitute.VERSION became 1.0.0, which the history does not name"},
		"a target goes back": {
			firstPromotion().history(two().Deploying(), done(one())).written("1.1.0").tagged(manager, "1.0.0"),
			"spec.ref.tag went back to 1.0.0 of promotion 1, after 2",
		},
		"a rollback without a failure": {
			newRecording().history(done(one())).history(two().Succeeded(), done(one())).history(back(), two().Succeeded(), done(one())),
			"rollback 3 to 1.0.0 answers no failure",
		},
		"a rollback of a rollback": {
			failedSecond().history(back().Cancelled(), two().Failed(), done(one())).history(back().ID(4), back().Cancelled(), two().Failed(), done(one())),
			"1.0.0",
		},
		"a rollback to what never succeeded": {
			newRecording().history(one().Cancelled()).history(two().Failed(), one().Cancelled()).history(back(), two().Failed(), one().Cancelled()),
			"rollback 3 is to 1.0.0, which has not succeeded before",
		},
		"a rollback that fails": {
			failedSecond().history(back(), two().Failed(), done(one())).history(back().Failed(), two().Failed(), done(one())),
			"rollback 3 has failed",
		},
		"more than the field": {deploying().state(moreThanItsField()), "the controller wrote more than its own fields"},
		"a target of no Rollout": {
			firstPromotion().history(done(one())).gone().tagged(manager, "1.1.0"), "for a Rollout that is not there",
		},
	} {
		t.Run(name, func(t *testing.T) {
			broken := Judge(tt.recording.seen).Broken
			if len(broken) == 0 {
				t.Fatal("it does not complain")
			}
			for _, complaint := range broken {
				if !strings.Contains(complaint, tt.broken) {
					t.Errorf("it says %q, not %q", complaint, tt.broken)
				}
			}
		})
	}
}

func TestObserverCountsWhatTheControllerWrote(t *testing.T) {
	found := Judge(firstPromotion().tagged("kubectl", "6.6.6").tagged(manager, "1.0.0").
		history(two().Deploying(), done(one())).substituted(manager, "1.1.0").tagged(manager, "1.1.0").seen)
	want := map[string]map[int64]int{
		"OCIRepository shop-prod/shop": {1: 2, 2: 1},
		"Kustomization shop-prod/shop": {1: 1, 2: 1},
	}
	if diff := cmp.Diff(want, found.Writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if found.Promotions != 2 || found.Repeated() != 1 || found.Late != 0 || len(found.Broken) > 0 {
		t.Errorf("promotions %d, repeated %d, late %d, broken %q", found.Promotions, found.Repeated(), found.Late, found.Broken)
	}
}

func TestWriteThatIsLateIsCountedAndNoBrokenPromise(t *testing.T) {
	found := Judge(newRecording().history(one().Deploying()).history(two().Deploying(), one().Cancelled()).
		tagged(manager, "1.0.0").tagged(manager, "1.1.0").seen)
	if found.Late != 1 || len(found.Broken) > 0 {
		t.Errorf("late %d, broken %q", found.Late, found.Broken)
	}
}

// pinned returns a promotion that a user chose.
func pinned(id int64) *entryBuilder { return one().By(v1alpha1.TriggeredByUser, "ann").ID(id) }

// failedSecond returns a recording in which the second release has failed.
func failedSecond() *recording {
	return firstPromotion().history(two().Deploying(), done(one())).written("1.1.0").history(two().Failed(), done(one()))
}

// back returns the rollback from the second release to the first.
func back() *entryBuilder { return one().ID(3).Back("1.1.0", 2, 1).Deploying() }

func anotherShop() *v1alpha1.Rollout {
	return newRecording().shop.History(one().Deploying()).Obj()
}

// moreThanItsField returns a write of the controller that also changes the interval.
func moreThanItsField() *sourcev1.OCIRepository {
	t := newRecording().tagged(manager, "1.0.0")
	repository := t.seen[len(t.seen)-1].Object.(*sourcev1.OCIRepository)
	repository.Spec.Interval = metav1.Duration{Duration: time.Second}
	return repository
}

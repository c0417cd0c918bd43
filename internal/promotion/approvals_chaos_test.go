// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// approvers are people who decide about the releases of a Rollout, and the gates that ask them.
type approvers struct {
	asking []v1alpha1.ClusterRolloutGate
	given  []v1alpha1.RolloutApproval
	// used says for which promotion a decision was used.
	used map[types.UID]int64
	// approved counts promotions that people let go.
	approved int
}

// decideAny has somebody approve, reject or override a known release, or other content of it.
func (w *world) decideAny() {
	known := w.rollout.Status.AvailableReleases
	if len(known) == 0 {
		return
	}
	release := known[w.rng.IntN(len(known))]
	if w.chance(2) {
		release = known[len(known)-1]
	}
	digest := releases.OrEmpty(release.Digest)
	if w.chance(6) || digest == "" {
		digest = digestC
	}
	user := anyOf(w.rng, "ann", "bob", "eve", "system:serviceaccount:itsm:bot")
	given := fixture.MakeApproval(user, "shop", release.Tag).Named(fmt.Sprintf("decision-%d", len(w.given))).Digest(digest).At(w.now.Truncate(time.Second))
	switch w.rng.IntN(9) {
	case 0:
		given.Reject()
	case 1:
		given.Override(time.Hour, "payments down")
	}
	w.given = append(w.given, *given.Obj())
	w.log(user, "%s %s", given.Obj().Spec.Decision, release.Tag)
}

// pinAgain has a user pin what was promoted before.
func (w *world) pinAgain() {
	if history := w.rollout.Status.History; len(history) > 0 && w.chance(6) {
		w.manually()
		w.rollout.Spec.WantedVersion = &history[w.rng.IntN(len(history))].Version.Tag
		w.log("user", "pins %s again", *w.rollout.Spec.WantedVersion)
	}
}

// checkApprovals checks the newest entry after a promotion, by other means than the engine: the
// people in it have decided on this content, they are enough, and none of it was used before.
func (w *world) checkApprovals(d promotion.Decision, before []v1alpha1.DeploymentHistoryEntry) {
	w.t.Helper()
	if len(w.asking) == 0 || !d.Action.Promotes() {
		return
	}
	entry := w.current()
	switch record := entry.Approval; {
	case record == nil:
		w.fail("%s was promoted without a record", entry.Version.Tag)
	case record.Outcome == v1alpha1.OutcomeMissing && d.Reason != v1alpha1.TagMovedReason:
		w.fail("%s was promoted without approvals", entry.Version.Tag)
	case record.Outcome == v1alpha1.OutcomeNotNeeded && d.Back == nil && d.Action != promotion.Adopt && !hasSucceeded(before, entry.Version):
		w.fail("%s was promoted as if no gate asked", entry.Version.Tag)
	case record.Outcome == v1alpha1.OutcomeApproved || record.Outcome == v1alpha1.OutcomeOverridden:
		w.checkPeople(entry)
	}
}

func hasSucceeded(before []v1alpha1.DeploymentHistoryEntry, version v1alpha1.VersionInfo) bool {
	return slices.ContainsFunc(before, func(e v1alpha1.DeploymentHistoryEntry) bool {
		return e.State() == v1alpha1.BakeSucceeded && releases.IsSame(e.Version.Digest, version.Digest)
	})
}

func (w *world) checkPeople(entry *v1alpha1.DeploymentHistoryEntry) {
	w.t.Helper()
	people, overridden := map[string]bool{}, false
	for _, by := range entry.Approval.By {
		i := slices.IndexFunc(w.given, func(g v1alpha1.RolloutApproval) bool { return g.UID == by.UID })
		given := w.given[i].Spec
		if at, used := w.used[by.UID]; used {
			w.fail("%s of %s was used for promotion %d, and again for %d", by.Name, by.Username, at, entry.IDOrZero())
		}
		w.used[by.UID] = entry.IDOrZero()
		if given.Version != entry.Version.Tag || given.Digest != releases.OrEmpty(entry.Version.Digest) || given.Decision == v1alpha1.DecisionReject {
			w.fail("%s of %s, %s of %s, let %s go", by.Name, by.Username, given.Decision, given.Digest, entry.Version.Tag)
		}
		people[by.Username] = true
		overridden = overridden || given.Decision == v1alpha1.DecisionOverride
	}
	delete(people, "system:serviceaccount:itsm:bot")
	if overridden != (entry.Approval.Outcome == v1alpha1.OutcomeOverridden) || !overridden && len(people) < w.asking[0].Spec.Approvals.GetCount() {
		w.fail("%s is %s by %v", entry.Version.Tag, entry.Approval.Outcome, people)
	}
	w.approved++
}

// Whatever happens, nothing goes out without its approvals, and none counts twice.
func TestApprovalsInChaos(t *testing.T) {
	approved := 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("with seed %d", seed), func(t *testing.T) {
			rng := random(seed)
			w := newWorld(t, anyRollout(rng), rng)
			w.reflection, w.used = "Always", map[types.UID]int64{}
			w.asking = []v1alpha1.ClusterRolloutGate{*fixture.MakeClusterGate("prod").Asking(fixture.AskFor(int32(1 + rng.IntN(2)))).Obj()}
			for range 150 {
				w.step(func() {
					w.decideAny()
					w.decideAny()
					w.anything()
					w.pinAgain()
				})
			}
			approved += w.approved
		})
	}
	if approved == 0 {
		t.Error("no promotion was approved")
	}
}

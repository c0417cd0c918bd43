// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// said is a decision on 1.4.0 that was made an hour ago.
func said(user string) *fixture.ApprovalBuilder {
	return fixture.MakeApproval(user, "shop", "1.4.0").At(fixture.Noon.Add(-time.Hour))
}

// before makes a decision some hours older than now.
func before(hours int, b *fixture.ApprovalBuilder) *fixture.ApprovalBuilder {
	return b.At(fixture.Noon.Add(-time.Duration(hours) * time.Hour))
}

func gate(people int32, change ...func(*v1alpha1.Approvals)) Gate {
	g := Gate{"RolloutGate qa", *fixture.AskFor(people)}
	for _, change := range change {
		change(&g.Asks)
	}
	return g
}

func inRole(role string) func(*v1alpha1.Approvals) {
	return func(a *v1alpha1.Approvals) { a.Role = role }
}

func listing(accounts ...string) func(*v1alpha1.Approvals) {
	return func(a *v1alpha1.Approvals) { a.ServiceAccounts = accounts }
}

func selfApproved(a *v1alpha1.Approvals) { a.SelfApproval = v1alpha1.SelfApprovalAllow }

func deaf(a *v1alpha1.Approvals) { a.Rejections = v1alpha1.RejectionsIgnore }

func onlyAutomatic(a *v1alpha1.Approvals) {
	a.AppliesTo = []v1alpha1.ApprovedPromotion{v1alpha1.ApproveAutomatic}
}

func promotionOf(change ...func(*Case)) Case {
	rollout := &v1alpha1.Rollout{}
	rollout.Name, rollout.UID, rollout.CreationTimestamp = "shop", "this", metav1.NewTime(fixture.Noon.Add(-100*24*time.Hour))
	digest := fixture.DigestOf("1.4.0")
	c := Case{Now: fixture.Noon, Rollout: rollout, Release: v1alpha1.VersionInfo{Tag: "1.4.0", Digest: &digest}}
	for _, change := range change {
		change(&c)
	}
	return c
}

func chosenBy(user string) func(*Case) {
	return func(c *Case) { c.Manual, c.Requested, c.Requester = true, true, user }
}

func withoutDigest(c *Case) { c.Release.Digest = nil }

// after gives the Rollout an entry of the version, some hours ago.
func after(hours int, tag string, used ...*fixture.ApprovalBuilder) func(*Case) {
	return func(c *Case) {
		entry := v1alpha1.DeploymentHistoryEntry{Version: v1alpha1.VersionInfo{Tag: tag}, Timestamp: metav1.NewTime(fixture.Noon.Add(-time.Duration(hours) * time.Hour)), Approval: &v1alpha1.ApprovalRecord{}}
		for _, u := range used {
			entry.Approval.By = append(entry.Approval.By, v1alpha1.RecordedApproval{UID: u.Obj().UID})
		}
		c.Rollout.Status.History = append(c.Rollout.Status.History, entry)
	}
}

// describe says an answer in one line.
func (a Answer) describe() string {
	var words []string
	for _, hold := range a.Holds {
		words = append(words, hold.Reason+": "+hold.Message)
	}
	var by []string
	for _, given := range a.By {
		by = append(by, given.Spec.By.Username)
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, " | ")
	case len(a.Asked) == 0:
		return "not asked"
	case a.Overridden:
		return "overridden by " + strings.Join(by, " ")
	}
	return "goes by " + strings.Join(by, " ")
}

func TestWhoseApprovalsCount(t *testing.T) {
	robot := func() *fixture.ApprovalBuilder { return said("system:serviceaccount:itsm:bot").Named("bot") }
	const one = "ApprovalRequired: RolloutGate qa: 0 of 1 approvals"
	for name, test := range map[string]struct {
		of    Case
		gates []Gate
		given []*fixture.ApprovalBuilder
		want  string
	}{
		"nobody asks":                          {promotionOf(), nil, nil, "not asked"},
		"the gate asks about other promotions": {promotionOf(chosenBy("eve")), []Gate{gate(1, onlyAutomatic)}, nil, "not asked"},
		"nobody has said anything":             {promotionOf(), []Gate{gate(1)}, nil, one},
		"one of two":                           {promotionOf(), []Gate{gate(2)}, []*fixture.ApprovalBuilder{said("bob")}, "ApprovalRequired: RolloutGate qa: 1 of 2 approvals (bob)"},
		"one person twice": {
			promotionOf(), []Gate{gate(2)}, []*fixture.ApprovalBuilder{said("bob"), before(2, said("bob").Named("again"))},
			"ApprovalRequired: RolloutGate qa: 1 of 2 approvals (bob)",
		},
		"two of two": {promotionOf(), []Gate{gate(2)}, []*fixture.ApprovalBuilder{said("bob"), before(2, said("alice"))}, "goes by bob alice"},
		"one person in both roles": {
			promotionOf(), []Gate{gate(1, inRole("security")), gate(2)}, []*fixture.ApprovalBuilder{said("alice").As("security"), said("alice").Named("again")},
			"ApprovalRequired: RolloutGate qa: 1 of 2 approvals (alice)",
		},
		"two people, one in the role": {
			promotionOf(), []Gate{gate(1, inRole("security")), gate(2)}, []*fixture.ApprovalBuilder{said("alice").As("security"), before(2, said("bob"))},
			"goes by alice bob",
		},
		"nobody in the role": {
			promotionOf(), []Gate{gate(1, inRole("security"))}, []*fixture.ApprovalBuilder{said("alice")},
			"ApprovalRequired: RolloutGate qa: 0 of 1 approvals in the role security",
		},
		"a ServiceAccount": {
			promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{robot()},
			one + "; system:serviceaccount:itsm:bot's does not count: the gate does not list this ServiceAccount",
		},
		"a ServiceAccount that is listed":    {promotionOf(), []Gate{gate(1, listing("itsm/bot"))}, []*fixture.ApprovalBuilder{robot()}, "goes by system:serviceaccount:itsm:bot"},
		"the override of a ServiceAccount":   {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{robot().Override(2*time.Hour, "payments down")}, one},
		"the override of one that is listed": {promotionOf(), []Gate{gate(1, listing("itsm/bot"))}, []*fixture.ApprovalBuilder{robot().Override(2*time.Hour, "payments down")}, "overridden by system:serviceaccount:itsm:bot"},
		"the override of one that another gate lists": {
			promotionOf(), []Gate{gate(1, listing("itsm/bot")), {Name: "ClusterRolloutGate prod", Asks: *fixture.AskFor(1)}},
			[]*fixture.ApprovalBuilder{robot().Override(2*time.Hour, "payments down")}, "ApprovalRequired: ClusterRolloutGate prod: 0 of 1 approvals",
		},
		"which others have approved": {
			promotionOf(), []Gate{{Name: "ClusterRolloutGate prod", Asks: *fixture.AskFor(1)}, gate(2, listing("itsm/bot"))},
			[]*fixture.ApprovalBuilder{said("bob"), robot().Override(2*time.Hour, "payments down")}, "overridden by system:serviceaccount:itsm:bot bob",
		},
		"an override of what is approved":            {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob"), said("oncall").Override(2*time.Hour, "payments down")}, "goes by bob"},
		"a rejection":                                {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{before(2, said("bob")), said("eve").Reject().Because("leaks")}, "ApprovalRejected: RolloutGate qa: rejected by eve (leaks)"},
		"a rejection is older than approvals last":   {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob"), before(24*30, said("eve").Reject())}, "ApprovalRejected: RolloutGate qa: rejected by eve"},
		"a rejection of each content":                {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob"), said("eve").Reject().Digest("")}, "ApprovalRejected: RolloutGate qa: rejected by eve"},
		"a rejection of other content":               {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob"), said("eve").Reject().Digest(fixture.DigestOf("other"))}, "goes by bob"},
		"whoever rejected it approves it":            {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{before(2, said("eve").Reject().Named("no")), said("eve")}, "goes by eve"},
		"in the same second, the rejection counts":   {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("eve"), said("eve").Reject().Named("no")}, "ApprovalRejected: RolloutGate qa: rejected by eve"},
		"rejections are ignored":                     {promotionOf(), []Gate{gate(1, deaf)}, []*fixture.ApprovalBuilder{said("bob"), said("eve").Reject()}, "goes by bob"},
		"a rejection in another role":                {promotionOf(), []Gate{gate(1, inRole("security"))}, []*fixture.ApprovalBuilder{said("bob").As("security"), said("eve").Reject()}, "goes by bob"},
		"an approval of other content":               {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("carol").Digest(fixture.DigestOf("other"))}, one + "; carol's is for another digest"},
		"the digest is not known":                    {promotionOf(withoutDigest), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob")}, "DigestUnknown: RolloutGate qa asks for approvals, and the digest of 1.4.0 is not known: nobody can say what they approve"},
		"an approval of another version":             {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{fixture.MakeApproval("bob", "shop", "1.3.0").At(fixture.Noon)}, one},
		"an approval counts for a week":              {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob").At(fixture.Noon.Add(-168*time.Hour + time.Second))}, "goes by bob"},
		"an approval expires":                        {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob").At(fixture.Noon.Add(-168 * time.Hour))}, one + "; bob's has expired"},
		"an approval of an earlier Rollout":          {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob").OfRollout("gone")}, one},
		"an approval of this Rollout":                {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob").OfRollout("this")}, "goes by bob"},
		"an approval that is older than the Rollout": {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{before(101*24, said("bob"))}, one},
		"one's own pin":                              {promotionOf(chosenBy("alice")), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("alice")}, one + "; alice's does not count: alice asked for this release"},
		"one's own pin, allowed":                     {promotionOf(chosenBy("alice")), []Gate{gate(1, selfApproved)}, []*fixture.ApprovalBuilder{said("alice")}, "goes by alice"},
		"the pin of another":                         {promotionOf(chosenBy("alice")), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob")}, "goes by bob"},
		"nobody knows who pinned it":                 {promotionOf(chosenBy("")), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob")}, "ApprovalRequired: RolloutGate qa: 1 of 2 approvals (bob)"},
		"nobody knows who pinned it, two approve":    {promotionOf(chosenBy("")), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob"), before(2, said("carol"))}, "goes by bob carol"},
		"it failed after the approval":               {promotionOf(after(1, "1.4.0")), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob")}, one},
		"it failed before the approval":              {promotionOf(after(2, "1.4.0")), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob")}, "goes by bob"},
		"an approval that was used":                  {promotionOf(after(2, "1.4.0", said("bob"))), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("bob")}, one},
		"a rejection is never used up":               {promotionOf(after(0, "1.4.0")), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("eve").Reject()}, "ApprovalRejected: RolloutGate qa: rejected by eve"},
		"an override":                                {promotionOf(), []Gate{gate(2)}, []*fixture.ApprovalBuilder{said("oncall").Override(2*time.Hour, "payments down")}, "overridden by oncall"},
		"an override past a rejection":               {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("eve").Reject(), said("oncall").Override(2*time.Hour, "payments down")}, "overridden by oncall"},
		"an override that has ended":                 {promotionOf(), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("oncall").Override(time.Hour, "payments down")}, one},
		"an override that was used":                  {promotionOf(after(1, "1.4.0")), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("oncall").Override(2*time.Hour, "payments down")}, one},
		"an override without a known digest":         {promotionOf(withoutDigest), []Gate{gate(1)}, []*fixture.ApprovalBuilder{said("oncall").Digest("").Override(2*time.Hour, "payments down")}, "overridden by oncall"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, given(test.given...).Judge(test.of, test.gates).describe()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// given returns decisions in a random order.
func given(all ...*fixture.ApprovalBuilder) Approvals {
	var a Approvals
	for _, i := range rand.Perm(len(all)) {
		a.Given = append(a.Given, *all[i].Obj())
	}
	return a
}

func TestNothingCountsWithoutIdentity(t *testing.T) {
	a := given(said("bob"), said("eve").Reject().Because("leaks"))
	a.Identity.Problem = &verdict.Problem{Reason: v1alpha1.IdentityNotVerifiedReason, Message: "the policy is missing"}
	if got := a.Judge(promotionOf(), []Gate{gate(1)}).describe(); got != "IdentityNotVerified: the policy is missing" {
		t.Error(got)
	}
	if got := a.Judge(promotionOf(), nil).describe(); got != "not asked" {
		t.Error(got)
	}
}

func TestOnlyWhatIsYoungerThanThePoliciesCounts(t *testing.T) {
	for ago, want := range map[string]string{
		"1h": "ApprovalRequired: RolloutGate qa: 0 of 1 approvals; bob's does not count: names are checked since 2026-03-02T11:00:00Z", "1h1s": "goes by bob",
	} {
		a, since := given(said("bob")), must(time.ParseDuration(ago))
		a.Identity.Since = fixture.Noon.Add(-since)
		if got := a.Judge(promotionOf(), []Gate{gate(1)}).describe(); got != want {
			t.Errorf("since %s ago: %s", ago, got)
		}
	}
}

func must(d time.Duration, err error) time.Duration {
	if err != nil {
		panic(err)
	}
	return d
}

func TestUnreadableApprovalsHold(t *testing.T) {
	a := given(said("bob"))
	a.Problem = &verdict.Problem{Reason: v1alpha1.ApprovalListFailedReason, Message: "they could not be read"}
	if got := a.Judge(promotionOf(), []Gate{gate(1)}).describe(); got != "ApprovalListFailed: they could not be read" {
		t.Error(got)
	}
}

func TestAnswerSaysWhenItChanges(t *testing.T) {
	week := 168 * time.Hour
	for name, test := range map[string]struct {
		given []*fixture.ApprovalBuilder
		want  time.Time
	}{
		"nothing was said":           {nil, time.Time{}},
		"the first approval expires": {[]*fixture.ApprovalBuilder{said("bob"), before(2, said("carol"))}, fixture.Noon.Add(week - 2*time.Hour)},
		"the override ends":          {[]*fixture.ApprovalBuilder{said("bob"), said("oncall").Override(90*time.Minute, "payments down")}, fixture.Noon.Add(30 * time.Minute)},
		"a rejection never ends":     {[]*fixture.ApprovalBuilder{said("eve").Reject()}, time.Time{}},
		"what has expired stays so":  {[]*fixture.ApprovalBuilder{before(200, said("bob"))}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := given(test.given...).Judge(promotionOf(), []Gate{gate(2)}).Changes; !got.Equal(test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestOverrideLiftsOnlyWhatItNames(t *testing.T) {
	a := given(said("oncall").Override(2*time.Hour, "payments down", v1alpha1.OverrideSchedules))
	answer := a.Judge(promotionOf(), []Gate{gate(1)})
	if diff := cmp.Diff([]v1alpha1.OverriddenHold{v1alpha1.OverrideSchedules}, answer.Lifts); diff != "" {
		t.Error(diff)
	}
	robot := said("system:serviceaccount:itsm:bot").Override(2*time.Hour, "payments down", v1alpha1.OverrideSchedules)
	answer = given(robot).Judge(promotionOf(), []Gate{gate(1, listing("itsm/bot")), gate(1)})
	if len(answer.Lifts) > 0 {
		t.Error("an override lifts other holds, and not every gate accepts its author")
	}
	if answer = given(said("bob")).Judge(promotionOf(), []Gate{gate(1)}); len(answer.Lifts) > 0 {
		t.Error("an approval lifts other holds")
	}
}

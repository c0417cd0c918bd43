// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	force   = v1alpha1.ForceDeployAnnotation
	bypass  = v1alpha1.BypassGatesAnnotation
	unblock = v1alpha1.UnblockFailedAnnotation
	retry   = v1alpha1.RetryAnnotation
	message = v1alpha1.DeployMessageAnnotation
	user    = v1alpha1.DeployUserAnnotation
)

// failed returns an environment whose current release failed while a fix is available.
func failed() *fixture.RolloutBuilder {
	return rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0", "1.1.1").History(entry("1.1.0").Failed(), entry("1.0.0").Succeeded())
}

// rolledBack returns an environment that was rolled back by a pin, which was removed
// later.
func rolledBack() *fixture.RolloutBuilder {
	return rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").
		History(entry("1.0.0").Succeeded(), entry("1.1.0").Failed(), entry("1.0.0").Succeeded())
}

// settled is what a decision does with requests.
type settled struct {
	Does     string // the action and its release
	Consumed []string
	Answers  []string // reasons
	Refused  string   // reason
	Problem  string   // reason
}

func settledBy(d promotion.Decision) settled {
	s := settled{Does: strings.TrimSpace(string(d.Action) + " " + d.Release.Tag), Consumed: slices.Sorted(slices.Values(d.Consumed))}
	for _, answer := range d.Answers {
		s.Answers = append(s.Answers, answer.Reason)
	}
	if d.Declined != nil {
		s.Refused = d.Declined.Reason
	}
	if d.Problem != nil {
		s.Problem = d.Problem.Reason
	}
	return s
}

func TestRequests(t *testing.T) {
	unpinned := func() *fixture.RolloutBuilder {
		return rollout().Ledger("1.0.0").History(entry("1.0.0").Grounds(v1alpha1.GroundsPinned).Succeeded())
	}
	unhealthy := check("db").Unhealthy()
	annAlone, annNow := promotion.RequestDigest("ann", ""), promotion.RequestDigest("ann", "now")
	for name, test := range map[string]struct {
		given *situation
		want  settled
	}{
		// what is left of a pin
		"a pin that was just removed takes its words along": {
			given(unpinned().Annotate(user, "admin").Annotate(message, "Cleared version pin")),
			settled{Does: "Nothing", Consumed: []string{message, user}},
		},
		"but not those of another request": {
			given(unpinned().Annotate(message, "INC-1").Annotate(bypass, "9.9.9")),
			settled{Does: "Nothing", Refused: v1alpha1.NoSuchCandidateReason},
		},
		"nor those that come later": {
			given(unpinned().Observed(1).Annotate(message, "INC-1")),
			settled{Does: "Nothing"},
		},
		// force-deploy
		"force promotes a known release, also an older one": {
			given(upgrade().Ledger("0.9.0", "1.0.0", "1.1.0").Annotate(force, "0.9.0")),
			settled{Does: "Promote 0.9.0", Consumed: []string{force}},
		},
		"force supersedes a running promotion": {
			given(rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Deploying()).Annotate(force, "1.1.0")).
				targets(pending("apps")),
			settled{Does: "Supersede 1.1.0", Consumed: []string{force}},
		},
		"force goes past gates, health and a failure, and lifts a quarantine": {
			given(rolledBack().Annotate(force, "1.1.0")).gates(gate("manual").Closed()).checks(unhealthy),
			settled{Does: "Promote 1.1.0", Consumed: []string{force}},
		},
		"force of an unknown tag is held, and so is everything else": {
			given(upgrade().Annotate(force, "9.9.9")),
			settled{Does: "Nothing", Problem: v1alpha1.UnknownReleaseReason},
		},
		"force of what is no tag is held": {
			given(upgrade().Annotate(force, "no tag")),
			settled{Does: "Nothing", Problem: v1alpha1.UnknownReleaseReason},
		},
		"force of what is no tag is held, though the ledger lists it": {
			given(upgrade().Ledger("no tag", "1.0.0", "1.1.0").Annotate(force, "no tag")),
			settled{Does: "Nothing", Problem: v1alpha1.UnknownReleaseReason},
		},
		"force of an unknown tag does not stop the running bake": {
			given(rollout().BakeTime(time.Hour).Ledger("1.0.0").History(entry("1.0.0").Baking(eleven)).Annotate(force, "9.9.9")),
			settled{Does: "FinishBake", Problem: v1alpha1.UnknownReleaseReason},
		},
		"force of the current version ends, and automation goes on in the same pass": {
			given(upgrade().Annotate(force, "1.0.0")),
			settled{Does: "Promote 1.1.0", Consumed: []string{force}, Answers: []string{v1alpha1.ForceDeployNotNeededReason}},
		},
		"force of the current version ends with an answer": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded()).Annotate(force, "1.0.0")),
			settled{Does: "Nothing", Consumed: []string{force}, Answers: []string{v1alpha1.ForceDeployNotNeededReason}},
		},
		"with it ends what was said of it": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded()).Annotate(force, "1.0.0").Annotate(user, "ann").Annotate(message, "hello")),
			settled{Does: "Nothing", Consumed: []string{force, message, user}, Answers: []string{v1alpha1.ForceDeployNotNeededReason}},
		},
		"and nothing is removed twice": {
			given(upgrade().Annotate(force, "1.0.0").Annotate(user, "ann")),
			settled{Does: "Promote 1.1.0", Consumed: []string{user, force}, Answers: []string{v1alpha1.ForceDeployNotNeededReason}},
		},
		"a force that was carried out, and not removed before the controller died, needs no answer": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0").Annotate(force, "1.0.0").Annotate(user, "ann").
				History(entry("1.0.0").Baking(eleven).Grounds(v1alpha1.GroundsForced).RequestDigest(annAlone))),
			settled{Does: "Wait", Consumed: []string{force, user}},
		},
		"nor does one with a message": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0").Annotate(force, "1.0.0").Annotate(message, "now").
				History(entry("1.0.0").Baking(eleven).Grounds(v1alpha1.GroundsForced).RequestDigest(promotion.RequestDigest("", "now")))),
			settled{Does: "Wait", Consumed: []string{force, message}},
		},
		"a force of what somebody else asked for is answered": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0").Annotate(force, "1.0.0").Annotate(user, "bob").
				History(entry("1.0.0").Baking(eleven).Grounds(v1alpha1.GroundsForced).RequestDigest(annAlone))),
			settled{Does: "Wait", Consumed: []string{force, user}, Answers: []string{v1alpha1.ForceDeployNotNeededReason}},
		},
		"an empty force is none": {given(upgrade().Annotate(force, "")), settled{Does: "Promote 1.1.0"}},
		"force waits behind a pin": {
			given(upgrade().Pin("1.0.0").Annotate(force, "1.1.0")), settled{Does: "Nothing"},
		},
		"a pin beats force, which stays": {
			given(upgrade().Ledger("0.9.0", "1.0.0", "1.1.0").Pin("1.1.0").Annotate(force, "0.9.0")), settled{Does: "Promote 1.1.0"},
		},

		// bypass-gates
		"bypass lets the named candidate past closed gates, and only that": {
			given(upgrade().Ledger("1.0.0", "1.1.0", "1.2.0").Annotate(bypass, "1.1.0")).gates(gate("manual").Closed(), gate("qa").Allow()),
			settled{Does: "Promote 1.1.0", Consumed: []string{bypass}},
		},
		"bypass goes past schedules and gates that cannot be read": {
			given(upgrade().Annotate(bypass, "1.1.0")).gatesUnreadable().schedules(closedUntil(never, "nights")),
			settled{Does: "Promote 1.1.0", Consumed: []string{bypass}},
		},
		"bypass lifts no bad health": {
			given(upgrade().Annotate(bypass, "1.1.0")).gates(gate("manual").Closed()).checks(unhealthy), settled{Does: "Nothing"},
		},
		"bypass lifts no failed bake": {given(failed().Annotate(bypass, "1.1.1")), settled{Does: "Nothing"}},
		"bypass lifts no running bake": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Baking(eleven)).Annotate(bypass, "1.1.0")),
			settled{Does: "Wait"},
		},
		"bypass lifts no interval": {given(upgrade().ReleaseUpdateInterval(2*time.Hour).Annotate(bypass, "1.1.0")), settled{Does: "Nothing"}},
		"bypass of what is no candidate stays and is said": {
			given(upgrade().Annotate(bypass, "2.0.0")).gates(gate("manual").Closed()),
			settled{Does: "Nothing", Refused: v1alpha1.NoSuchCandidateReason},
		},
		"bypass stays when another version is promoted": {
			given(upgrade().Pin("1.2.0").Annotate(bypass, "1.1.0")), settled{Does: "Promote 1.2.0"},
		},
		"bypass ends with a manual promotion of that version": {
			given(upgrade().Pin("1.1.0").Annotate(bypass, "1.1.0")), settled{Does: "Promote 1.1.0", Consumed: []string{bypass}},
		},
		"bypass of the current version ends with an answer": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded()).Annotate(bypass, "1.0.0")),
			settled{Does: "Nothing", Consumed: []string{bypass}, Answers: []string{v1alpha1.BypassNotNeededReason}},
		},
		"a bypass that was used, and not removed before the controller died, needs no answer": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0").Annotate(bypass, "1.0.0").
				History(entry("1.0.0").Baking(eleven).Grounds(v1alpha1.GroundsNewest, v1alpha1.LiftedGates))),
			settled{Does: "Wait", Consumed: []string{bypass}},
		},
		"bypass of what is baking by itself ends with an answer": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0").Annotate(bypass, "1.0.0").
				History(entry("1.0.0").Baking(eleven).Grounds(v1alpha1.GroundsNewest))),
			settled{Does: "Wait", Consumed: []string{bypass}, Answers: []string{v1alpha1.BypassNotNeededReason}},
		},
		"bypass chooses the first release": {
			given(rollout().Ledger("1.0.0", "1.1.0", "1.2.0").Annotate(bypass, "1.1.0")).gates(gate("qa").Allow("1.0.0")),
			settled{Does: "Promote 1.1.0", Consumed: []string{bypass}},
		},

		// unblock-failed
		"unblock lets the fix of a failed release out": {
			given(failed().Annotate(unblock, "true")), settled{Does: "Promote 1.1.1", Consumed: []string{unblock}},
		},
		"unblock works while the check is still Unhealthy": {
			given(failed().Annotate(unblock, "true")).checks(unhealthy), settled{Does: "Promote 1.1.1", Consumed: []string{unblock}},
		},
		"unblock works while checks cannot be read": {
			given(failed().Annotate(unblock, "true")).healthUnreadable(), settled{Does: "Promote 1.1.1", Consumed: []string{unblock}},
		},
		"unblock lifts a quarantine": {
			given(rolledBack().Annotate(unblock, "true")), settled{Does: "Promote 1.1.0", Consumed: []string{unblock}},
		},
		"unblock lifts bad health": {
			given(upgrade().Annotate(unblock, "true")).checks(unhealthy), settled{Does: "Promote 1.1.0", Consumed: []string{unblock}},
		},
		"unblock lifts no gate, and stays": {
			given(failed().Annotate(unblock, "true")).gates(gate("manual").Closed()), settled{Does: "Nothing"},
		},
		"unblock and bypass together lift both": {
			given(failed().Annotate(unblock, "true").Annotate(bypass, "1.1.1")).gates(gate("manual").Closed()).checks(unhealthy),
			settled{Does: "Promote 1.1.1", Consumed: []string{bypass, unblock}},
		},
		"unblock waits for a fix that is not out yet": {
			given(rollout().Ledger("1.1.0").History(entry("1.1.0").Failed()).Annotate(unblock, "true")), settled{Does: "Nothing"},
		},
		"unblock ends with an answer when nothing has failed": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded()).Annotate(unblock, "true")),
			settled{Does: "Nothing", Consumed: []string{unblock}, Answers: []string{v1alpha1.UnblockNotNeededReason}},
		},
		"unblock ends with an answer where only a gate holds": {
			given(upgrade().Annotate(unblock, "true")).gates(gate("manual").Closed()),
			settled{Does: "Nothing", Consumed: []string{unblock}, Answers: []string{v1alpha1.UnblockNotNeededReason}},
		},
		"unblock that is left over after a crash lifts no second promotion": {
			given(rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0", "1.1.1").Annotate(unblock, "true").
				History(entry("1.1.0").Deploying().Grounds(v1alpha1.GroundsNewest, v1alpha1.LiftedFailure), entry("1.0.0").Failed())).
				targets(pending("apps")).checks(unhealthy),
			settled{Does: "Wait", Consumed: []string{unblock}},
		},
		"unblock is not used up by a manual promotion": {
			given(failed().Pin("1.0.0").Annotate(unblock, "true")), settled{Does: "Promote 1.0.0"},
		},
		"unblock with another value means nothing, and that is said": {
			given(failed().Annotate(unblock, "yes")), settled{Does: "Nothing", Refused: v1alpha1.InvalidRequestReason},
		},

		// retry
		"retry judges the failed release anew, whatever its value": {
			given(failed().Annotate(retry, "")), settled{Does: "Retry", Consumed: []string{retry}},
		},
		"retry of a pinned release": {
			given(failed().Pin("1.1.0").Annotate(retry, "now")), settled{Does: "Retry", Consumed: []string{retry}},
		},
		"retry ends with an answer when nothing has failed": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded()).Annotate(retry, "")),
			settled{Does: "Nothing", Consumed: []string{retry}, Answers: []string{v1alpha1.RetryNotNeededReason}},
		},
		"retry ends with an answer before anything was promoted": {
			given(rollout().Annotate(retry, "")), settled{Does: "Nothing", Consumed: []string{retry}, Answers: []string{v1alpha1.RetryNotNeededReason}},
		},
		"retry ends with an answer while the first try runs": {
			given(rollout().BakeTime(time.Hour).History(entry("1.0.0").Deploying()).Annotate(retry, "")).targets(pending("apps")),
			settled{Does: "Wait", Consumed: []string{retry}, Answers: []string{v1alpha1.RetryNotNeededReason}},
		},
		"retry is only removed while one runs": {
			given(rollout().BakeTime(time.Hour).History(entry("1.0.0").Deploying().Retried(eleven)).Annotate(retry, "")).targets(pending("apps")),
			settled{Does: "Wait", Consumed: []string{retry}},
		},
		"retry yields to another choice, and ends with it": {
			given(failed().Pin("1.0.0").Annotate(retry, "")), settled{Does: "Promote 1.0.0", Consumed: []string{retry}},
		},

		// deploy-message and deploy-user
		"any promotion takes what was said of the next one": {
			given(upgrade().Annotate(message, "hello").Annotate(user, "ann")), settled{Does: "Promote 1.1.0", Consumed: []string{message, user}},
		},
		"what was said of the next promotion waits for it": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded()).Annotate(message, "hello").Annotate(user, "ann")),
			settled{Does: "Nothing"},
		},
		"what was said of the promotion under way, and could not be removed, is removed": {
			given(rollout().BakeTime(2*time.Hour).Pin("1.0.0").Annotate(message, "now").Annotate(user, "ann").
				History(entry("1.0.0").Baking(eleven).RequestDigest(annNow))),
			settled{Does: "Wait", Consumed: []string{message, user}},
		},
		"and the name alone": {
			given(rollout().BakeTime(2*time.Hour).Pin("1.0.0").Annotate(user, "ann").
				History(entry("1.0.0").Baking(eleven).RequestDigest(annAlone))),
			settled{Does: "Wait", Consumed: []string{user}},
		},
		"also if it has just ended": {
			given(rollout().Pin("1.0.0").Annotate(user, "ann").
				History(entry("1.0.0").Succeeded().BakeEnd(noon.Add(-time.Minute)).RequestDigest(annAlone))),
			settled{Does: "Nothing", Consumed: []string{user}},
		},
		"what an automatic promotion did not heed is removed as well": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0").Annotate(message, "now").Annotate(user, "ann").
				History(entry("1.0.0").Baking(eleven).Grounds(v1alpha1.GroundsNewest).RequestDigest(annNow))),
			settled{Does: "Wait", Consumed: []string{message, user}},
		},
		"but not what was said since": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0").Annotate(user, "bob").
				History(entry("1.0.0").Baking(eleven).Grounds(v1alpha1.GroundsNewest).RequestDigest(annAlone))),
			settled{Does: "Wait"},
		},
		"a while later the same words are of the next one": {
			given(rollout().Pin("1.0.0").Annotate(user, "ann").
				History(entry("1.0.0").Succeeded().BakeEnd(noon.Add(-time.Minute - instant)).RequestDigest(annAlone))),
			settled{Does: "Nothing"},
		},
		"other words are of the next one": {
			given(rollout().BakeTime(2*time.Hour).Pin("1.0.0").Annotate(message, "later").Annotate(user, "ann").
				History(entry("1.0.0").Baking(eleven).RequestDigest(annNow))),
			settled{Does: "Wait"},
		},
		"adoption is no promotion that anybody spoke of": {
			given(rollout().Ledger("1.0.0").Annotate(message, "hello")).owned("1.0.0"), settled{Does: "Adopt 1.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			slices.Sort(test.want.Consumed)
			diff(t, test.want, settledBy(promotion.Decide(test.given.in())))
		})
	}
}

func TestMessageAndAuthorOfAManualPromotion(t *testing.T) {
	ann := v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: "ann"}
	system := v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredBySystem, Name: promotion.SystemName}
	unknown := v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: v1alpha1.UnknownUser}
	for name, test := range map[string]struct {
		rollout *fixture.RolloutBuilder
		message string
		by      v1alpha1.TriggeredBy
	}{
		"the message and the user that were given": {
			upgrade().Pin("1.1.0").Annotate(message, " fixes the shop \n").Annotate(user, "ann"), "fixes the shop", ann,
		},
		"what it rests on, if nothing was said": {upgrade().Pin("1.1.0"), "pinned manually in spec.wantedVersion", unknown},
		"that it was forced": {
			upgrade().Annotate(force, "1.1.0").Annotate(user, "ann"), "requested with rollout.kuberik.com/force-deploy", ann,
		},
		"blank means nothing": {upgrade().Pin("1.1.0").Annotate(message, " ").Annotate(user, "\t"), "pinned manually in spec.wantedVersion", unknown},
		"an automatic one takes neither": {
			upgrade().Annotate(message, "hello").Annotate(user, "ann"), "the newest eligible release of ImagePolicy shop; not requested by ann", system,
		},
		"an automatic one says what was lifted for it": {
			failed().Annotate(unblock, "true").Annotate(bypass, "1.1.1").Annotate(user, "ann"),
			"the newest eligible release of ImagePolicy shop; gates bypassed manually by ann; a failure bypassed manually", system,
		},
		"a bypass of gates says by whom and why": {
			upgrade().Annotate(bypass, "1.1.0").Annotate(user, "ann").Annotate(message, "INC-4711"),
			"the newest eligible release of ImagePolicy shop; gates bypassed manually by ann: INC-4711", system,
		},
		"what the dashboard writes by itself is no reason": {
			upgrade().Annotate(bypass, "1.1.0").Annotate(user, "ann").Annotate(message, "Cleared version pin"),
			"the newest eligible release of ImagePolicy shop; gates bypassed manually by ann", system,
		},
		"text without an end is cut": {
			upgrade().Pin("1.1.0").Annotate(message, strings.Repeat("é", 5000)).Annotate(user, strings.Repeat("u", 5000)),
			strings.Repeat("é", 510) + " … " + strings.Repeat("é", 255), v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: strings.Repeat("u", 169) + " … " + strings.Repeat("u", 84)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(test.rollout).in()
			history, err := promotion.Record(in, promotion.Decide(in))
			if err != nil {
				t.Fatal(err)
			}
			diff(t, test.message, *history[0].Message)
			diff(t, test.by, *history[0].TriggeredBy)
		})
	}
}

func TestRetryBeginsTheSameEntryAgain(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		at    time.Time
		start *metav1.Time
	}{
		"now": {given(failed().Annotate(retry, "")), noon, nil},
		"and the next second, for the wire holds whole ones": {
			given(failed().Annotate(retry, "")).at(noon.Add(instant)), noon.Add(time.Second), nil,
		},
		"later than any error that was seen": {
			given(failed().Annotate(retry, "")).checks(check("db").ErrorAt(one)), one.Add(time.Second), wireTime(noon),
		},
		"later than the retry before": {
			given(rollout().Ledger("1.1.0").History(entry("1.1.0").Failed().Retried(noon)).Annotate(retry, "")),
			noon.Add(time.Second), nil,
		},
		"and without the start of the retry before, if it needs none": {
			given(rollout().Ledger("1.1.0").History(entry("1.1.0").Failed().Retried(eleven).RetryStart(eleven)).Annotate(retry, "")), noon, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.targets(applied("apps")).in()
			before := in.Rollout.Current()
			history, err := promotion.Record(in, promotion.Decide(in))
			if err != nil {
				t.Fatal(err)
			}
			want := *before.DeepCopy()
			want.BakeStatus, want.LastRetryTimestamp = to(v1alpha1.BakeDeploying), wireTime(test.at)
			want.RetryStartTime = test.start
			want.BakeStartTime, want.BakeEndTime, want.FailedHealthChecks = nil, nil, nil
			want.BakeStatusMessage = history[0].BakeStatusMessage
			diff(t, want, history[0])
			if got := *history[0].BakeStatusMessage; !strings.HasPrefix(got, "retried; waiting for Flux to apply 1.1.0") {
				t.Errorf("the message is %q", got)
			}
			diff(t, len(in.Rollout.Status.History), len(history))
		})
	}
}

func TestStrategyNextTakesTheNextReleaseOnly(t *testing.T) {
	next := func() *fixture.RolloutBuilder {
		return rollout().Strategy(v1alpha1.ReleaseNext).Ledger("1.0.0", "1.1.0", "1.2.0").History(entry("1.0.0").Succeeded())
	}
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"one after another":                                   {given(next()), "Promote 1.1.0"},
		"a held one holds all":                                {given(next()).gates(gate("qa").Allow("1.2.0")), "Nothing"},
		"a failed one holds all":                              {given(next().History(entry("1.0.0").Succeeded(), entry("1.1.0").Failed())), "Nothing"},
		"nothing is skipped by a bypass":                      {given(next().Annotate(bypass, "1.2.0")), "Nothing"},
		"a pin may skip":                                      {given(next().Pin("1.2.0")), "Promote 1.2.0"},
		"the first is the newest, for nothing is skipped":     {given(rollout().Strategy(v1alpha1.ReleaseNext).Ledger("1.0.0", "1.1.0")), "Promote 1.1.0"},
		"none may be hidden among tags that are not known":    {given(next()).partial("they are being listed"), "Nothing"},
		"nor is one waited for that a user skips":             {given(next().Pin("1.2.0")).partial("they are being listed"), "Promote 1.2.0"},
		"what was withdrawn is not the next one":              {given(next()).registryHas("1.0.0", "1.2.0"), "Promote 1.2.0"},
		"what a scan of some tags does not show may be there": {given(next()).scanned("1.0.0", "1.2.0"), "Promote 1.1.0"},
		"each is applied before the next, unprotected too": {
			given(next().History(entry("1.0.0").Deploying())).targets(pending("apps")), "Wait",
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, settledBy(promotion.Decide(test.given.in())).Does)
		})
	}
	d := promotion.Decide(given(next()).in())
	diff(t, map[string][]string{"1.2.0": {v1alpha1.NotNextReason}, "1.1.0": {}}, reasons(d))
	diff(t, "the next release of ImagePolicy shop", d.Message)
}

func TestConsideredCandidates(t *testing.T) {
	three := func() *fixture.RolloutBuilder {
		return rollout().Ledger("1.0.0", "1.1.0", "1.2.0").History(entry("1.0.0").Succeeded())
	}
	for name, test := range map[string]struct {
		rollout *fixture.RolloutBuilder
		want    []string
	}{
		"all":                                 {three(), []string{"1.2.0", "1.1.0"}},
		"the one that a user lets past gates": {three().Annotate(bypass, "1.1.0"), []string{"1.1.0"}},
		"the next one":                        {three().Strategy(v1alpha1.ReleaseNext), []string{"1.1.0"}},
		"all, where none can go":              {three().Strategy(v1alpha1.ReleaseNext).Annotate(bypass, "1.2.0"), []string{"1.2.0", "1.1.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, verdict := range promotion.Considered(promotion.Decide(given(test.rollout).in()).Candidates) {
				got = append(got, verdict.Release.Tag)
			}
			diff(t, test.want, got)
		})
	}
}

func TestGoingBack(t *testing.T) {
	byAppearance := releases.OrderSpec{Kind: releases.ByAppearance}
	running := func() *fixture.RolloutBuilder {
		return rollout().Ledger("1.0.0", "1.1.0", "1.2.0").History(entry("1.1.0").Succeeded())
	}
	for name, test := range map[string]struct {
		situation *situation
		want      bool
	}{
		"an older release that is pinned":       {given(running().Pin("1.0.0")), true},
		"an older release that is forced":       {given(running().Annotate(force, "1.0.0")), true},
		"an older one that is not known":        {given(running().Pin("0.9.0")), true},
		"a newer one is forward":                {given(running().Pin("1.2.0")), false},
		"what has no rank is neither":           {given(running().Pin("pr-12")), false},
		"by appearance, what came before":       {given(running().Pin("1.0.0")).ranked(byAppearance), true},
		"by appearance, what came later":        {given(running().Pin("1.2.0")).ranked(byAppearance), false},
		"by appearance, what never appeared":    {given(running().Pin("1.0.1")).ranked(byAppearance), false},
		"the controller itself never goes back": {given(running()).latest("1.2.0"), false},
		"nothing ran before":                    {given(rollout().Ledger("1.0.0").Pin("1.0.0")), false},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.situation.in()
			d := promotion.Decide(in)
			if !d.Action.Promotes() {
				t.Fatalf("it does not promote: %s", d.Action)
			}
			if got := d.Backward(in); got != test.want {
				t.Errorf("%s of %s goes back: %v, want %v", d.Action, d.Release.Tag, got, test.want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// approving is what the approvals of releases depend on.
type approving struct {
	now     time.Time
	rollout *v1alpha1.Rollout
	policy  releases.Policy
	given   approvals.Approvals
	gates   []approvals.Gate
	// forgotten is true if a history is missing that was there, or is older than the targets.
	forgotten bool
}

func (in Input) approving() approving {
	history := in.Rollout.Status.History
	return approving{
		now: in.Now, rollout: in.Rollout, policy: in.Policy, given: in.Approvals, gates: in.Gates.asking(),
		forgotten: len(history) == 0 && len(in.Targets.Owned) > 0 || in.Targets.Outdate(history),
	}
}

// asking returns the gates that ask for approvals.
func (g Gates) asking() []approvals.Gate {
	var all []approvals.Gate
	for i := range g.Gates {
		if asks := g.Gates[i].Spec.Approvals; asks != nil {
			all = append(all, approvals.Gate{Name: "RolloutGate " + g.Gates[i].Name, Asks: *asks})
		}
	}
	for i := range g.Cluster {
		if asks := g.Cluster[i].Spec.Approvals; asks != nil {
			all = append(all, approvals.Gate{Name: clusterGate + g.Cluster[i].Name, Asks: *asks})
		}
	}
	return all
}

// clusterGate is how messages name a gate of the cluster.
const clusterGate = v1alpha1.ClusterRolloutGateKind + " "

// answer says whether a release has the approvals that gates ask for.
func (a approving) answer(release v1alpha1.VersionInfo) approvals.Answer {
	c := a.promoting(release)
	if len(a.gates) == 0 || c.Manual && a.isProven(release) {
		return approvals.Answer{}
	}
	return a.given.Judge(c, a.gates)
}

// answerForContent says whether content has them that runs, or is to run, without anybody
// having asked for it.
func (a approving) answerForContent(release v1alpha1.VersionInfo) approvals.Answer {
	c := a.promoting(release)
	c.Requested = false
	return a.given.Judge(c, a.gates)
}

func (a approving) promoting(release v1alpha1.VersionInfo) approvals.Case {
	c := approvals.Case{
		Now: a.now, Rollout: a.rollout, Release: release, Forgotten: a.forgotten, Manual: a.isChosen(release), Requester: a.given.Requesters[release.Tag],
	}
	current := a.rollout.Current()
	c.Older = current != nil && a.policy.Order.Relation(release, current.Version) == releases.Older
	c.Requested = c.Manual || a.rollout.Annotations[v1alpha1.BypassGatesAnnotation] == release.Tag || a.rollout.Annotations[v1alpha1.PromoteAnnotation] == release.Tag
	return c
}

// isChosen reports whether a user pins or forces the release.
func (a approving) isChosen(release v1alpha1.VersionInfo) bool {
	wanted := a.policy.Chosen(a.rollout)
	return wanted != "" && releases.IsName(wanted) && releases.Name(wanted).Is(release)
}

// isProven reports whether a user goes back to content that has succeeded here. That needs no
// approval: a failure must not wait for people, and without the pin the release that was left
// would come back.
func (a approving) isProven(release v1alpha1.VersionInfo) bool {
	current := a.rollout.Current()
	if current == nil || release.Digest == nil || a.policy.IsOfAnother(current) {
		return false
	}
	if order := a.policy.Order.Relation(release, current.Version); order != releases.Older && order != releases.SameRelease {
		return false
	}
	history := a.rollout.Status.History
	i := slices.IndexFunc(history, func(e v1alpha1.DeploymentHistoryEntry) bool { return releases.IsSame(e.Version.Digest, release.Digest) })
	return i >= 0 && history[i].State() == v1alpha1.BakeSucceeded
}

// everyApprovalGiven checks that people have approved the release, as many as gates ask for.
// Only an override lets it go without.
func everyApprovalGiven(a approving) check {
	return func(release v1alpha1.VersionInfo) *verdict.Hold {
		return firstOf(a.answer(release).Holds)
	}
}

// firstOf returns the first hold, with what all of them say; nil if there is none.
func firstOf(holds []verdict.Hold) *verdict.Hold {
	if len(holds) == 0 {
		return nil
	}
	hold := holds[0]
	var messages []string
	for _, h := range holds {
		messages, hold.Changes = append(messages, h.Message), verdict.Earlier(hold.Changes, h.Changes)
	}
	hold.Message = truncate.Join(messages, "; ")
	return &hold
}

// lifts returns for which releases a person lifts gates, or schedules, besides approvals.
func (a approving) lifts(hold v1alpha1.OverriddenHold) func(v1alpha1.VersionInfo) bool {
	return func(release v1alpha1.VersionInfo) bool { return slices.Contains(a.answer(release).Lifts, hold) }
}

// changes returns when time alone first changes what people have said of a candidate, or of what
// a user chose; zero means never. An approval may expire while something else holds the release.
func (a approving) changes(candidates []Verdict, awaited *Verdict) time.Time {
	var first time.Time
	if awaited != nil {
		first = a.answer(awaited.Release).Changes
	}
	for i := range candidates {
		first = verdict.Earlier(first, a.answer(candidates[i].Release).Changes)
	}
	return first
}

// shown adds to how a gate is shown what people have said of the candidates: the newest one that
// it holds.
func (a approving) shown(s v1alpha1.RolloutGateStatusSummary, name string, offered []v1alpha1.VersionInfo) v1alpha1.RolloutGateStatusSummary {
	i := slices.IndexFunc(a.gates, func(g approvals.Gate) bool { return g.Name == name })
	if i < 0 || !*s.Passing {
		return s
	}
	alone := a
	alone.gates = a.gates[i : i+1]
	allowed, approved, held := s.AllowedVersions, []string{}, ""
	for _, release := range offered {
		switch hold := everyApprovalGiven(alone)(release); {
		case hold != nil && held == "":
			held = release.Tag + ": " + strings.TrimPrefix(hold.Message, name+": ")
		case hold == nil && (allowed == nil || slices.Contains(allowed, release.Tag)):
			approved = append(approved, release.Tag)
		}
	}
	s.Message = cmp.Or(held, s.Message)
	s.AllowedVersions = approved
	return s
}

// shownGate returns the name of a gate in the status: those of the cluster differ from those of
// the namespace.
func shownGate(name string) string {
	if name, ok := strings.CutPrefix(name, clusterGate); ok {
		return "cluster/" + name
	}
	return strings.TrimPrefix(name, "RolloutGate ")
}

// blocking returns the gates that hold a release because approvals are missing.
func (a approving) blocking(reason string, release v1alpha1.VersionInfo) []string {
	var all []string
	for _, gate := range a.gates {
		alone := a
		alone.gates = []approvals.Gate{gate}
		if of := reason == v1alpha1.DigestUnknownReason || verdict.IsOfApprovals(reason); of && everyApprovalGiven(alone)(release) != nil {
			all = append(all, shownGate(gate.Name))
		}
	}
	return all
}

// mostRecorded is how many decisions, and how many gates, an entry names.
const mostRecorded = 10

// record returns who has approved what is promoted, given whether an override lifts other
// holds of it; nil if no gate asks.
func (a approving) record(o Outcome, lifts bool) *v1alpha1.ApprovalRecord {
	if len(a.gates) == 0 {
		return nil
	}
	answer := approvals.Answer{}
	switch {
	case o.Grounds == v1alpha1.GroundsAdopted || o.Back != nil:
	case o.Reason == v1alpha1.TagMovedReason:
		answer = a.answerForContent(o.Release)
	default:
		answer = a.answer(o.Release)
	}
	if lifts {
		answer = answer.WithLifting()
	}
	return recordOf(answer)
}

// approvedSince returns who has approved the content that runs, if nobody had when it was
// recorded; nil if that is not so, or is recorded already.
func (a approving) approvedSince() *v1alpha1.ApprovalRecord {
	current := a.rollout.Current()
	if current == nil || current.Approval == nil || current.Approval.Outcome != v1alpha1.OutcomeMissing {
		return nil
	}
	answer := a.answerForContent(current.Version)
	if len(answer.Asked) == 0 || len(answer.Holds) > 0 {
		return nil
	}
	return recordOf(answer)
}

// ApprovesContent reports whether people have approved content that runs without that: the
// version's decisions must be confirmed before [Record] says so.
func ApprovesContent(in Input) bool { return in.approving().approvedSince() != nil }

// recordOf returns an answer as the history has it.
func recordOf(answer approvals.Answer) *v1alpha1.ApprovalRecord {
	record := &v1alpha1.ApprovalRecord{Outcome: outcomeOf(answer)}
	for _, name := range answer.Asked[:min(len(answer.Asked), mostRecorded)] {
		record.Gates = append(record.Gates, shownGate(name))
	}
	if len(answer.Holds) > 0 {
		return record
	}
	for _, by := range answer.By[:min(len(answer.By), mostRecorded)] {
		record.By = append(record.By, v1alpha1.RecordedApproval{
			Name: by.Name, UID: by.UID, Username: by.Spec.By.Username, Role: by.Spec.Role, Time: by.CreationTimestamp, Reason: by.Spec.Reason,
		})
	}
	return record
}

func outcomeOf(answer approvals.Answer) v1alpha1.ApprovalOutcome {
	switch {
	case len(answer.Holds) > 0:
		return v1alpha1.OutcomeMissing
	case len(answer.Asked) == 0:
		return v1alpha1.OutcomeNotNeeded
	case answer.Overridden:
		return v1alpha1.OutcomeOverridden
	}
	return v1alpha1.OutcomeApproved
}

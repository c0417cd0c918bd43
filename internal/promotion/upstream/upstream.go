// SPDX-License-Identifier: Apache-2.0

// Package upstream knows what the environments before this one have proven, and what users
// may lift of that.
package upstream

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Upstreams is what must have proven a release before it may come here.
type Upstreams struct {
	// Environments that name the Rollout, sorted by name. A release needs the consent of
	// each of them.
	Environments []Environment
	// Problem says why they are not known: they could not be read, or the one that the
	// Rollout names does not exist. It holds every release.
	Problem string
}

// Known reports whether it is known what every upstream says.
func (us Upstreams) Known() bool {
	return us.Problem == "" && !slices.ContainsFunc(us.Environments, func(e Environment) bool {
		return e.Problem != nil || slices.ContainsFunc(e.Upstreams, func(u Upstream) bool { return u.Problem != nil })
	})
}

// Environment is an Environment that names the Rollout, with what its upstreams say.
type Environment struct {
	*environmentsv1.Environment
	// Upstreams are those of the spec, in its order.
	Upstreams []Upstream
	// Problem says why the Environment cannot be used; nil if it can. It holds every
	// release.
	Problem *verdict.Problem
}

// Upstream is what one upstream says of the releases that it has deployed.
type Upstream struct {
	environmentsv1.Upstream
	// Releases, the newest promotion first.
	Releases []environmentsv1.Release
	// Seen is when this was first read, by this controller's clock; zero if it is new. The
	// clock of the upstream may be a different one, so its times are only shown. What counts
	// is how long it has measured, and the time since then.
	Seen time.Time
	// Sequence is the number of the report that says this, of an upstream in another cluster; 0
	// if this process has verified none.
	Sequence int64
	// SignedBy are the fingerprints of the keys that have signed that report.
	SignedBy []string
	// Problem says why the upstream cannot be read, or not be trusted; nil if it can.
	Problem *verdict.Problem
}

// Rollout is what the Environments of a Rollout have to know of it.
type Rollout struct {
	// Now is the time of the decision.
	Now time.Time
	// Order in which its releases are ranked.
	Order releases.Order
	// Current is its newest history entry; nil if there is none.
	Current *v1alpha1.DeploymentHistoryEntry
	// Bypassed is the tag that a user lets go past the gates.
	Bypassed string
	// HasReason is true if the user says why.
	HasReason bool
	// Promoted is the tag that a user promotes.
	Promoted string
}

// Asked are the Environments of a Rollout, with what they have to know of it.
type Asked struct {
	Upstreams
	Rollout
}

// neverProven are those of the reasons that do not end while the upstream runs a newer
// release.
var neverProven = []string{environmentsv1.UpstreamWithdrawnReason, environmentsv1.UpstreamFailedReason, environmentsv1.UpstreamSkippedReason}

// Proven checks that the environments before this one have proven the release.
// Each Environment says by itself whether the annotation bypass-gates lifts this.
func (a Asked) Proven(release v1alpha1.VersionInfo) *verdict.Hold {
	if a.Problem != "" {
		return unknown(a.Problem)
	}
	var holds []verdict.Hold
	for _, e := range a.Environments {
		if hold := e.holds(a.Rollout, release); hold != nil && !e.isBypassed(a.Rollout, release.Tag) {
			holds = append(holds, *hold)
		}
	}
	return allOf(holds)
}

// PromotedByAPerson checks that a user has promoted the release, where an Environment
// leaves that to users.
func (a Asked) PromotedByAPerson(release v1alpha1.VersionInfo) *verdict.Hold {
	for _, e := range a.Environments {
		if !e.isLeftToUsers(a.Rollout) || e.isBypassed(a.Rollout, release.Tag) {
			continue
		}
		because := fmt.Sprintf("Environment %s leaves promotions to users", e.Name)
		if e.Spec.Promotion != environmentsv1.PromoteManually {
			because = fmt.Sprintf("%s went past Environment %s, and what follows may lack its changes", a.Current.Version.Tag, e.Name)
		}
		return &verdict.Hold{Reason: environmentsv1.AwaitingPromotionReason, Message: fmt.Sprintf(
			"%s: annotate the Rollout with %s: %s", because, v1alpha1.PromoteAnnotation, release.Tag)}
	}
	return nil
}

// isLeftToUsers reports whether the Environment leaves the next promotion to users: always, or
// because the current release went past it. A hotfix is built from what runs here, and what
// was proven meanwhile may lack it.
func (e Environment) isLeftToUsers(r Rollout) bool {
	if e.Spec.Promotion == environmentsv1.PromoteManually {
		return true
	}
	return len(e.Upstreams) > 0 && e.Spec.AfterBypass != environmentsv1.AfterBypassProceed &&
		r.Current.HasLifted(v1alpha1.LiftedUpstreams)
}

// isBypassed reports whether a user lets the release go past this Environment.
func (e Environment) isBypassed(r Rollout, tag string) bool {
	if r.Bypassed != tag {
		return false
	}
	switch e.Spec.Bypass {
	case environmentsv1.BypassAllowed:
		return true
	case environmentsv1.BypassDenied:
		return false
	case environmentsv1.BypassRequiresReason:
	}
	return r.HasReason
}

// Opposes reports whether the upstreams of one of the Environments have anything against a
// release, bypassed or not.
func (a Asked) Opposes(release v1alpha1.VersionInfo) bool {
	return slices.ContainsFunc(a.Environments, func(e Environment) bool { return e.holds(a.Rollout, release) != nil })
}

// holds returns what the upstreams of an Environment have against a release. With OneOf,
// the consent of one of those of type After is enough.
func (e Environment) holds(r Rollout, release v1alpha1.VersionInfo) *verdict.Hold {
	if e.Problem != nil {
		return unknown(e.Problem.Message)
	}
	after, asked := e.opposed(r, release, false)
	holds, _ := e.opposed(r, release, true)
	switch {
	case e.Spec.Availability != environmentsv1.OneOfUpstreams:
		holds = append(after, holds...)
	case len(after) == asked && asked > 0:
		holds = append(holds, *oneOf(after))
	}
	return allOf(holds)
}

// Blocking returns the names of the Environments that hold a release for a reason.
func (a Asked) Blocking(reason string, release v1alpha1.VersionInfo) []string {
	var names []string
	for _, e := range a.Environments {
		hold, left := e.holds(a.Rollout, release), e.isLeftToUsers(a.Rollout) && reason == environmentsv1.AwaitingPromotionReason
		if (left || hold != nil && hold.Reason == reason) && !e.isBypassed(a.Rollout, release.Tag) {
			names = append(names, environmentsv1.EnvironmentKind+" "+e.Name)
		}
	}
	return names
}

// Summaries shows the Environments like gates that allow the proven candidates. For one of the
// type GitHub, there is a gate.
func (a Asked) Summaries(candidates []v1alpha1.VersionInfo, bypassed string) []v1alpha1.RolloutGateStatusSummary {
	var all []v1alpha1.RolloutGateStatusSummary
	for _, e := range a.Environments {
		if e.Spec.Backend.Type != environmentsv1.BackendGitHub {
			all = append(all, e.summary(a.Rollout, candidates, bypassed))
		}
	}
	return all
}

func (e Environment) summary(r Rollout, candidates []v1alpha1.VersionInfo, bypassed string) v1alpha1.RolloutGateStatusSummary {
	passing, proven, wanted := true, []string{}, map[string]bool{}
	for i := range candidates {
		if e.holds(r, candidates[i]) == nil {
			proven = append(proven, candidates[i].Tag)
			wanted[candidates[i].Tag] = true
		}
	}
	return v1alpha1.RolloutGateStatusSummary{
		Name: "environment/" + e.Name, Passing: &passing, AllowedVersions: releases.ListedVersions(proven, wanted),
		Message:     fmt.Sprintf("lets %d of %s through", len(proven), verdict.Count(len(candidates), "candidate")),
		BypassGates: bypassed != "" && e.isBypassed(r, bypassed),
	}
}

// opposed returns the holds of the upstreams that are Parallel, or of those that are not,
// and how many they are. A type that is not known counts as After, which holds more.
func (e Environment) opposed(r Rollout, release v1alpha1.VersionInfo, parallel bool) (holds []verdict.Hold, asked int) {
	for _, u := range e.Upstreams {
		if (u.Type == environmentsv1.Parallel) != parallel {
			continue
		}
		asked++
		if hold := e.judge(r, u, release); hold != nil {
			holds = append(holds, *hold)
		}
	}
	return holds, asked
}

// IsLeftBehind reports whether an upstream runs a newer release and has not proven this
// one, so that there is nothing to wait for.
func (a Asked) IsLeftBehind(release v1alpha1.VersionInfo) bool {
	return slices.ContainsFunc(a.Environments, func(e Environment) bool {
		asked, left := 0, 0
		for _, u := range e.Upstreams {
			if u.Type == environmentsv1.Parallel {
				continue
			}
			asked++
			if hold := e.judge(a.Rollout, u, release); hold != nil && u.isPast(a.Rollout, release) && slices.Contains(neverProven, hold.Reason) {
				left++
			}
		}
		if e.Spec.Availability == environmentsv1.OneOfUpstreams {
			return asked > 0 && left == asked
		}
		return left > 0
	})
}

// judge returns what one upstream has against a release.
func (e Environment) judge(r Rollout, u Upstream, release v1alpha1.VersionInfo) *verdict.Hold {
	if u.Problem != nil {
		return unknown(u.Problem.Message)
	}
	said, unrecognized := e.recognize(u, release)
	if unrecognized != nil {
		return unrecognized
	}
	if hold := u.rejects(said, release); hold != nil || u.Type == environmentsv1.Parallel {
		return hold
	}
	return e.unproven(r, u, said, release)
}

// rejects returns the hold on a release that failed in the upstream, or that the upstream
// went back from.
func (u Upstream) rejects(said *environmentsv1.Release, release v1alpha1.VersionInfo) *verdict.Hold {
	switch {
	case said == nil:
		return nil
	case said.State == v1alpha1.BakeFailed:
		return u.hold(environmentsv1.UpstreamFailedReason, "%s failed in %s%s", release.Tag, u.Environment, because(said.Message))
	case said.Withdrawn != "" && !said.State.Running():
		return u.hold(environmentsv1.UpstreamWithdrawnReason, "%s no longer counts in %s, which %s", release.Tag, u.Environment, said.Withdrawn)
	}
	return nil
}

// unproven returns what a release still lacks in the upstream.
func (e Environment) unproven(r Rollout, u Upstream, said *environmentsv1.Release, release v1alpha1.VersionInfo) *verdict.Hold {
	switch {
	case said == nil:
		return u.hasNothing(r, release)
	case e.Spec.Selection == environmentsv1.SelectCurrent && !said.Current:
		return u.hold(environmentsv1.UpstreamSkippedReason, "%s has left %s%s, and spec.selection of Environment %s takes only what runs there",
			u.Environment, release.Tag, u.instead(), e.Name)
	}
	return u.unfinished(r, said, release)
}

// recognize returns what the upstream says of the same release; nil if it says nothing.
// The hold is set if it cannot be known which one that is. A tag is never enough: it may
// be another image there. A cancelled promotion says nothing.
func (e Environment) recognize(u Upstream, release v1alpha1.VersionInfo) (*environmentsv1.Release, *verdict.Hold) {
	name, own, of := "digest", releases.OrEmpty(release.Digest), func(r environmentsv1.Release) string { return r.Digest }
	remedy := "set spec.digestReflectionPolicy of the ImagePolicy"
	if e.Spec.MatchBy == environmentsv1.MatchByRevision {
		name, own, of = "revision", releases.OrEmpty(release.Revision), func(r environmentsv1.Release) string { return r.Revision }
		remedy = "label the image with org.opencontainers.image.revision"
	}
	if own == "" {
		return nil, u.hold(environmentsv1.UpstreamUnknownReason, "the %s of %s is not known here: %s", name, release.Tag, remedy)
	}
	for i := range u.Releases {
		if of(u.Releases[i]) == own && u.Releases[i].State != v1alpha1.BakeCancelled {
			return &u.Releases[i], nil
		}
	}
	for i := range u.Releases {
		if u.Releases[i].Tag == release.Tag && of(u.Releases[i]) == "" {
			return nil, u.hold(environmentsv1.UpstreamUnknownReason, "the %s of %s is not known in %s: there, %s", name, release.Tag, u.Environment, remedy)
		}
	}
	return nil, nil
}

// hasNothing returns the hold on a release that the upstream has never deployed.
func (u Upstream) hasNothing(r Rollout, release v1alpha1.VersionInfo) *verdict.Hold {
	switch runs := u.runs(); {
	case runs == nil:
		return u.hold(environmentsv1.UpstreamPendingReason, "waits for %s, which has no release yet", u.Environment)
	case runs.Tag == release.Tag:
		return u.hold(environmentsv1.UpstreamPendingReason, "waits for %s, which runs another image by the tag %s", u.Environment, runs.Tag)
	case u.isPast(r, release):
		return u.hold(environmentsv1.UpstreamSkippedReason, "%s skipped %s for %s", u.Environment, release.Tag, runs.Tag)
	default:
		return u.hold(environmentsv1.UpstreamPendingReason, "waits for %s, which runs %s", u.Environment, runs.Tag)
	}
}

// unfinished returns what a release that the upstream has deployed still lacks.
func (u Upstream) unfinished(r Rollout, said *environmentsv1.Release, release v1alpha1.VersionInfo) *verdict.Hold {
	switch {
	case said.State == v1alpha1.BakeDeploying:
		return u.hold(environmentsv1.UpstreamPendingReason, "waits for %s: Flux applies it there%s", u.Environment, period(said))
	case said.State != v1alpha1.BakeSucceeded:
		return u.baking(r, said)
	case said.Current && said.Unhealthy != "":
		return u.hold(environmentsv1.UpstreamPendingReason, "waits for %s, where it is unhealthy: %s", u.Environment, said.Unhealthy)
	case !said.Evidence.AtLeast(u.MinimumEvidence):
		return u.lacksEvidence(said, release)
	}
	return u.soaking(r, said, release)
}

// lacksEvidence returns the hold on a release whose success in the upstream stands on less
// than it must.
func (u Upstream) lacksEvidence(said *environmentsv1.Release, release v1alpha1.VersionInfo) *verdict.Hold {
	lacks, reason := fmt.Sprintf("%s has proven %s only by evidence %s, and spec.upstreams asks for %s",
		u.Environment, release.Tag, cmp.Or(said.Evidence, environmentsv1.EvidenceApplied), u.MinimumEvidence), environmentsv1.UpstreamPendingReason
	if said.Evidence == environmentsv1.EvidenceNone {
		lacks = fmt.Sprintf("%s has not deployed %s: no Flux object there is annotated with its Rollout", u.Environment, release.Tag)
	}
	if !said.Current {
		reason = environmentsv1.UpstreamSkippedReason
	}
	return u.hold(reason, "%s", lacks)
}

// outcomeWithin is how long after the end of a bake its outcome should be known here.
const outcomeWithin = 5 * time.Minute

// baking returns the hold on a release that bakes in the upstream. If no outcome follows,
// it says so. Only the length of the bake counts for that: its end is a time of another
// clock.
func (u Upstream) baking(r Rollout, said *environmentsv1.Release) *verdict.Hold {
	hold := u.hold(environmentsv1.UpstreamPendingReason, "waits for %s: it bakes there%s", u.Environment, period(said))
	if u.Seen.IsZero() || said.Since == nil || said.Until == nil {
		return hold
	}
	length := min(max(0, said.Until.Sub(said.Since.Time)), longestWait)
	if late := verdict.Earlier(u.Seen.Add(length+outcomeWithin), u.Heard(said, u.Seen)); r.Now.Before(late) {
		hold.Changes = late
	} else {
		hold.Message += u.silent()
	}
	return hold
}

// silent says since when nothing is known, as the end of a message.
func (u Upstream) silent() string {
	return fmt.Sprintf("; %s has not reported since %s", u.Environment, verdict.Clock(u.Seen))
}

// longestWait is how long the outcome of a bake is waited for in silence, however long a
// report says that it takes.
const longestWait = 10 * 365 * 24 * time.Hour

// soaking returns the hold on a release that was not healthy for long enough. Time goes
// on for a release only while it is current there: what was measured when it was left is
// all that it gets. A soak of an earlier promotion counts by itself: two are not added up.
func (u Upstream) soaking(r Rollout, said *environmentsv1.Release, release v1alpha1.VersionInfo) *verdict.Hold {
	soak, soaked := duration(u.SoakTime), duration(said.Soaked)
	switch left := soak - soaked; {
	case said.Longest() >= soak:
		return nil
	case !said.Current:
		return u.hold(environmentsv1.UpstreamSkippedReason, "%s left %s%s after %s of the soak time of %s",
			u.Environment, release.Tag, u.instead(), said.Longest().Truncate(time.Second), soak)
	case u.Seen.IsZero():
		return u.hold(environmentsv1.UpstreamSoakingReason, "soaks in %s for %s", u.Environment, soak)
	default:
		return u.counting(r, said, u.Seen.Add(left))
	}
}

// counting returns the hold on a release that has been healthy for long enough at a time,
// if that is heard of the upstream until then. In silence, time does not count.
func (u Upstream) counting(r Rollout, said *environmentsv1.Release, until time.Time) *verdict.Hold {
	heard := u.Heard(said, u.Seen)
	silent := !heard.IsZero() && heard.Before(until)
	switch {
	case silent && !r.Now.Before(heard):
		return u.hold(environmentsv1.UpstreamPendingReason, "soaks in %s for %s%s", u.Environment, u.SoakTime.Duration, u.silent())
	case !r.Now.Before(until):
		return nil
	}
	until = verdict.WholeSecond(until)
	hold := u.hold(environmentsv1.UpstreamSoakingReason, "soaks in %s for %s, until %s", u.Environment, u.SoakTime.Duration, verdict.Clock(until))
	if hold.Until = until; silent {
		hold.Changes = heard
	}
	return hold
}

// runs returns what the upstream runs; nil if it has no release.
func (u Upstream) runs() *environmentsv1.Release {
	at := slices.IndexFunc(u.Releases, func(r environmentsv1.Release) bool { return r.Current })
	if at < 0 {
		return nil
	}
	return &u.Releases[at]
}

// instead returns what the upstream runs, as the end of a sentence; empty if it has lost
// its history, and what it runs is not known.
func (u Upstream) instead() string {
	if runs := u.runs(); runs != nil {
		return " for " + runs.Tag
	}
	return ""
}

// isPast reports whether the upstream runs a release that is newer than this one.
func (u Upstream) isPast(r Rollout, release v1alpha1.VersionInfo) bool {
	runs := u.runs()
	if runs == nil {
		return false
	}
	result, ok := r.Order.Compare(runs.Tag, release.Tag)
	return ok && result > 0
}

// ProvenSince returns since when every upstream of type After has proven a release, by
// their own clocks. It is zero if one of them has not, or if there is none.
func (us Upstreams) ProvenSince(release v1alpha1.VersionInfo) time.Time {
	var last time.Time
	for _, e := range us.Environments {
		for _, u := range e.Upstreams {
			if u.Type == environmentsv1.Parallel {
				continue
			}
			said, _ := e.recognize(u, release)
			if said == nil || said.State != v1alpha1.BakeSucceeded || said.Since == nil {
				return time.Time{}
			}
			if said.Since.After(last) {
				last = said.Since.Time
			}
		}
	}
	return last
}

// Withdrawn returns what an upstream has against the release that runs here: it went back
// from it, or the release has failed there since. It returns nil if there is nothing, or
// if nothing runs here.
func (us Upstreams) Withdrawn(current *v1alpha1.DeploymentHistoryEntry) *verdict.Hold {
	if current == nil {
		return nil
	}
	var holds []verdict.Hold
	for _, e := range us.Environments {
		for _, u := range e.Upstreams {
			said, _ := e.recognize(u, current.Version)
			if hold := u.rejects(said, current.Version); hold != nil {
				holds = append(holds, *hold)
			}
		}
	}
	return allOf(holds)
}

func unknown(problem string) *verdict.Hold {
	return &verdict.Hold{Reason: environmentsv1.UpstreamUnknownReason, Message: problem}
}

func (u Upstream) hold(reason, format string, args ...any) *verdict.Hold {
	return &verdict.Hold{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// period returns since when and until when, by the clock of the upstream.
func period(said *environmentsv1.Release) string {
	text := ""
	if said.Since != nil {
		text += " since " + verdict.Clock(said.Since.Time)
	}
	if said.Until != nil {
		text += ", until " + verdict.Clock(said.Until.Time)
	}
	return text
}

// because returns the reason that an upstream gives, as the end of a sentence.
func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + truncate.Text(message, verdict.LongestComplaint)
}

// allOf returns several holds as one, if each of them must end: it ends with the last of
// them, and the most important gives the reason.
func allOf(holds []verdict.Hold) *verdict.Hold {
	return joined(holds, func(a, b time.Time) bool { return a.IsZero() || !b.IsZero() && a.After(b) }, 0)
}

// oneOf returns several holds as one, if it is enough that one of them ends: it ends with
// the first of them, and the least important gives the reason.
func oneOf(holds []verdict.Hold) *verdict.Hold {
	return joined(holds, func(a, b time.Time) bool { return b.IsZero() || !a.IsZero() && a.Before(b) }, len(holds)-1)
}

// joined joins holds. The one at the index gives the reason, once they are sorted by
// importance. The time counts that prevails over all others.
func joined(holds []verdict.Hold, prevails func(a, b time.Time) bool, index int) *verdict.Hold {
	if len(holds) == 0 {
		return nil
	}
	holds = slices.SortedStableFunc(slices.Values(holds), verdict.ByImportance)
	whole := verdict.Hold{Reason: holds[index].Reason, Until: holds[0].Until}
	var messages []string
	for _, hold := range holds {
		if !slices.Contains(messages, hold.Message) {
			messages = append(messages, hold.Message)
		}
		if prevails(hold.Until, whole.Until) {
			whole.Until = hold.Until
		}
		whole.Changes = verdict.Earlier(whole.Changes, hold.Changes)
	}
	whole.Message = truncate.Join(messages, "; ")
	return &whole
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// Bypassed reports whether a user lets the release go past an Environment that
// would hold it.
func (a Asked) Bypassed(release v1alpha1.VersionInfo) bool {
	for _, e := range a.Environments {
		if e.opposes(a.Rollout, release) && e.isBypassed(a.Rollout, release.Tag) {
			return true
		}
	}
	return false
}

// Unchecked says which upstreams have proven the release without a HealthCheck: Flux
// applied it there, and nothing else was checked. It is empty if there are none.
func (us Upstreams) Unchecked(release v1alpha1.VersionInfo) string {
	var names []string
	for _, e := range us.Environments {
		for _, u := range e.Upstreams {
			said, _ := e.recognize(u, release)
			applied := said != nil && said.State == v1alpha1.BakeSucceeded && said.Evidence == environmentsv1.EvidenceApplied
			if u.Type != environmentsv1.Parallel && applied && !slices.Contains(names, u.Environment) {
				names = append(names, u.Environment)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; no HealthCheck in " + truncate.List(names)
}

// opposes reports whether the Environment holds the release, unless it is bypassed.
func (e Environment) opposes(r Rollout, release v1alpha1.VersionInfo) bool {
	return e.isLeftToUsers(r) && r.Promoted != release.Tag || e.holds(r, release) != nil
}

// RefusedBypass explains why an Environment still holds the release that a user lets go
// past the gates; nil if none does.
func (a Asked) RefusedBypass(release v1alpha1.VersionInfo) *verdict.Problem {
	tag := release.Tag
	for _, e := range a.Environments {
		switch {
		case e.isBypassed(a.Rollout, tag) || !e.opposes(a.Rollout, release):
		case e.Spec.Bypass == environmentsv1.BypassDenied:
			return &verdict.Problem{Reason: environmentsv1.BypassDeniedReason, Message: fmt.Sprintf(
				"%s does not let %s past Environment %s: its spec.bypass is Deny", v1alpha1.BypassGatesAnnotation, tag, e.Name)}
		default:
			return &verdict.Problem{Reason: environmentsv1.BypassNeedsReasonReason, Message: fmt.Sprintf(
				"%s lets %s past Environment %s only with a reason: annotate it again, together with %s",
				v1alpha1.BypassGatesAnnotation, tag, e.Name, v1alpha1.DeployMessageAnnotation)}
		}
	}
	return nil
}

// IsPromoted reports whether a user has promoted the release, where an Environment leaves
// that to users.
func (a Asked) IsPromoted(tag string) bool {
	return a.LeavesPromotionsToUsers() && a.Promoted == tag
}

// LeavesPromotionsToUsers reports whether an Environment leaves the next promotion to users.
func (a Asked) LeavesPromotionsToUsers() bool {
	return slices.ContainsFunc(a.Environments, func(e Environment) bool { return e.isLeftToUsers(a.Rollout) })
}

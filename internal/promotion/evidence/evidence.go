// SPDX-License-Identifier: Apache-2.0

// Package evidence knows what HealthChecks prove about a promotion.
package evidence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// What a HealthCheck reports counts for a promotion only if it was reported after the
// release was applied. Clocks of different writers cannot show that. So the controller
// resets the check once the release is applied, and then marks it with the promotion:
//
//	                      mark             status     proof of 1.1.0
//	1.1.0 is applied      1.0.0            Healthy    Unreset
//	1. mark, begun        1.1.0, begun     Healthy    Unreset
//	2. status             1.1.0, begun     Pending    Unreset
//	3. mark, complete     1.1.0            Pending    Undecided
//	its writer reports    1.1.0            Healthy    Proven
//
// Write 1 is needed only if the status has a lastErrorTime. The mark keeps that time: if
// the writer repeats the same error after the reset, it is not a new one. A later one
// makes the check Disproven. After a crash between two writes the check is Unreset, and
// is reset again.

// ResetMessage is the message of a HealthCheck after it was reset. Some writers leave it
// in place, so it must read well next to every status.
const ResetMessage = "waiting for a result since the last release was applied"

// ProofState is what a HealthCheck proves about the current promotion.
type ProofState string

const (
	// Unreset: the result of the check may be about the previous release.
	Unreset ProofState = "Unreset"
	// Undecided: the check was reset, and has not reported anything that counts since then.
	Undecided ProofState = "Undecided"
	// Proven: the check reported Healthy after the reset.
	Proven ProofState = "Proven"
	// Disproven: the check reported an error after the reset.
	Disproven ProofState = "Disproven"
)

// Proof is what one HealthCheck proves.
type Proof struct {
	// Check that gives the proof.
	Check *v1alpha1.HealthCheck
	// State of the proof.
	State ProofState
	// LostSince is since when what was proven is not any more, if that is why the proof is
	// Disproven.
	LostSince time.Time
}

// Proofs are the proofs of all selected checks, in their order.
type Proofs []Proof

// Prove evaluates what each check reports. Only what was reported after the reset for
// this promotion counts. Timestamps of different writers are never compared.
func Prove(checks []v1alpha1.HealthCheck, rollout types.UID, entry *v1alpha1.DeploymentHistoryEntry) Proofs {
	proofs := make(Proofs, 0, len(checks))
	for i := range checks {
		proofs = append(proofs, Proof{Check: &checks[i], State: prove(&checks[i], rollout, entry)})
	}
	return proofs
}

func prove(check *v1alpha1.HealthCheck, rollout types.UID, entry *v1alpha1.DeploymentHistoryEntry) ProofState {
	mark, ok := parseMark(check.Annotations[v1alpha1.ResetAnnotationPrefix+string(rollout)])
	switch {
	case !ok || mark.promotion != PromotionID(entry) || mark.begun:
		return Unreset
	case isAboutAnother(check.Status.Release, &entry.Version):
		return Undecided
	}
	return judgeStatus(check, mark, entry)
}

// judgeStatus evaluates what a check that was reset for the promotion has reported since.
func judgeStatus(check *v1alpha1.HealthCheck, mark mark, entry *v1alpha1.DeploymentHistoryEntry) ProofState {
	errorIsNew := check.Status.LastErrorTime != nil && stamp(check.Status.LastErrorTime) > mark.lastError
	unhealthy := check.Status.Status == v1alpha1.HealthStatusUnhealthy
	errorIsOld := check.Status.LastErrorTime != nil && !errorIsNew
	switch {
	case errorIsNew:
		return Disproven
	case unhealthy && (!errorIsOld || entry.State() == v1alpha1.BakeInProgress):
		return Disproven
	case check.Status.Status == v1alpha1.HealthStatusHealthy:
		return Proven
	}
	return Undecided
}

// ResetMark returns the value of the annotation that records a reset. It contains the
// promotion that the check was reset for, and the lastErrorTime that the reset removed.
// If the same error, or an older one that survived the reset, is written again, the mark
// shows that it is not a new one. Both times come from the same writer.
func ResetMark(entry *v1alpha1.DeploymentHistoryEntry, removed *metav1.Time) string {
	return PromotionID(entry) + "/" + stamp(removed)
}

// BegunMark returns the mark of a reset that has not removed the error yet. It keeps the
// error's time in case the controller dies before the reset is complete.
func BegunMark(entry *v1alpha1.DeploymentHistoryEntry, toRemove *metav1.Time) string {
	return ResetMark(entry, toRemove) + begunSuffix
}

// CompleteMark returns the mark of a complete reset: the contents of a BegunMark for the
// same promotion, or that there was no error to remove.
func CompleteMark(entry *v1alpha1.DeploymentHistoryEntry, begun string) string {
	if m, ok := parseMark(begun); ok && m.begun && m.promotion == PromotionID(entry) {
		return strings.TrimSuffix(begun, begunSuffix)
	}
	return ResetMark(entry, nil)
}

const begunSuffix = "/begun"

type mark struct {
	promotion, lastError string
	begun                bool
}

func parseMark(value string) (mark, bool) {
	value, begun := strings.CutSuffix(value, begunSuffix)
	promotion, lastError, ok := strings.Cut(value, "/")
	return mark{promotion: promotion, lastError: lastError, begun: begun}, ok
}

// PromotionID returns a string that identifies a promotion, or its latest retry. The id
// alone does not identify it: old controllers gave no ids, and after a lost status the
// ids may start at one again.
func PromotionID(entry *v1alpha1.DeploymentHistoryEntry) string {
	id := "at" + stamp(&entry.Timestamp)
	if entry.ID != nil {
		id = strconv.FormatInt(*entry.ID, 10) + id
	}
	if entry.LastRetryTimestamp != nil {
		id += "+" + stamp(entry.LastRetryTimestamp)
	}
	return id
}

func stamp(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Proven reports whether the checks could be read and all of them prove the
// release healthy.
func (h Health) Proven(proofs Proofs) bool {
	return h.Problem == nil && !proofs.Has(Unreset, Undecided, Disproven)
}

// Refused returns, for each check that has not been reset and cannot be reset, the
// reason.
func (h Health) Refused(proofs Proofs) []string {
	var all []string
	for _, check := range proofs.Checks(Unreset) {
		if why := h.Rejected[check.Namespace+"/"+check.Name]; why != "" {
			all = append(all, fmt.Sprintf("HealthCheck %s/%s, which cannot be reset: %s", check.Namespace, check.Name, why))
		}
	}
	return all
}

// Has reports whether a proof is in one of the states.
func (p Proofs) Has(states ...ProofState) bool { return len(p.Indices(states...)) > 0 }

// Indices returns the positions of the proofs in one of the states.
func (p Proofs) Indices(states ...ProofState) []int {
	var all []int
	for i := range p {
		if slices.Contains(states, p[i].State) {
			all = append(all, i)
		}
	}
	return all
}

// Checks returns the HealthChecks whose proofs are in one of the states.
func (p Proofs) Checks(states ...ProofState) []v1alpha1.HealthCheck {
	var all []v1alpha1.HealthCheck
	for _, i := range p.Indices(states...) {
		all = append(all, *p[i].Check)
	}
	return all
}

// Failed returns the same checks, each with what it lacks.
func (p Proofs) Failed(states ...ProofState) []v1alpha1.FailedHealthCheck {
	var all []v1alpha1.FailedHealthCheck
	for _, i := range p.Indices(states...) {
		check := p[i].Check
		message := p[i].complaint()
		all = append(all, v1alpha1.FailedHealthCheck{Name: check.Name, Namespace: check.Namespace, Message: &message})
	}
	return all
}

// complaint describes what the check lacks. It never shows the message that the reset
// left as a cause.
func (p Proof) complaint() string {
	if !p.LostSince.IsZero() {
		return truncate.Text(fmt.Sprintf("not healthy since %s: %s", verdict.Clock(p.LostSince), releases.OrEmpty(p.Check.Status.Message)), verdict.LongestComplaint)
	}
	said := p.Check.Status.Message
	healthy := p.Check.Status.Status == v1alpha1.HealthStatusHealthy
	switch {
	case p.State == Unreset && healthy:
		return "Healthy, but for the previous release"
	case said != nil && *said != "" && *said != ResetMessage:
		return truncate.Text(*said, verdict.LongestComplaint)
	case p.State == Disproven:
		return "reported an error without a message"
	}
	return "has not reported since the release was applied"
}

// Unhealthy returns the checks that report Unhealthy.
func Unhealthy(checks []v1alpha1.HealthCheck) []v1alpha1.HealthCheck {
	return slices.DeleteFunc(slices.Clone(checks), func(c v1alpha1.HealthCheck) bool {
		return c.Status.Status != v1alpha1.HealthStatusUnhealthy
	})
}

// NamesOf returns the names of HealthChecks, or of some of them and the number of the
// others.
func NamesOf(checks []v1alpha1.HealthCheck) string {
	all := make([]string, 0, len(checks))
	for i := range checks {
		all = append(all, "HealthCheck "+checks[i].Namespace+"/"+checks[i].Name)
	}
	return truncate.List(all)
}

// Health contains the selected HealthChecks.
type Health struct {
	// Checks that the Rollout selects, sorted by namespace and name.
	Checks []v1alpha1.HealthCheck
	// Rejected explains why checks cannot be reset: the API server rejected the write. The
	// key is "namespace/name".
	Rejected map[string]string
	// Shared are the checks of what several Rollouts deploy together: they condemn none of
	// the releases. The key is "namespace/name".
	Shared map[string]bool
	// Problem is set if the HealthChecks could not be selected or read.
	Problem *verdict.Problem
}

// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Size limits of the history in a status, in bytes of JSON.
const (
	// historyLimit is the limit of the whole history.
	historyLimit = 48 << 10
	// failedLimit is the limit for the failed HealthChecks of one entry, within historyLimit.
	failedLimit = 6 << 10
	// LongestOfOld is how many characters of a text are kept if its entry does not fit
	// otherwise.
	LongestOfOld = 128
)

// HistoryToLimit cuts a history that does not fit into the status. An entry that does
// not fit first loses its long texts and its failed HealthChecks. If it still does not
// fit, it is dropped, the oldest first. Entries that decide about candidates are dropped
// last: decides says which these are.
func HistoryToLimit(history []v1alpha1.DeploymentHistoryEntry, decides func() []bool) []v1alpha1.DeploymentHistoryEntry {
	if sizeOfHistory(history) <= historyLimit {
		return history
	}
	retained, left := setAside(history, decides())
	kept, full := make([]v1alpha1.DeploymentHistoryEntry, 0, len(history)), false
	for i, entry := range history {
		short := shortEntry(entry)
		if retained[i] {
			left += sizeOfEntry(short)
		}
		full = full || sizeOfEntry(short) > left
		if full && !retained[i] {
			continue
		}
		if full || sizeOfEntry(entry) > left {
			entry = short
		}
		left -= sizeOfEntry(entry)
		kept = append(kept, entry)
	}
	return kept
}

// setAside reserves space for the retained entries without their texts, the newest first.
// It returns which entries have space, and how much is left for the others.
func setAside(history []v1alpha1.DeploymentHistoryEntry, retained []bool) ([]bool, int) {
	left := historyLimit
	for i := range history {
		size := sizeOfEntry(shortEntry(history[i]))
		retained[i] = retained[i] && (i == 0 || size <= left)
		if retained[i] {
			left -= size
		}
	}
	return retained, left
}

// shortEntry returns an entry without the texts that only explain it.
func shortEntry(e v1alpha1.DeploymentHistoryEntry) v1alpha1.DeploymentHistoryEntry {
	e.FailedHealthChecks = nil
	e.Message, e.BakeStatusMessage = shortText(e.Message), shortText(e.BakeStatusMessage)
	e.Cause = v1alpha1.FailureCause(truncate.Text(string(e.Cause), LongestOfOld))
	if len(e.Quarantine) > verdict.LongestName { // no controller has written it, and a part of a name is worth nothing
		e.Quarantine = ""
	}
	if e.Rollback != nil {
		short := *e.Rollback
		short.From = truncate.Text(short.From, LongestOfOld)
		e.Rollback = &short
	}
	e.Approval = shortApproval(e.Approval)
	if e.TriggeredBy != nil {
		e.TriggeredBy = &v1alpha1.TriggeredBy{Kind: e.TriggeredBy.Kind, Name: truncate.Text(e.TriggeredBy.Name, LongestOfOld)}
	}
	return e
}

// shortApproval still says which decisions were used.
func shortApproval(record *v1alpha1.ApprovalRecord) *v1alpha1.ApprovalRecord {
	if record == nil {
		return nil
	}
	short := *record
	short.By = slices.Clone(record.By)
	for i := range short.By {
		by := &short.By[i]
		for _, text := range []*string{&by.Name, &by.Username, &by.Role, &by.Reason} {
			*text = truncate.Text(*text, LongestOfOld)
		}
	}
	return &short
}

func shortText(text *string) *string {
	if text == nil || len(*text) <= LongestOfOld {
		return text
	}
	short := truncate.Text(*text, LongestOfOld)
	return &short
}

func sizeOfHistory(history []v1alpha1.DeploymentHistoryEntry) int {
	size := 0
	for i := range history {
		size += sizeOfEntry(history[i])
	}
	return size
}

// sizeOfEntry returns the size of an entry as if all fixed fields were set. If the
// metadata of its image is not known yet, it counts with its usual size.
func sizeOfEntry(e v1alpha1.DeploymentHistoryEntry) int {
	const frame = len(`{"id":-9223372036854775808,"version":{},"timestamp":"2026-01-01T00:00:00Z","message":"",` +
		`"triggeredBy":{"kind":"System","name":""},"bakeStatus":"InProgress","bakeStatusMessage":"",` +
		`"bakeStartTime":"2026-01-01T00:00:00Z","bakeEndTime":"2026-01-01T00:00:00Z",` +
		`"failedHealthChecks":[],"lastRetryTimestamp":"2026-01-01T00:00:00Z","retryStartTime":"2026-01-01T00:00:00Z"},`)
	r := ranked{VersionInfo: e.Version}
	size := frame + r.tagSize() + r.metadataSize()
	if !HasMetadata(e.Version) {
		size += usualMetadata
	}
	size += sizeOfFailure(e) + sizeOfFacts(e)
	for _, text := range []*string{e.Message, e.BakeStatusMessage} {
		if text != nil {
			size += truncate.Size(*text)
		}
	}
	if e.TriggeredBy != nil {
		size += truncate.Size(e.TriggeredBy.Name)
	}
	for i := range e.FailedHealthChecks {
		size += sizeOfFailed(e.FailedHealthChecks[i])
	}
	return size + sizeOfApproval(e.Approval)
}

// sizeOfApproval returns the size of who has let a promotion go.
func sizeOfApproval(record *v1alpha1.ApprovalRecord) int {
	if record == nil {
		return 0
	}
	size := len(`"approval":{"outcome":"Overridden","gates":[],"by":[]},`)
	for _, gate := range record.Gates {
		size += len(`"",`) + truncate.Size(gate)
	}
	for _, by := range record.By {
		size += len(`{"name":"","uid":"","username":"","role":"","time":"2026-01-01T00:00:00Z","reason":""},`)
		for _, text := range []string{by.Name, string(by.UID), by.Username, by.Role, by.Reason} {
			size += truncate.Size(text)
		}
	}
	return size
}

// sizeOfFailure returns the size of the fields that only failures and rollbacks have.
func sizeOfFailure(e v1alpha1.DeploymentHistoryEntry) int {
	size := 0
	if e.Cause != "" || e.RollbackDue != nil {
		size += len(`"cause":"","rollbackDue":"2026-01-01T00:00:00Z",`) + truncate.Size(string(e.Cause))
	}
	if e.Quarantine != "" {
		size += len(`"quarantine":"",`) + truncate.Size(e.Quarantine)
	}
	if e.Rollback != nil {
		size += len(`"rollback":{"from":"","fromID":-9223372036854775808,"toID":-9223372036854775808},`) + truncate.Size(e.Rollback.From)
	}
	return size
}

// sizeOfFacts returns the size of the fields that the messages follow from, as if all were
// set that every entry may get.
func sizeOfFacts(e v1alpha1.DeploymentHistoryEntry) int {
	const frame = len(`"grounds":"Rollback","lifted":[],"image":"","recovery":"","appliedTime":"2026-01-01T00:00:00Z",` +
		`"provenBy":{"targets":2147483647,"pulledOnly":2147483647,"healthChecks":2147483647},"requestDigest":"0123456789abcdef",`)
	size := frame + truncate.Size(e.Image) + len(e.Recovery)
	for _, hold := range e.Lifted {
		size += len(`"",`) + len(hold)
	}
	return size
}

func sizeOfFailed(f v1alpha1.FailedHealthCheck) int {
	size := len(`{"name":"","namespace":"","message":""},`) + len(f.Name) + len(f.Namespace)
	if f.Message != nil {
		size += truncate.Size(*f.Message)
	}
	return size
}

// FailedToLimit returns as many of the failed HealthChecks as fit into one entry.
func FailedToLimit(failed []v1alpha1.FailedHealthCheck) []v1alpha1.FailedHealthCheck {
	size := 0
	for i := range failed {
		if size += sizeOfFailed(failed[i]); size > failedLimit {
			return slices.Clone(failed[:i])
		}
	}
	return failed
}

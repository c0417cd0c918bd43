// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// What became of an automatic rollback. One that is overdue stays open, and counts once
// more when it ends.
const (
	restored   = "restored"   // it succeeded
	overdue    = "overdue"    // it takes longer than spec.rollback.overdueAfter
	superseded = "superseded" // it ended otherwise, mostly by another promotion
)

// rollback is the last observation of the newest history entry. It is empty if that entry
// is not a rollback.
type rollback struct {
	entry   entry
	overdue bool
}

func rollbackOf(status *v1alpha1.RolloutStatus) rollback {
	if len(status.History) == 0 || !status.History[0].IsRollback() {
		return rollback{}
	}
	c := apimeta.FindStatusCondition(status.Conditions, v1alpha1.RolledBackCondition)
	return rollback{entry: entryOf(&status.History[0]), overdue: c != nil && c.Reason == v1alpha1.RollbackOverdueReason}
}

// rollbacks counts what becomes of automatic rollbacks.
type rollbacks struct{ *prometheus.CounterVec }

func newRollbacks() rollbacks {
	r := rollbacks{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rollout_rollbacks_total",
		Help: "Automatic rollbacks by what became of them; one that is overdue counts again when it ends.",
	}, []string{"result"})}
	for _, result := range []string{restored, overdue, superseded} {
		r.WithLabelValues(result)
	}
	return r
}

// follow counts what has happened to rollbacks since the last call, no matter who wrote it.
func (r rollbacks) follow(last *rollback, status *v1alpha1.RolloutStatus) {
	was, is := *last, rollbackOf(status)
	*last = is
	if len(status.History) == 0 || !was.entry.is(&status.History[0]) {
		r.replaced(was.entry, status.History)
		was = rollback{}
	}
	if is.overdue && !was.overdue {
		r.WithLabelValues(overdue).Inc()
	}
	if !isResult(was.entry.state) {
		r.ended(is.entry.state)
	}
}

// replaced counts the end of a rollback that was the newest promotion and ran. The history
// may no longer contain it.
func (r rollbacks) replaced(was entry, history []v1alpha1.DeploymentHistoryEntry) {
	if !was.state.Running() {
		return
	}
	state := v1alpha1.BakeCancelled
	if i := slices.IndexFunc(history, func(e v1alpha1.DeploymentHistoryEntry) bool { return was.is(&e) }); i >= 0 && history[i].State() == v1alpha1.BakeSucceeded {
		state = v1alpha1.BakeSucceeded
	}
	r.ended(state)
}

// ended counts the end of a rollback. It does nothing if the rollback is still running.
func (r rollbacks) ended(state v1alpha1.BakeStatus) {
	switch {
	case state == v1alpha1.BakeSucceeded:
		r.WithLabelValues(restored).Inc()
	case isResult(state):
		r.WithLabelValues(superseded).Inc()
	}
}

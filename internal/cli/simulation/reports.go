// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
)

// report is what the writer of a HealthCheck will report.
type report struct {
	at     time.Time
	check  string // namespace/name
	status v1alpha1.HealthCheckStatus
}

// reset does what the controller does to a check. Its writer reports again what it has
// reported before. If it has reported nothing, it goes on like that.
func (w *world) reset(check *v1alpha1.HealthCheck) {
	current, before, key := w.in.Rollout.Current(), check.Status, v1alpha1.ResetAnnotationPrefix+string(w.in.Rollout.UID)
	begun := check.Annotations[key]
	if before.LastErrorTime != nil {
		begun = evidence.BegunMark(current, before.LastErrorTime)
	}
	metav1.SetMetaDataAnnotation(&check.ObjectMeta, key, evidence.CompleteMark(current, begun))
	message := evidence.ResetMessage
	check.Status = v1alpha1.HealthCheckStatus{Status: v1alpha1.HealthStatusPending, Message: &message, LastChangeTime: w.second()}
	if before.Status == v1alpha1.HealthStatusHealthy || before.Status == v1alpha1.HealthStatusUnhealthy {
		w.reports = append(w.reports, report{at: w.in.Now.Add(w.reportsAfter), check: nameOf(check), status: before})
	}
}

// report lets the writers of HealthChecks report, if the time has come.
func (w *world) report() {
	isDue := func(r report) bool { return !r.at.After(w.in.Now) }
	for _, due := range w.reports {
		if isDue(due) {
			w.write(due)
		}
	}
	w.reports = slices.DeleteFunc(w.reports, isDue)
}

// write writes a report into its check, unless something else was reported since the
// reset. An error is a new one.
func (w *world) write(r report) {
	i := slices.IndexFunc(w.in.Health.Checks, func(c v1alpha1.HealthCheck) bool { return nameOf(&c) == r.check && isReset(&c) })
	if i < 0 {
		return
	}
	removed := r.status.LastErrorTime
	r.status.LastChangeTime = w.second()
	if r.status.Status == v1alpha1.HealthStatusUnhealthy {
		r.status.LastErrorTime = w.second()
		if removed != nil && !r.status.LastErrorTime.After(removed.Time) {
			r.status.LastErrorTime = &metav1.Time{Time: removed.Add(time.Second)}
		}
	}
	w.in.Health.Checks[i].Status = r.status
}

func isReset(check *v1alpha1.HealthCheck) bool {
	return check.Status.Status == v1alpha1.HealthStatusPending && check.Status.Message != nil && *check.Status.Message == evidence.ResetMessage
}

// second returns the time as the API stores it.
func (w *world) second() *metav1.Time { return &metav1.Time{Time: w.in.Now.Truncate(time.Second)} }

func nameOf(check *v1alpha1.HealthCheck) string { return check.Namespace + "/" + check.Name }

// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// recovery explains why the promotion of this decision cannot fail; nil if it can. The
// release that it replaces is already broken. If this way out were reported as a failure,
// that would only block the next one.
func recovery(in Input, d *Decision) *Note {
	previous := in.Rollout.Current()
	switch unhealthy := Unhealthy(in.Health.Checks); {
	case d.Action == Adopt:
		return nil
	case previous.State() == v1alpha1.BakeFailed:
		return &Note{
			Reason:  v1alpha1.PreviousBakeFailedReason,
			Message: fmt.Sprintf("failure detection is off for %s: it replaces %s, which failed", d.Release.Tag, previous.Version.Tag),
		}
	case previous.IsRollback() && (isOverdue(in) || d.Reason == v1alpha1.TagMovedReason):
		return &Note{
			Reason:  v1alpha1.PreviousBakeFailedReason,
			Message: fmt.Sprintf("failure detection is off for %s: it replaces a rollback to %s that has not succeeded", d.Release.Tag, previous.Version.Tag),
		}
	case d.Manual && len(unhealthy) > 0:
		return &Note{
			Reason:  v1alpha1.DeployedWithUnhealthyHealthChecksReason,
			Message: fmt.Sprintf("failure detection is off for %s: it was promoted manually with %s already Unhealthy", d.Release.Tag, NamesOf(unhealthy)),
		}
	}
	return nil
}

// waived returns the proofs of a promotion that cannot fail: an error only makes it
// wait until the check is Healthy again.
func (p Proofs) waived() Proofs {
	for i := range p {
		if p[i].State != Disproven {
			continue
		}
		p[i].State = Undecided
		if p[i].Check.Status.Status == v1alpha1.HealthStatusHealthy {
			p[i].State = Proven
		}
	}
	return p
}

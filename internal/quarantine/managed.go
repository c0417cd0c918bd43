// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// controllerName is the value of the label of those that the controller creates.
const controllerName = "rollout-controller"

// Labels returns the labels of the ReleaseQuarantine that the controller creates with a
// name.
func Labels(name string) map[string]string {
	digits := name[strings.LastIndex(name, "-")+1:]
	return map[string]string{v1alpha1.QuarantineDigestLabel: digits, v1alpha1.ManagedByLabel: controllerName}
}

// IsManaged reports whether the controller has created a quarantine.
func IsManaged(q metav1.Object) bool { return q.GetLabels()[v1alpha1.ManagedByLabel] == controllerName }

// Counted returns the status of a quarantine as it counts. One that a user has created does
// not end by its status, whatever is written there. One that the controller has created
// ends, also if it dies before it reports the failure, and the Rollout is gone when it is
// back: otherwise that quarantine would hold the release for ever.
func Counted(status v1alpha1.ReleaseQuarantineStatus, managed bool, created time.Time) v1alpha1.ReleaseQuarantineStatus {
	switch {
	case !managed:
		status.Until = nil
	case status.Until == nil:
		status.Until = &metav1.Time{Time: created.Add(ReportedWithin)}
	}
	return status
}

// Parts returns what both kinds of quarantines have in common. They belong to the object. It
// panics if the object is of neither kind.
func Parts(o metav1.Object) (*v1alpha1.ReleaseQuarantineSpec, *v1alpha1.ReleaseQuarantineStatus) {
	if q, ok := o.(*v1alpha1.ClusterReleaseQuarantine); ok {
		return &q.Spec.ReleaseQuarantineSpec, &q.Status
	}
	q := o.(*v1alpha1.ReleaseQuarantine)
	return &q.Spec, &q.Status
}

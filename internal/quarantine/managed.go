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

// Counted returns the status of a quarantine as it counts. Only failures, or the beginning of
// one that the controller has created, give it an end. What else is written there does not.
func Counted(status v1alpha1.ReleaseQuarantineStatus, managed bool, created time.Time) v1alpha1.ReleaseQuarantineStatus {
	switch {
	case managed:
		return Begun(status, created)
	case len(status.Incidents) == 0:
		status.Until = nil
	}
	return status
}

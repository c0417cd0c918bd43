// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// mostCounted is how many failures a quarantine remembers as counted. It is enough for the
// Rollouts of a namespace that fail together, before the first of them reports again.
const mostCounted = 100

// Counts reports whether the strikes include a failure that is listed, or that was listed
// until newer ones took its place. A quarantine of an older controller does not know the
// latter.
func Counts(status *v1alpha1.ReleaseQuarantineStatus, failure v1alpha1.QuarantineIncident) bool {
	return indexOf(status.Incidents, failure) >= 0 || len(status.Counted) > 0 && slices.Contains(status.Counted, key(failure))
}

// counted returns the keys of the failures that are counted, with one more.
func counted(keys []string, failure v1alpha1.QuarantineIncident) []string {
	keys = slices.Insert(keys, 0, key(failure))
	return keys[:min(len(keys), mostCounted)]
}

// key identifies a failure, as [Same] does. It is short, because there are many.
func key(failure v1alpha1.QuarantineIncident) string {
	text := fmt.Sprintf("%s/%d", failure.Rollout.UID, failure.EntryID)
	if retried := failure.LastRetryTimestamp; retried != nil {
		text += fmt.Sprintf("/%d", retried.Unix())
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// isOfAnother reports whether a report is that of another cluster. Whether its signature
// can be verified does not matter: the keys of the other cluster may be unknown here, and
// those who can write to the place need no false report to stop this one. A report with
// this cluster's UID is its own, even if it was signed with an earlier key or names the
// cluster in another way: both can be changed. If one of the two UIDs is not known, only
// the name can tell. A cluster that this one replaces is gone, so its reports are its own.
func isOfAnother(claim report.Claim, own report.Report, replaces string) bool {
	if replaces != "" && claim.ClusterUID == replaces {
		return false
	}
	if claim.ClusterUID != "" && own.ClusterUID != "" {
		return claim.ClusterUID != own.ClusterUID
	}
	return claim.Cluster != own.Cluster
}

func taken(reference string, claim report.Claim, own report.Report) *verdict.Problem {
	const characters = 64
	of := "of another cluster, " + strconv.Quote(truncate.Text(claim.Cluster, characters))
	if claim.Cluster == own.Cluster {
		of = "of another cluster with the same name, " + own.Cluster
	}
	return &verdict.Problem{Reason: environmentsv1.ReportTakenReason, Message: fmt.Sprintf(
		"the report is not published: %s is the report %s: give each cluster a --cluster-name and a spec.backend.project "+
			"of its own; if the other cluster is gone, %s", reference, of, takeOver(claim.ClusterUID))}
}

// clusterUID is what the UID of a cluster looks like. Those who can write to the place
// choose what is there, and users copy it into a command line.
var clusterUID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// IsClusterUID reports whether a text can be the UID of a cluster.
func IsClusterUID(text string) bool { return clusterUID.MatchString(text) }

// takeOver returns what to do about the report of a cluster that is gone.
func takeOver(uid string) string {
	if !IsClusterUID(uid) {
		return "delete that report"
	}
	return "start this controller with --take-over-reports-of=" + uid
}

// isSame reports whether a report that this cluster has stored says the same as what it
// would store now. Since when the current release has been healthy is not in a report. But
// it follows from when the report was made and for how long the release had been healthy
// then: both were measured by the clock of this cluster.
func isSame(stored, own report.Report) bool {
	stored.Releases = slices.Clone(stored.Releases)
	for i := range min(len(stored.Releases), len(own.Releases)) {
		had, has := &stored.Releases[i], &own.Releases[i]
		switch {
		case !had.Current:
		case has.HealthySince == nil:
			if soakOf(had) != soakOf(has) {
				return false
			}
		case had.Soaked != nil:
			had.HealthySince = &metav1.Time{Time: stored.Created.Add(-had.Soaked.Duration)}
			if has.RenewedTime != nil && !stored.Created.Before(has.RenewedTime) {
				had.RenewedTime = has.RenewedTime // it was made after that
			}
		}
	}
	return stored.Digest() == own.Digest()
}

func soakOf(r *environmentsv1.Release) time.Duration {
	if r.Soaked == nil {
		return 0
	}
	return r.Soaked.Duration
}

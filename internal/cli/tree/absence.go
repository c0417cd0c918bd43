// SPDX-License-Identifier: Apache-2.0

package tree

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// absenceBelow says what becomes of an object that does not exist although a Kustomization
// or a HelmRelease has applied it.
func absenceBelow(by client.Object) string {
	const gone = "does not exist, although Flux has applied it: "
	h, isRelease := by.(*helmv2.HelmRelease)
	switch {
	case isDeleted(by):
		return "does not exist: the " + kindOf(by) + " that has applied it is being deleted"
	case isSuspended(by):
		return gone + "Flux creates it again once the " + kindOf(by) + " is resumed"
	case isRelease && h.GetDriftDetection().GetMode() != helmv2.DriftDetectionEnabled:
		return gone + "Flux creates it again at the next upgrade; set spec.driftDetection.mode: enabled on the HelmRelease to have it created before"
	}
	return gone + "Flux creates it again at its next reconciliation"
}

// isDeleted reports whether an object is being deleted.
func isDeleted(o client.Object) bool { return !o.GetDeletionTimestamp().IsZero() }

func kindOf(by client.Object) string {
	if _, ok := by.(*helmv2.HelmRelease); ok {
		return "HelmRelease"
	}
	return "Kustomization"
}

// SPDX-License-Identifier: Apache-2.0

// Package approvals decides which decisions of people count, and whether a release has the
// approvals that its gates ask for. It is pure.
package approvals

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Approvals are what people have said of the releases of a Rollout.
type Approvals struct {
	// Given are the decisions that name the Rollout, in any order.
	Given []v1alpha1.RolloutApproval
	// Identity says whether the names in them are those that the API server knows.
	Identity Identity
	// Requesters are the users who asked for releases, by tag. It has only names that the API
	// server has checked when they asked.
	Requesters map[string]string
	// Problem is set if the decisions could not be read; nil if they could.
	Problem *verdict.Problem
}

// Identity is whether the API server vouches for the names of people.
type Identity struct {
	// Problem says why no decision counts: admission policies are missing or have been
	// changed, and nobody says that names can be trusted. It is nil if decisions count.
	Problem *verdict.Problem
	// Since: decisions count that were created after this time; zero if all do.
	Since time.Time
	// Choosers is true if deploy-user is checked as well, since ChoosersSince.
	Choosers bool
	// ChoosersSince: choices made after this time have verified names.
	ChoosersSince time.Time
}

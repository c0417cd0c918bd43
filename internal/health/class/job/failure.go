// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// failureOf returns the outcome if a request to the API server has failed; nil if it has
// not. It does not quote the error.
func failureOf(err error, verb, resource string) *health.Outcome {
	var failure health.Outcome
	switch {
	case err == nil:
		return nil
	case unreadable.Because(err) != nil:
		failure = health.Invalid(unreadable.Because(err).Error())
	case lacksRight(err):
		failure = health.Invalid(fmt.Sprintf("this controller may not %s %s: give it the ClusterRole health-jobs-role", verb, resource))
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		failure = health.Unobserved(fmt.Sprintf("the API server does not let the controller %s %s: look at the quotas and policies of the namespace, and at the CronJob", verb, resource))
	case apierrors.IsNotFound(err):
		failure = health.Unobserved("the Job was deleted; trying again")
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		failure = health.Unobserved("the API server did not answer in time")
	default:
		failure = health.Unobserved("the API server could not be asked; trying again")
	}
	return &failure
}

// lacksRight reports whether RBAC refuses a request. Quotas and policies refuse with the
// same code, but in other words.
func lacksRight(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ") && strings.Contains(err.Error(), " resource ")
}

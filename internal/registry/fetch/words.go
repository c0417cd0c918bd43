// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// A message is the same after each fetch that fails for the same reason, so that a status
// with it is not written again.

func problemFor(reason, format string, arguments ...any) *verdict.Problem {
	return &verdict.Problem{Reason: reason, Message: truncate.Message(fmt.Sprintf(format, arguments...))}
}

func unreadableBecause(upstream, cause string) *verdict.Problem {
	return problemFor(environmentsv1.UpstreamUnreadableReason, "the report of %s cannot be read: %s", upstream, cause)
}

// unreadable returns why a registry could not be asked, or has no report.
func unreadable(u environmentsv1.Upstream, place registry.Place, err error) *verdict.Problem {
	if errors.Is(err, registry.ErrNotFound) {
		return problemFor(environmentsv1.UpstreamUnreadableReason,
			"there is no report of %s at %s: its Environment publishes it there with backend.type oci and backend.project %s",
			u.Environment, place, u.Repository)
	}
	return unreadableBecause(u.Environment, registry.Cause(err)+advice(err))
}

// advice returns what to do, where the cause does not say it.
func advice(err error) string {
	var answer *transport.Error
	if errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return ": correct the login, or let it read this repository; see spec.backend.secret"
	}
	return ""
}

// refused returns what it means that a report was not accepted.
func refused(u environmentsv1.Upstream, place registry.Place, err error) finding {
	f := finding{cause: err, problem: unreadableBecause(u.Environment, err.Error())}
	var refusal *report.Refusal
	if errors.As(err, &refusal) {
		if remedy := remedyOf(refusal.Reason, u, place); remedy != "" {
			f.problem = problemFor(environmentsv1.UpstreamNotTrustedReason, "what %s says cannot be verified: %s: %s", u.Environment, refusal, remedy)
		}
	}
	return f
}

// remedyOf returns what to do about a report that is not trusted; empty if it can be
// trusted and not be read.
func remedyOf(reason report.Reason, u environmentsv1.Upstream, place registry.Place) string {
	switch reason {
	case report.Untrusted:
		return fmt.Sprintf("add the public key of cluster %s as %s.pub, or find out who else writes to %s", u.Cluster, u.Cluster, place)
	case report.Unsigned:
		return fmt.Sprintf("find out who writes to %s", place)
	case report.OtherSource:
		return fmt.Sprintf("correct spec.upstreams, or find out who writes to %s", place)
	case report.Outdated:
		return fmt.Sprintf("the next report of %s counts again", u.Environment)
	case report.Ahead:
		return fmt.Sprintf("correct the clock of cluster %s; if that was never wrong, replace its key", u.Cluster)
	case report.TooLarge, report.Unreadable, report.NewerFormat:
	}
	return ""
}

func cycle(e *environmentsv1.Environment, u environmentsv1.Upstream) *verdict.Problem {
	return problemFor(environmentsv1.UpstreamCycleReason, "Environment %s comes after itself (%s after %s after %s, by the report of %s): remove one of these upstreams",
		e.Name, e.Spec.Environment, u.Environment, e.Spec.Environment, u.Environment)
}

// problemSince returns the problem. If the report could not be read for now, it says when
// it was read last.
func (f finding) problemSince(read time.Time) *verdict.Problem {
	if f.problem == nil || !f.failed || f.problem.Reason != environmentsv1.UpstreamUnreadableReason || read.IsZero() {
		return f.problem
	}
	return problemFor(f.problem.Reason, "%s (last read at %s UTC)", f.problem.Message, read.UTC().Format("15:04"))
}

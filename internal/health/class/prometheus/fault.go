// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"net/http"
	"slices"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// Faults of an answer.
const (
	errManySeries    = probe.Fault("the query returns several series: aggregate them to one, for example with sum(…) or max(…)")
	errManyBytes     = probe.Fault("the answer of Prometheus has more than 64 KiB: aggregate the query to one series, for example with sum(…) or max(…)")
	errWarnings      = probe.Fault("the answer has warnings, so it may not be complete: run the query in Prometheus to see them")
	errRange         = probe.Fault("the query returns a range of samples: use a function of it, for example max_over_time(…)")
	errHistogram     = probe.Fault("the query returns native histograms: use histogram_quantile, histogram_avg or histogram_count")
	errNotPrometheus = probe.Fault("the answer is not one of Prometheus: check its address, and that the query returns numbers")
)

// types are the types of errors that Prometheus, Thanos and Mimir document. Any other text
// in that place is the server's own.
var types = []prometheusv1.ErrorType{
	prometheusv1.ErrBadData, prometheusv1.ErrTimeout, prometheusv1.ErrCanceled, prometheusv1.ErrExec,
	"internal", "unavailable", "not_found", "not_acceptable", "too_many_requests", "too_large_entry",
}

// answered returns the fault of an answer that is an error. If the status is that of a
// success, the body is not as it should be, or contains an error nonetheless.
func answered(status int, kind prometheusv1.ErrorType) probe.Fault {
	text := fmt.Sprintf("Prometheus answers %d", status)
	if name := http.StatusText(status); name != "" {
		text += " " + name
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return probe.Fault(text + ": check secretRef, and what it permits")
	case status >= 300 && status < 400:
		return probe.Fault(text + ": redirects are not followed, so set the address that it leads to")
	case slices.Contains(types, kind):
		return probe.Fault(text + " (" + string(kind) + ")")
	case status >= 200 && status < 300:
		return errNotPrometheus
	}
	return probe.Fault(text)
}

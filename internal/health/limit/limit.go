// SPDX-License-Identifier: Apache-2.0

// Package limit contains the limits of what a measurement may read. Who asks keeps them, and
// who evaluates an answer relies on them: tenants write what is asked, and all tenants share
// the process. The spec page of HealthChecks and the messages name the same numbers.
package limit

const (
	// Series is how many series an answer of Prometheus may have.
	Series = 100
	// Points is how many points a series may have, and a range. Both ends of a range are
	// points.
	Points = 600
	// Answer is how many bytes an answer of Prometheus may have, after decoding.
	Answer = 4 << 20
	// Body is how many bytes of the body of another response are read, after decoding. The
	// rest is cut.
	Body = 64 << 10
	// Headers is how many bytes the headers of a response may have.
	Headers = 64 << 10
)

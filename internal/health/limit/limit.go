// SPDX-License-Identifier: Apache-2.0

// Package limit contains the limits of what a measurement may read. Clients
// enforce them, and evaluators rely on them: tenants write what is measured, and all tenants share
// the process. The spec page of HealthChecks and the messages name the same numbers.
package limit

const (
	// Answer is how many bytes an answer of Prometheus may have, after decoding. It has one
	// series, or is not used.
	Answer = 64 << 10
	// Body is how many bytes of the body of another response are read, after decoding. The
	// rest is cut.
	Body = 64 << 10
	// Headers is how many bytes the headers of a response may have.
	Headers = 64 << 10
)

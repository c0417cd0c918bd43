// SPDX-License-Identifier: Apache-2.0

package health

// Limits of what a measurement may read. Clients enforce them, and evaluators rely on
// them: tenants write what is measured, and all tenants share the process. The spec page of
// HealthChecks and the messages name the same numbers.
const (
	// MostOfBody is how many bytes of the body of a response are read, after decoding. The
	// rest is cut. A longer answer of Prometheus is not used: it has one series.
	MostOfBody = 64 << 10
	// MostOfHeaders is how many bytes the headers of a response may have.
	MostOfHeaders = 64 << 10
)

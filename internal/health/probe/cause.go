// SPDX-License-Identifier: Apache-2.0

// Package probe sends the requests of HealthChecks. It contains what the classes
// prometheus and http have in common. Nothing that a server writes reaches an outcome,
// except numbers: a HealthCheck must not become a way to read what its author may not.
//
//   - session.go: the connection of one measurement
//   - body.go: limits of what is read
//   - headers.go: headers that a HealthCheck may set
//   - credentials.go: the Secrets of a HealthCheck
//   - own.go: a Secret of the operator
//   - cause.go: why a request failed, in our words
package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// Fault is an error whose text consists of our own words, so that it may be shown.
type Fault string

// Error returns the text.
func (f Fault) Error() string { return string(f) }

// errCondition is shown in place of errors that may quote a response.
const errCondition = Fault("the condition cannot be evaluated for this response: use has() for fields that may be missing")

// ConditionFailed returns what may be shown of the error of a condition. Only the text of
// a Fault may: that of other errors may quote what the condition was applied to.
func ConditionFailed(err error) error {
	var fault Fault
	if errors.As(err, &fault) {
		return fault
	}
	return fmt.Errorf("%w: %w", errCondition, err)
}

// Failed returns the outcome of an error: nothing was observed.
func Failed(err error) health.Outcome { return health.Unobserved(Cause(err)) }

// Cause says in a few words why a measurement failed. As long as the cause is the same, so
// is the text. It contains no address, and nothing that a server has written. The whole
// error is for the log of the controller.
func Cause(err error) string {
	for _, by := range []func(error) string{byUs, byTLS, byNetwork} {
		if text := by(err); text != "" {
			return text
		}
	}
	return "the request failed: see the log of the controller"
}

func byUs(err error) string {
	var fault Fault
	var refused *destination.Refused
	var unread *destination.ReadError
	switch {
	case errors.As(err, &fault):
		return fault.Error()
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &unread):
		return "no request is sent, because this controller cannot read what it needs: see its log"
	case errors.Is(err, destination.ErrNoEndpoint):
		return destination.ErrNoEndpoint.Error()
	case errors.Is(err, ErrTooLarge):
		return ErrTooLarge.Error()
	}
	if problem, ok := health.IsProblem(err); ok {
		return problem.Text
	}
	return ""
}

func byTLS(err error) string {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	var alert *net.OpError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "the server does not speak TLS: use the scheme http"
	case errors.As(err, &authority):
		return "the certificate is signed by an unknown authority: put ca.crt into the Secret of certSecretRef"
	case errors.As(err, &host):
		return "the certificate is for another host"
	case errors.As(err, &verification):
		return "the certificate is not valid"
	case errors.As(err, &alert) && alert.Op == "remote error":
		return "the server refuses TLS with this controller: it may need a client certificate in certSecretRef"
	}
	return ""
}

func byNetwork(err error) string {
	var name *net.DNSError
	var timed net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "the name of the host does not exist"
	case errors.As(err, &name):
		return "the name of the host cannot be resolved"
	case errors.Is(err, context.Canceled):
		return "the measurement was cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return "no answer within the timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused"
	case isAny(err, lost...):
		return "the connection is lost"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to the host"
	}
	return ""
}

// lost contains the errors of a connection that ends before the response.
var lost = []error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF}

func isAny(err error, others ...error) bool {
	return slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) })
}

// IsUnreachable reports whether an error means that nobody answers at the destination: a
// connection that is refused or lost, no answer in time, no such host, or no ready Pod. It
// is false for errors of this side: a resolver that does not answer, a destination that
// may not be asked, TLS, or the end of the controller.
func IsUnreachable(err error) bool {
	var name *net.DNSError
	if errors.As(err, &name) {
		return name.IsNotFound
	}
	var timed net.Error
	switch {
	case errors.Is(err, context.Canceled), isRefused(err):
		return false
	case errors.Is(err, destination.ErrNoEndpoint), errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), isAny(err, lost...):
		return true
	}
	return errors.As(err, &timed) && timed.Timeout()
}

// isRefused reports whether no byte was sent, for a reason that is not the destination's.
func isRefused(err error) bool {
	var refused *destination.Refused
	var unread *destination.ReadError
	_, problem := health.IsProblem(err)
	return problem || errors.As(err, &refused) || errors.As(err, &unread)
}

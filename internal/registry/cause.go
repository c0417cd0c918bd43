// SPDX-License-Identifier: Apache-2.0

package registry

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

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longestCause is the number of characters to which a cause is cut.
const longestCause = 512

// codes are the codes of errors that say more than the status of an answer does.
var codes = []transport.ErrorCode{
	transport.BlobUnknownErrorCode, transport.BlobUploadInvalidErrorCode, transport.BlobUploadUnknownErrorCode,
	transport.DeniedErrorCode, transport.DigestInvalidErrorCode, transport.ManifestBlobUnknownErrorCode,
	transport.ManifestInvalidErrorCode, transport.ManifestUnverifiedErrorCode, transport.NameInvalidErrorCode,
	transport.NameUnknownErrorCode, transport.SizeInvalidErrorCode, transport.TagInvalidErrorCode,
	transport.UnsupportedErrorCode,
}

// Cause says in some words why Pull or Push has failed, for the status of an object. As
// long as the cause is the same, so is the text, without times, addresses or numbers of
// requests: a status that differs after each attempt would be written after each. What a
// registry has written is not part of it. The whole error is for the log.
func Cause(err error) string {
	for _, by := range []func(error) string{byUs, byRegistry, byAPIServer, byTLS, byNetwork} {
		if text := by(err); text != "" {
			return truncate.Text(text, longestCause)
		}
	}
	return "the request failed: see the log of the controller"
}

func byUs(err error) string {
	var busy *Busy
	var refused *destination.Refused
	var unread *destination.ReadError
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &unread):
		return "no request is sent, because this controller cannot read what it needs: see its log"
	case errors.As(err, &busy):
		return (&Busy{Status: busy.Status}).Error() // for how long differs
	case errors.Is(err, ErrNotFound):
		return ErrNotFound.Error()
	case errors.Is(err, errLoggedOut):
		return errLoggedOut.Error()
	case errors.Is(err, ErrLimit):
		return ErrLimit.Error()
	}
	if errors.Is(err, errElsewhere) {
		return errElsewhere.Error()
	}
	for _, kind := range []error{ErrInvalid, ErrNotReport} {
		if errors.Is(err, kind) {
			return innermost(err, func(err error) bool { return errors.Is(err, kind) && err != kind }).Error() //nolint:errorlint // the kind alone says too little
		}
	}
	return ""
}

// byRegistry returns the status of an answer, and its code if it is a known one.
func byRegistry(err error) string {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return ""
	}
	text := fmt.Sprintf("the registry answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	for _, e := range answer.Errors {
		if slices.Contains(codes, e.Code) {
			return text + " (" + string(e.Code) + ")"
		}
	}
	return text
}

// byAPIServer returns why a Secret or another object could not be read, with what was to
// be read.
func byAPIServer(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return innermost(err, func(err error) bool { return errors.As(err, &status) && errors.Unwrap(err) != nil }).Error()
}

func byTLS(err error) string {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the registry answers plain HTTP: if that is intended, set spec.backend.insecure"
	case errors.As(err, &authority):
		return "the certificate of the registry is signed by an unknown authority"
	case errors.As(err, &host):
		return "the certificate of the registry is for another host"
	case errors.As(err, &verification):
		return "the certificate of the registry is not valid"
	}
	return ""
}

func byNetwork(err error) string {
	var name *net.DNSError
	var timed net.Error
	var number syscall.Errno
	switch {
	case errors.As(err, &name):
		return "the name of the registry cannot be resolved"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return "the registry does not answer in time"
	case errors.As(err, &number), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		// A registry that goes away first ends connections, and then refuses them.
		return "the registry cannot be reached"
	}
	return ""
}

// innermost returns what an error wraps, without the words before the part that matters.
func innermost(err error, matters func(error) bool) error {
	for next := errors.Unwrap(err); next != nil && matters(next); next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ours "github.com/fluxrollouts/rollout-controller/internal/registry"
)

func TestCauseIsTheSameAfterEachAttempt(t *testing.T) {
	read := func(err error) error { return fmt.Errorf("store the report r.example.com/a:b: %w", err) }
	requested := func(err error) error { return read(&url.Error{Op: "Get", URL: "https://r.example.com/v2/", Err: err}) }
	dialed := func(err error) error {
		return requested(&net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 51234}, Err: err})
	}
	answer := func(status int, codes ...transport.ErrorCode) error {
		e := &transport.Error{StatusCode: status}
		for _, code := range codes {
			e.Errors = append(e.Errors, transport.Diagnostic{Code: code, Message: "request 8d1f", Detail: "<html>"})
		}
		return read(e)
	}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "promotions")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"busy":                     {read(&ours.Busy{Status: 429, After: 7 * time.Second}), "the registry asks to wait: 429 Too Many Requests"},
		"not there":                {read(fmt.Errorf("%w: %w", ours.ErrNotFound, answer(404))), "the registry does not have it"},
		"no name":                  {read(fmt.Errorf("%w: %w", ours.ErrInvalid, errors.New("no name"))), "cannot be asked for: no name"},
		"another artifact":         {read(fmt.Errorf("%w: it has no layer", ours.ErrNotReport)), "it is not a report: it has no layer"},
		"a long name":              {read(fmt.Errorf("%w: %s", ours.ErrInvalid, strings.Repeat("x", 600))), "cannot be asked for: " + strings.Repeat("x", 319) + " … " + strings.Repeat("x", 169)},
		"refused":                  {answer(403, "X-OWN", transport.DeniedErrorCode), "the registry answers 403 Forbidden (DENIED)"},
		"refused in other words":   {answer(401, "X-OWN"), "the registry answers 401 Unauthorized"},
		"broken":                   {answer(500), "the registry answers 500 Internal Server Error"},
		"no Secret":                {read(fmt.Errorf("read Secret shop/promotions: %w", missing)), `read Secret shop/promotions: secrets "promotions" not found`},
		"no Secret, without words": {missing, `secrets "promotions" not found`},
		"plain HTTP":               {requested(http.ErrSchemeMismatch), "the registry answers plain HTTP: if that is intended, set spec.backend.insecure"},
		"another authority":        {requested(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), "the certificate of the registry is signed by an unknown authority"},
		"another host":             {requested(&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}}}), "the certificate of the registry is for another host"},
		"expired":                  {requested(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{}}), "the certificate of the registry is not valid"},
		"no host":                  {dialed(&net.DNSError{Err: "no such host", Server: "10.0.0.2"}), "the name of the registry cannot be resolved"},
		"slow":                     {requested(context.DeadlineExceeded), "the registry does not answer in time"},
		"slow to connect":          {dialed(syscall.ETIMEDOUT), "the registry does not answer in time"},
		"away":                     {dialed(syscall.ECONNREFUSED), "the registry cannot be reached"},
		"cut off":                  {read(io.ErrUnexpectedEOF), "the registry cannot be reached"},
		"a cloud provider's error": {read(errors.New("RequestID: 8d1f, 17:03:01")), "the request failed: see the log of the controller"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ours.Cause(test.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

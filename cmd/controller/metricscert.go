// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/fluxrollouts/rollout-controller/internal/admission/certificates"
)

// metricsCertificate is what metrics are served under: the certificate in a Secret, from
// which others read whom to trust. As long as that cannot be had it is another one,
// which encrypts, and which nobody can trust.
type metricsCertificate struct {
	secret types.NamespacedName
	alone  func() (*tls.Certificate, error)
	kept   atomic.Pointer[certificates.Keeper]
}

func newMetricsCertificate(secret types.NamespacedName) *metricsCertificate {
	m := &metricsCertificate{secret: secret}
	m.alone = sync.OnceValues(func() (*tls.Certificate, error) {
		pair, err := certificates.Make(m.host(), time.Now())
		if err != nil {
			return nil, fmt.Errorf("make a certificate: %w", err)
		}
		return pair.TLS()
	})
	return m
}

// host is the name that the certificate is for. It is no address: those who read
// metrics have those of all replicas.
func (m *metricsCertificate) host() string { return m.secret.Name + "." + m.secret.Namespace + ".svc" }

func (m *metricsCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if keeper := m.kept.Load(); keeper != nil {
		if certificate, err := keeper.Certificate(); err == nil {
			return certificate, nil
		}
	}
	return m.alone()
}

// registerMetricsCertificate adds what keeps the certificate of the metrics.
func (w wiring) registerMetricsCertificate() error {
	if w.metricsCertificate == nil {
		return nil
	}
	m := w.metricsCertificate
	keeper, err := certificates.NewPublisher(w.GetConfig(), w.GetHTTPClient(), m.host(), m.secret, clock.RealClock{}, w.GetLogger().WithName("certificates"))
	if err != nil {
		return err
	}
	m.kept.Store(keeper)
	return w.Add(keeper) //nolint:wrapcheck // it says what it is about
}

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

// metricsCertificate provides the certificate for serving metrics. It is in a Secret,
// from which clients read the authority to trust. While it is not available, another
// certificate is used. That one allows encryption, but nobody can trust it.
type metricsCertificate struct {
	secret types.NamespacedName
	alone  func() (*tls.Certificate, error)
	kept   atomic.Pointer[certificates.Rotator]
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

// host returns the name that the certificate is for. It is not an address, because
// clients read the metrics at the addresses of all replicas.
func (m *metricsCertificate) host() string { return m.secret.Name + "." + m.secret.Namespace + ".svc" }

func (m *metricsCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if rotator := m.kept.Load(); rotator != nil {
		if certificate, err := rotator.Certificate(); err == nil {
			return certificate, nil
		}
	}
	return m.alone()
}

// registerMetricsCertificate adds the rotator of the metrics certificate.
func (w wiring) registerMetricsCertificate() error {
	if w.metricsCertificate == nil {
		return nil
	}
	m := w.metricsCertificate
	rotator, err := certificates.NewPublisher(w.GetConfig(), w.GetHTTPClient(), m.host(), m.secret, clock.RealClock{}, w.GetLogger().WithName("certificates"))
	if err != nil {
		return err
	}
	m.kept.Store(rotator)
	return w.Add(rotator)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"strings"
	"testing"
)

// An end-to-end test covers the certificate in the Secret.
func TestMetricsAreServedUnderTheNameOfTheSecretBeforeThatIsThere(t *testing.T) {
	address := serveMetrics(t, "--metrics-bind-address=127.0.0.1:0", "--metrics-cert-secret=metrics")
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.ConnectionState().PeerCertificates[0].VerifyHostname("metrics.kuberik-system.svc"); err != nil {
		t.Error(err)
	}
}

func TestCertificateInASecretNeedsANamespace(t *testing.T) {
	_, _, err := parse(t, "", "--metrics-bind-address=:8443", "--metrics-cert-secret=metrics")
	if err == nil || !strings.Contains(err.Error(), "--metrics-cert-secret needs the environment variable RUNTIME_NAMESPACE") {
		t.Errorf("the error is %v", err)
	}
}

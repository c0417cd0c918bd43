// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/admission/certificates"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// The test reads the metrics as the ServiceMonitor configures it for Prometheus.
func TestMetricsAreReadByTheTokenAndTheAuthorityThatAreShipped(t *testing.T) {
	helm(t, "install", manifests.Release, root(manifests.Chart), "--create-namespace", "--wait", "--take-ownership")
	awaitController(t, 1, image+":v0.1.0")
	createScraper(t)
	address, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	process := runServing(t, deployment(), "metrics", address)
	token := awaitData(t, "rollout-controller-metrics-scraper-token", corev1.ServiceAccountTokenKey)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(awaitData(t, "rollout-controller-metrics-certificate", certificates.AuthoritiesKey))
	prometheus := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: authorities, ServerName: "rollout-controller-metrics-certificate." + manifests.Namespace + ".svc",
	}}}
	awaitAnswer(t, prometheus, address, string(token), http.StatusOK)
	awaitAnswer(t, prometheus, address, "", http.StatusUnauthorized)
	stop(t, process)
	helm(t, "uninstall", manifests.Release, "--wait")
	awaitUninstalled(t, false)
}

// createScraper creates the objects that are shipped with the ServiceMonitor.
func createScraper(t *testing.T) {
	t.Helper()
	objects, err := manifests.Template(t.Context(), "--set=monitoring.serviceMonitor.create=true")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if strings.HasPrefix(o.GetName(), "rollout-controller-metrics-scraper") {
			create(t, o)
			t.Cleanup(func() { deleteLater(t, o) })
		}
	}
}

// awaitData waits until a Secret in the controller's namespace has a value for a key.
func awaitData(t *testing.T, name, key string) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	env.Eventually(t, key+" in the Secret "+name, func() (bool, string) {
		err := plane.Client().Get(t.Context(), client.ObjectKey{Namespace: manifests.Namespace, Name: name}, secret)
		return len(secret.Data[key]) > 0, fmt.Sprint(err)
	})
	return secret.Data[key]
}

func awaitAnswer(t *testing.T, as *http.Client, address, token string, want int) {
	t.Helper()
	env.Eventually(t, fmt.Sprintf("the answer %d", want), func() (bool, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := as.Do(request)
		if err != nil {
			return false, err.Error()
		}
		_ = response.Body.Close()
		return response.StatusCode == want, response.Status
	})
}

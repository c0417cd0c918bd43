// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fluxrollouts/rollout-controller/internal/admission"
)

// injections are the annotations with which users let cert-manager write the authorities
// of a configuration.
var injections = []string{
	"cert-manager.io/inject-ca-from",
	"cert-manager.io/inject-ca-from-secret",
	"cert-manager.io/inject-apiserver-ca",
}

// errInjected means that cert-manager decides which authorities the API server trusts.
var errInjected = errors.New("cert-manager provides the authority of the webhook's certificate, so the certificate must come from a file")

// target is where clients look for the server, and which authorities they trust.
type target struct {
	index   int    // index of the webhook in its configuration
	version string // resource version of the configuration
	host    string
	trusted []byte
}

// targetOf finds the webhook in its configuration. It returns an error if cert-manager
// provides the authorities, or if there is no webhook to call.
func targetOf(configuration *admissionv1.MutatingWebhookConfiguration) (target, error) {
	for _, annotation := range injections {
		if configuration.Annotations[annotation] != "" {
			return target{}, errInjected
		}
	}
	for i, w := range configuration.Webhooks {
		if w.Name == admission.WebhookName {
			host, err := Host(w.ClientConfig)
			return target{index: i, version: configuration.ResourceVersion, host: host, trusted: w.ClientConfig.CABundle}, err
		}
	}
	return target{}, fmt.Errorf("MutatingWebhookConfiguration %s has no webhook %s", configuration.Name, admission.WebhookName)
}

// Host returns the name that the API server expects in the certificate.
func Host(called admissionv1.WebhookClientConfig) (string, error) {
	if s := called.Service; s != nil {
		return s.Name + "." + s.Namespace + ".svc", nil
	}
	if called.URL == nil {
		return "", errors.New("the webhook has neither a Service nor a URL")
	}
	parsed, err := url.Parse(*called.URL)
	if err != nil {
		return "", fmt.Errorf("read the webhook's URL: %w", err)
	}
	return parsed.Hostname(), nil
}

// patch returns a JSON patch that only writes the authorities. It fails if the
// configuration has changed.
func (t target) patch(authorities []byte) ([]byte, error) {
	return json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": t.version},
		{"op": "add", "path": fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", t.index), "value": authorities},
	})
}

// SPDX-License-Identifier: Apache-2.0

package admission

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fluxrollouts/rollout-controller/internal/admission/singleobject"
)

// Configuration is the MutatingWebhookConfiguration of this installation. A configuration
// of the same name that is part of another product does not count.
type Configuration struct {
	*singleobject.Object[*admissionv1.MutatingWebhookConfiguration]
}

// Get returns the configuration, and whether there is one. Do not modify it.
func (c Configuration) Get() (*admissionv1.MutatingWebhookConfiguration, bool) {
	configuration, ok := c.Object.Get()
	return configuration, ok && isOurs(configuration)
}

// Webhook returns the webhook in its configuration, or nil if there is none.
func (c Configuration) Webhook() *admissionv1.MutatingWebhook {
	configuration, ok := c.Get()
	if !ok {
		return nil
	}
	for i := range configuration.Webhooks {
		if configuration.Webhooks[i].Name == WebhookName {
			return &configuration.Webhooks[i]
		}
	}
	return nil
}

// isOurs reports whether the object is part of this product, whatever its name is.
func isOurs(o *admissionv1.MutatingWebhookConfiguration) bool { return o.Labels[PartOfLabel] == PartOf }

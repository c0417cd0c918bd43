// SPDX-License-Identifier: Apache-2.0

package admission

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fluxrollouts/rollout-controller/internal/admission/singleobject"
)

// Configuration is the MutatingWebhookConfiguration of this installation. One of the
// same name that is part of another product counts as none.
type Configuration struct {
	*singleobject.Object[*admissionv1.MutatingWebhookConfiguration]
}

// Get returns the configuration, which must not be changed, and whether there
// is one.
func (c Configuration) Get() (*admissionv1.MutatingWebhookConfiguration, bool) {
	configuration, ok := c.Object.Get()
	return configuration, ok && isOurs(configuration)
}

// Webhook finds the webhook in its configuration; it is nil if there is none.
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

// isOurs reports whether the object is of this product, whatever its name is.
func isOurs(o *admissionv1.MutatingWebhookConfiguration) bool { return o.Labels[PartOfLabel] == PartOf }

// SPDX-License-Identifier: Apache-2.0

package admission

import "k8s.io/apimachinery/pkg/types"

// Installation is the name of the installation in config/default.
const Installation = "rollout-controller"

// WebhookName is the name of the webhook within its configuration. The first
// implementation of this API uses the same name.
const WebhookName = "kube-deployment-coordinator.containerinfra.nl"

// otherWebhooks are the names of the MutatingWebhookConfigurations of the first
// implementation of this API, in its chart and in its kustomization.
var otherWebhooks = []string{
	"kube-deployment-coordinator-webhook",
	"kube-deployment-coordinator-kube-deployment-coordinator-webhook",
}

// PartOfLabel names the product that an object is part of. Every object of this
// installation has it with the value PartOf, whatever its name is.
const (
	PartOfLabel = "app.kubernetes.io/part-of"
	PartOf      = "rollout-controller"
)

// Names are the names of the objects that pause Deployments at admission. The roles
// contain these names too: an installation with other names needs other roles.
type Names struct {
	// Policy is the name of the MutatingAdmissionPolicy and of its binding.
	Policy string
	// Webhook is the name of the MutatingWebhookConfiguration.
	Webhook string
	// Certificate is the Secret with the certificate that the webhook serves.
	Certificate types.NamespacedName
}

// NamesOf returns the names for an installation of that name. The Secret is in the
// namespace of the controller.
func NamesOf(installation, namespace string) Names {
	return Names{
		Policy:      installation + "-hold",
		Webhook:     installation + "-webhook",
		Certificate: types.NamespacedName{Namespace: namespace, Name: installation + "-webhook-certificate"},
	}
}

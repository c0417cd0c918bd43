// SPDX-License-Identifier: Apache-2.0

package hold

import "k8s.io/apimachinery/pkg/types"

// Installation is how what config/default installs is called.
const Installation = "rollout-controller"

// WebhookName is the name of the webhook within its configuration. The first
// implementation of this API has the same.
const WebhookName = "kube-deployment-coordinator.containerinfra.nl"

// otherWebhooks are the MutatingWebhookConfigurations of the first implementation
// of this API, as its chart and its kustomization call them.
var otherWebhooks = []string{
	"kube-deployment-coordinator-webhook",
	"kube-deployment-coordinator-kube-deployment-coordinator-webhook",
}

// PartOfLabel says which product an object is part of. What this one installs
// carries it with the value PartOf, whatever its name is.
const (
	PartOfLabel = "app.kubernetes.io/part-of"
	PartOf      = "rollout-controller"
)

// Names are those of the objects by which Deployments are held at admission.
// Whoever installs them under other names has to change the rights as well.
type Names struct {
	// Policy is the name of the MutatingAdmissionPolicy and of its binding.
	Policy string
	// Webhook is the name of the MutatingWebhookConfiguration.
	Webhook string
	// Certificate is the Secret with the certificate that the webhook serves.
	Certificate types.NamespacedName
}

// NamesOf are the names in an installation that is called so; the Secret is in
// the namespace of the controller.
func NamesOf(installation, namespace string) Names {
	return Names{
		Policy:      installation + "-hold",
		Webhook:     installation + "-webhook",
		Certificate: types.NamespacedName{Namespace: namespace, Name: installation + "-webhook-certificate"},
	}
}

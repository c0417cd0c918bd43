// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/admission/singleobject"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingadmissionpolicies;mutatingadmissionpolicybindings,resourceNames=rollout-controller-hold,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=rollout-controller-webhook;kube-deployment-coordinator-webhook;kube-deployment-coordinator-kube-deployment-coordinator-webhook,verbs=get;list;watch

// Installed reports which form of the rule is in force. It watches the objects of the
// policy and of the webhook. An object that it may not read counts as not installed.
type Installed struct {
	names   Names
	policy  *singleobject.Object[*admissionv1.MutatingAdmissionPolicy] // nil if the API server does not serve the kind
	binding *singleobject.Object[*admissionv1.MutatingAdmissionPolicyBinding]
	webhook Configuration
	others  []*singleobject.Object[*admissionv1.MutatingWebhookConfiguration] // one is the webhook's own configuration, if it has that name

	served  bool // whether this process serves the webhook
	changes changes
}

// NewInstalled adds watches of the objects with these names to the manager. It asks the
// API server once whether it serves MutatingAdmissionPolicies. A later change takes
// effect at the next start.
func NewInstalled(mgr ctrl.Manager, names Names) (*Installed, error) {
	clients, err := admissionclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	a := &Installed{names: names, changes: changes{coordinations: mgr.GetClient()}}
	a.changes.situation = a.situation
	registrations := clients.RESTClient()
	a.webhook.Object, err = watch(mgr, a, registrations, "mutatingwebhookconfigurations", names.Webhook, &admissionv1.MutatingWebhookConfiguration{})
	if err != nil {
		return nil, err
	}
	for _, name := range otherWebhooks {
		other := a.webhook.Object
		if name != names.Webhook {
			if other, err = watch(mgr, a, registrations, "mutatingwebhookconfigurations", name, &admissionv1.MutatingWebhookConfiguration{}); err != nil {
				return nil, err
			}
		}
		a.others = append(a.others, other)
	}
	return a, a.watchPolicy(mgr, registrations)
}

// watchPolicy watches the policy if the API server serves the kind.
func (a *Installed) watchPolicy(mgr ctrl.Manager, registrations cache.Getter) error {
	kind := admissionv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy")
	_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("find out whether MutatingAdmissionPolicies are served: %w", err)
	}
	if a.binding, err = watch(mgr, a, registrations, "mutatingadmissionpolicybindings", a.names.Policy, &admissionv1.MutatingAdmissionPolicyBinding{}); err != nil {
		return err
	}
	a.policy, err = watch(mgr, a, registrations, "mutatingadmissionpolicies", a.names.Policy, &admissionv1.MutatingAdmissionPolicy{})
	return err
}

// watch adds a watch to the manager. Its events wake the controllers (see changes).
func watch[T runtime.Object](mgr ctrl.Manager, a *Installed, client cache.Getter, resource, name string, example T) (*singleobject.Object[T], error) {
	object := singleobject.Watch(client, resource, example, types.NamespacedName{Name: name})
	object.OnChange(a.changes.look)
	a.changes.awaited = append(a.changes.awaited, object.Known())
	if err := mgr.Add(object); err != nil {
		return nil, fmt.Errorf("watch %s %s: %w", resource, name, err)
	}
	return object, nil
}

// ServeWebhook returns the configuration with which the API server finds the webhook.
// Call it before the manager starts if this process serves the webhook. Without this
// call, the webhook counts as disabled.
func (a *Installed) ServeWebhook() Configuration {
	a.served = true
	return a.webhook
}

// Mode returns the reason and the message of the condition HoldMode in a namespace.
func (a *Installed) Mode(namespace string) (reason, message string) {
	if policy := a.policyInForce(); policy != nil && covers(policy, namespace) {
		return v1.AdmissionPolicyReason, fmt.Sprintf("the API server pauses Deployments that wait, by MutatingAdmissionPolicy %s", a.names.Policy)
	}
	if webhook := a.webhookInForce(); webhook != nil && covers(webhook, namespace) {
		return v1.AdmissionWebhookReason, fmt.Sprintf("the API server asks the controller which Deployments to pause, by MutatingWebhookConfiguration %s", a.names.Webhook)
	}
	return v1.ControllerOnlyReason, fmt.Sprintf("the controller pauses Deployments once it has seen them: %s, and %s", a.whyNoPolicy(), a.whyNoWebhook())
}

// policyInForce returns the namespaces that the policy covers, or nil if it is not in
// force.
func (a *Installed) policyInForce() *metav1.LabelSelector {
	if a.policy == nil {
		return nil
	}
	policy, defined := a.policy.Get()
	binding, bound := a.binding.Get()
	if !defined || !bound || binding.Spec.PolicyName != a.names.Policy {
		return nil
	}
	if policy.Spec.MatchConstraints == nil || policy.Spec.MatchConstraints.NamespaceSelector == nil {
		return &metav1.LabelSelector{}
	}
	return policy.Spec.MatchConstraints.NamespaceSelector
}

// webhookInForce returns the namespaces that the webhook covers, or nil if it is not in
// force.
func (a *Installed) webhookInForce() *metav1.LabelSelector {
	webhook := a.webhook.Webhook()
	if !a.served || webhook == nil || len(webhook.ClientConfig.CABundle) == 0 {
		return nil
	}
	if webhook.NamespaceSelector == nil {
		return &metav1.LabelSelector{}
	}
	return webhook.NamespaceSelector
}

// covers reports whether a selector of namespaces matches a namespace of this name. Other
// labels of the namespace are not known here and count as matching.
func covers(selector *metav1.LabelSelector, namespace string) bool {
	byName := &metav1.LabelSelector{}
	for _, e := range selector.MatchExpressions {
		if e.Key == corev1.LabelMetadataName {
			byName.MatchExpressions = append(byName.MatchExpressions, e)
		}
	}
	if name, ok := selector.MatchLabels[corev1.LabelMetadataName]; ok {
		byName.MatchLabels = map[string]string{corev1.LabelMetadataName: name}
	}
	names, err := metav1.LabelSelectorAsSelector(byName)
	return err == nil && names.Matches(labels.Set{corev1.LabelMetadataName: namespace})
}

func (a *Installed) whyNoPolicy() string {
	if a.policy == nil {
		return "the API server serves no MutatingAdmissionPolicies"
	}
	if a.policy.Rejected() != nil || a.binding.Rejected() != nil {
		return fmt.Sprintf("MutatingAdmissionPolicy %s or its binding may not be read", a.names.Policy)
	}
	if a.policyInForce() != nil {
		return fmt.Sprintf("MutatingAdmissionPolicy %s leaves out this namespace", a.names.Policy)
	}
	if _, defined := a.policy.Get(); defined {
		return fmt.Sprintf("MutatingAdmissionPolicy %s is not bound", a.names.Policy)
	}
	return fmt.Sprintf("there is no MutatingAdmissionPolicy %s", a.names.Policy)
}

func (a *Installed) whyNoWebhook() string {
	if !a.served {
		return "the controller's webhook is turned off"
	}
	if a.webhook.Rejected() != nil {
		return fmt.Sprintf("MutatingWebhookConfiguration %s may not be read", a.names.Webhook)
	}
	if a.webhookInForce() != nil {
		return fmt.Sprintf("MutatingWebhookConfiguration %s leaves out this namespace", a.names.Webhook)
	}
	if _, ok := a.webhook.Get(); ok {
		return fmt.Sprintf("MutatingWebhookConfiguration %s trusts no certificate yet", a.names.Webhook)
	}
	return fmt.Sprintf("there is no MutatingWebhookConfiguration %s", a.names.Webhook)
}

// Other returns a message if another coordinator is installed. It is empty otherwise.
func (a *Installed) Other() string {
	for _, other := range a.others {
		if configuration, ok := other.Get(); ok && !isOurs(configuration) {
			return fmt.Sprintf("MutatingWebhookConfiguration %s is of another coordinator: uninstall that, or this one", configuration.Name)
		}
	}
	return ""
}

// situation returns everything that Mode and Other depend on.
func (a *Installed) situation() situation {
	return situation{
		policy: metav1.FormatLabelSelector(a.policyInForce()), webhook: metav1.FormatLabelSelector(a.webhookInForce()),
		whyNoPolicy: a.whyNoPolicy(), whyNoWebhook: a.whyNoWebhook(), other: a.Other(),
	}
}

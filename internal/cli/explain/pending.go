// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Pending is a request that has had no effect so far, or that was refused.
type Pending struct {
	// Text is what was asked for, By who says to have asked, and Since when; absent if only
	// the refusal is known.
	Text  string       `json:"text,omitempty"`
	By    string       `json:"by,omitempty"`
	Since *metav1.Time `json:"since,omitempty"`
	// Refused is why the controller does not do it; absent if it may still.
	Refused string `json:"refused,omitempty"`
	// Verb and Args take it back.
	Verb string   `json:"verb,omitempty"`
	Args []string `json:"args,omitempty"`
}

// asks are the annotations that ask for something, in words, and what takes them back.
var asks = []struct {
	key, text, verb string
	args            []string
}{
	{v1alpha1.BypassGatesAnnotation, "let %s past gates and schedules", "promote", []string{"--past-gates", "--withdraw"}},
	{v1alpha1.ForceDeployAnnotation, "let %s past everything", "promote", []string{"--force", "--withdraw"}},
	{v1alpha1.PromoteAnnotation, "promote %s", "promote", []string{"--withdraw"}},
	{v1alpha1.UnblockFailedAnnotation, "let the next release go although the current one failed", "unblock", []string{"--withdraw"}},
}

// PendingOf returns the requests that a Rollout has. since returns when an annotation was set;
// nil if that is not known.
func PendingOf(r *v1alpha1.Rollout, since func(annotation string) *metav1.Time) []Pending {
	var all []Pending
	refused := ""
	if answer := condition(r, v1alpha1.RequestAcceptedCondition); answer.Status == metav1.ConditionFalse {
		refused = answer.Message
	}
	for _, a := range asks {
		value := r.Annotations[a.key]
		if value == "" {
			continue
		}
		p := Pending{Text: strings.ReplaceAll(a.text, "%s", value), Since: since(a.key), Refused: refused, Verb: a.verb, Args: a.args}
		if a.verb == "promote" {
			p.By = r.Annotations[v1alpha1.DeployUserAnnotation]
		}
		all = append(all, p)
	}
	if len(all) == 0 && refused != "" {
		all = append(all, Pending{Refused: refused})
	}
	return all
}

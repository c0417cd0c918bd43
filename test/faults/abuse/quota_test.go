// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"fmt"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// recommended is the quota of docs/guides/multi-tenancy.md, for the kinds of which users
// write the most.
var recommended = []struct {
	count, kib int
	make       func(a abuser, name string, text func(prefix string) map[string]string) client.Object
}{
	{200, 15, func(a abuser, name string, text func(string) map[string]string) client.Object {
		gate := &v1alpha1.RolloutGate{}
		gate.Namespace, gate.Name, gate.Annotations = a.Namespace, name, text("gate.kuberik.com/note-")
		gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: "nobody"}, new(true)
		return gate
	}},
	{100, 30, func(a abuser, name string, text func(string) map[string]string) client.Object {
		check := a.Another(name).HealthCheck()
		check.Annotations = text("healthcheck.kuberik.com/note-")
		return check
	}},
	{50, 240, func(a abuser, name string, text func(string) map[string]string) client.Object {
		rollout := a.Another(name).Rollout()
		rollout.Annotations = text("rollout.kuberik.com/note-")
		return rollout
	}},
	{100, 60, func(a abuser, name string, text func(string) map[string]string) client.Object {
		k := a.suspended(name)
		k.Annotations = text(v1alpha1.SubstituteAnnotationPrefix)
		return k
	}},
	{100, 15, func(a abuser, name string, text func(string) map[string]string) client.Object {
		repository := &sourcev1.OCIRepository{}
		repository.Namespace, repository.Name, repository.Annotations = a.Namespace, name, text(v1alpha1.SubstituteAnnotationPrefix)
		repository.Spec.URL, repository.Spec.Suspend = "oci://registry.example.com/"+name, true
		return repository
	}},
	{100, 15, func(a abuser, name string, text func(string) map[string]string) client.Object {
		policy := a.Another(name).ImagePolicy(">=1.0.0")
		policy.Spec.Suspend, policy.Annotations = true, text(v1alpha1.SubstituteAnnotationPrefix)
		return policy
	}},
}

func TestNamespaceAtItsQuota(t *testing.T) {
	times := 1
	if measures() {
		times = 10
	}
	x, a := begin(t, fmt.Sprintf("has %d times as many objects as the recommended quota allows, each as large as can be read", times)), newAbuser(t)
	made := 0
	for kind, of := range recommended {
		for i := range of.count * times {
			name := fmt.Sprintf("filled-%d-%d", kind, i)
			// Each object has other texts: those that are the same are kept once.
			text := func(prefix string) map[string]string {
				return texts(prefix+strings.ReplaceAll(name, "-", "."), of.kib/2, 1900)
			}
			a.makes(of.make(a, name, text))
			made++
		}
	}
	x.passes(made, "what does not fit is reported by events")
	restarts(x)
}

// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// newest are fields that an older version does not have. Here it is the one before evidence was
// counted.
var newest = map[string][]string{
	"rollouts.kuberik.com": {
		"spec.targetHealth", "status.history[].appliedTime", "status.history[].grounds", "status.history[].image",
		"status.history[].lifted", "status.history[].provenBy", "status.history[].requestDigest", "status.targets[].reason",
	},
	"environments.environments.kuberik.com": {
		"spec.afterBypass", "spec.upstreams[].minimumEvidence", "spec.upstreams[].silence", "status.source",
		"status.releases[].firstID", "status.releases[].renewAfter", "status.releases[].renewedTime",
	},
}

// The older CRDs come first, then the controller of that version, which is the present one here:
// it starts anew, and the API server drops what it writes into fields that it does not have.
func TestOlderVersionIsInstalledForAWhile(t *testing.T) {
	t.Parallel()
	a := alone(t)
	a.asksForBakes()
	for name, fields := range newest {
		a.drops(name, fields...)
	}
	a.prod.Await("what the API server drops", func(*v1alpha1.Rollout) bool {
		prod := a.prod.Environment("")
		a.prod.Read(prod)
		return prod.Spec.Upstreams[0].MinimumEvidence == "" && a.prod.Live().Current().Grounds == ""
	})
	a.restartsController()
	a.publish("1.2.0")
	old := a.staging.AwaitState("1.2.0", v1alpha1.BakeSucceeded)
	if entry := old.Current(); entry.Grounds != "" || entry.ProvenBy != nil {
		t.Errorf("the older version knows the grounds %q and proofs %v", entry.Grounds, entry.ProvenBy)
	}
	a.prod.AwaitCandidate("1.2.0")
	a.page().does("An older version is installed")
	a.restartsController()
	a.asksForBakes()
	a.opens()
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	a.holds("staging has proven 1.2.0 only by evidence Applied, and spec.upstreams asks for Baked")
	a.staysAt("1.1.0")
	a.publish("1.3.0")
	a.prod.AwaitState("1.3.0", v1alpha1.BakeSucceeded)
}

// asksForBakes is what Git has of production, after the fields were lost.
func (a *application) asksForBakes() {
	a.prod.T.Helper()
	prod := a.prod.Environment("")
	env.Eventually(a.prod.T, "a CRD that has minimumEvidence", func() (bool, string) {
		a.prod.Change(prod, func() { prod.Spec.Upstreams[0].MinimumEvidence = environmentsv1.EvidenceBaked })
		return prod.Spec.Upstreams[0].MinimumEvidence != "", ""
	})
}

func (a *application) restartsController() {
	a.prod.T.Helper()
	for _, control := range []string{"0", "1"} {
		if err := controllers[scaled(control)](a.prod.T.Context()); err != nil {
			a.prod.T.Fatal(err)
		}
	}
}

// drops lets a CustomResourceDefinition lose fields.
func (a *application) drops(name string, fields ...string) {
	a.prod.T.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	a.prod.Change(crd, func() {
		for i := range crd.Spec.Versions {
			for _, field := range fields {
				drop(crd.Spec.Versions[i].Schema.OpenAPIV3Schema, strings.Split(field, "."))
			}
		}
	})
}

// drop removes a field from a schema. It also removes the rules of what has the field, because they may refer
// to it.
func drop(s *apiextensionsv1.JSONSchemaProps, path []string) {
	s.XValidations = nil
	name, isList := strings.CutSuffix(path[0], "[]")
	if len(path) == 1 {
		delete(s.Properties, name)
		return
	}
	field := s.Properties[name]
	if isList {
		drop(field.Items.Schema, path[1:])
		return
	}
	drop(&field, path[1:])
	s.Properties[name] = field
}

// SPDX-License-Identifier: Apache-2.0

package bugreport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
)

func TestANameHasTheSameWordEverywhere(t *testing.T) {
	object := func(name, text string) map[string]any {
		return map[string]any{
			"apiVersion": "kuberik.com/v1alpha1", "kind": "Rollout",
			"metadata": map[string]any{"name": name, "namespace": "shop-prod", "labels": map[string]any{"app": name}},
			"spec":     map[string]any{"url": "oci://registry.acme.com/team/" + name, "wantedVersion": "shop"},
			"status":   map[string]any{"history": []any{map[string]any{"message": text, "version": map[string]any{"tag": "shop-1.0.0"}}}},
		}
	}
	content := []map[string]any{object("shop", "Rollout shop-prod/shop waits for shop-db, not for workshop"), object("shop-db", "pulled from registry.acme.com")}
	words := redactionsOf(content, "shop-prod")
	for _, one := range content {
		words.redact(one)
	}
	want := func(name, text string) map[string]any {
		o := object(name, text)
		o["metadata"].(map[string]any)["namespace"] = "name-1"
		o["spec"].(map[string]any)["url"] = "oci://host-3/name-4/" + name
		return o
	}
	if diff := cmp.Diff([]map[string]any{
		want("name-2", "Rollout name-1/name-2 waits for name-5, not for workshop"), want("name-5", "pulled from host-3"),
	}, content); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNothingIsReplacedUnlessItIsAsked(t *testing.T) {
	content := map[string]any{"metadata": map[string]any{"name": "shop"}}
	redactionsOf(nil).redact(content)
	if diff := cmp.Diff(map[string]any{"metadata": map[string]any{"name": "shop"}}, content); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What an Environment has read of another one is recognized by a hash, also after names
// were replaced in it.
func TestHashesOfEnvironmentsAreRightAfterRedaction(t *testing.T) {
	environmentOf := func(name string, status map[string]any) map[string]any {
		return map[string]any{"kind": "Environment", "metadata": map[string]any{"name": name, "namespace": "shop"}, "status": status}
	}
	said := []environmentsv1.Release{{Tag: "1.1.0", Withdrawn: "went back to 1.0.0, by alice@example.com"}}
	reported := []environmentsv1.Release{{Tag: "1.1.0", Message: "HealthCheck shop/smoke"}}
	staging := environmentOf("staging", map[string]any{"releases": []any{map[string]any{"tag": "1.1.0", "withdrawn": said[0].Withdrawn}}})
	prod := environmentOf("prod", map[string]any{"upstreams": []any{
		map[string]any{"environment": "staging", "observedDigest": environment.Digest(said)},
		map[string]any{"environment": "qa", "observedDigest": "sha256:older"},
		map[string]any{"environment": "eu", "sequence": int64(7), "observedDigest": environment.Observed(7, reported), "releases": []any{map[string]any{"tag": "1.1.0", "message": reported[0].Message}}},
	}})
	content := []map[string]any{staging, prod}
	words, hashes := redactionsOf(content), recordsOf(content)
	for _, one := range content {
		words.redact(one)
	}
	recordAgain(content, hashes)
	said[0].Withdrawn = "went back to 1.0.0, by " + words.in("alice@example.com")
	reported[0].Message = "HealthCheck " + words.in("shop") + "/smoke"
	want := []any{
		map[string]any{"environment": words.in("staging"), "observedDigest": environment.Digest(said)},
		map[string]any{"environment": "qa", "observedDigest": "sha256:older"},
		map[string]any{"environment": "eu", "sequence": int64(7), "observedDigest": environment.Observed(7, reported), "releases": []any{map[string]any{"tag": "1.1.0", "message": reported[0].Message}}},
	}
	if diff := cmp.Diff(want, prod["status"].(map[string]any)["upstreams"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(said[0].Withdrawn, "alice") {
		t.Error("the user is still named: " + said[0].Withdrawn)
	}
}

func TestWhatHealthChecksAskIsReplaced(t *testing.T) {
	content := map[string]any{
		"kind": "HealthCheck", "metadata": map[string]any{"name": "smoke"},
		"spec": map[string]any{
			"prometheus": map[string]any{
				"address": "http://mimir.acme.com:9090/tenant", "headers": []any{map[string]any{"name": "X-Scope-OrgID", "value": "acme-shop"}},
			},
			"http": map[string]any{"url": "http://status.acme.com/customers?of=acme", "headers": []any{map[string]any{"name": "X-Key", "value": "acme-key"}}},
		},
		"status": map[string]any{
			"problem":      "spec.http.url: http://status.acme.com:80 is not a destination that HealthChecks may use",
			"measurements": []any{map[string]any{"value": "0.0312"}},
		},
	}
	removePasswords(content)
	redactionsOf([]map[string]any{content}).redact(content)
	text := fmt.Sprint(content)
	if strings.Contains(text, "acme") || strings.Contains(text, "customers") || !strings.Contains(text, "0.0312") || !strings.Contains(text, "http://host-") {
		t.Errorf("it has names, or lacks what is measured: %s", text)
	}
}

func TestWhereReportsAreIsReplaced(t *testing.T) {
	content := map[string]any{
		"spec": map[string]any{
			"upstreams": []any{map[string]any{"repository": "registry.acme.com/promotions/one", "cluster": "acme-eu", "namespace": "shop"}},
			"backend":   map[string]any{"project": "registry.acme.com/promotions/two"},
		},
		"status": map[string]any{
			"upstreams": []any{map[string]any{"source": "shop/acme-eu/shop/shop", "message": "the report of staging in registry.acme.com/promotions/one cannot be read"}},
			"report":    map[string]any{"reference": "registry.acme.com/promotions/two:shop.shop"},
		},
	}
	redactionsOf([]map[string]any{content}).redact(content)
	if text := fmt.Sprint(content); strings.Contains(text, "acme") || strings.Contains(text, "promotions") || strings.Contains(text, "shop") {
		t.Errorf("it still has names: %s", text)
	}
}

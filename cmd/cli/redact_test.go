// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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

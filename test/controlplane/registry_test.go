// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

func TestRegistryOutlivesThePlanesThatShareIt(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	staging := start(t, controlplane.Options{Name: "staging", LogDir: logs})
	prod, err := controlplane.Start(t.Context(), controlplane.Options{Name: "prod", LogDir: logs, Registry: staging.Registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = prod.Stop() })

	if prod.Registry != staging.Registry {
		t.Errorf("production has the registry %s, want %s", prod.Registry.Host(), staging.Registry.Host())
	}
	if prod.Kubeconfig() == staging.Kubeconfig() || prod.RESTConfig().Host == staging.RESTConfig().Host {
		t.Error("both are the same API server")
	}
	staging.create(&corev1.ConfigMap{ObjectMeta: named("here")})
	if err := prod.Client().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "here"}, &corev1.ConfigMap{}); err == nil {
		t.Error("an object of staging is in production, too")
	}
	hasItsName(t, "staging", logs, staging.ControlPlane)
	hasItsName(t, "prod", logs, prod)

	if err := prod.Stop(); err != nil {
		t.Error(err)
	}
	staging.push("1.0.0") // it fails if the registry is gone
}

// hasItsName checks that the logs and the folder of a control plane can be told apart from
// those of others.
func hasItsName(t *testing.T, name, logs string, plane *controlplane.ControlPlane) {
	t.Helper()
	server := plane.Part(parts.APIServer)
	if want := filepath.Join(logs, name+"-kube-apiserver.log"); server.LogFile != want {
		t.Errorf("its log is %s, want %s", server.LogFile, want)
	}
	if want := name + "-kube-apiserver"; server.String() != want {
		t.Errorf("messages call it %s, want %s", server, want)
	}
	if folder := filepath.Base(plane.Dir()); !strings.HasPrefix(folder, "rollout-controlplane-"+name+"-") {
		t.Errorf("its folder is %s", folder)
	}
}

func TestRegistryCountsRequestsOfEachRepository(t *testing.T) {
	registry, err := controlplane.OpenRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.GoAway() })
	for _, repository := range []string{"shop", "promotions/staging"} {
		if _, err := registry.Push(t.Context(), controlplane.Artifact{Repository: repository, Tag: "1.0.0", Files: map[string]string{"a.yaml": "{}"}}); err != nil {
			t.Fatal(err)
		}
	}
	before := registry.RequestsTo("promotions/staging")
	if before["PUT manifests"] != 1 {
		t.Errorf("a push was counted as %v", before)
	}
	if _, err := registry.Digests(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, registry.RequestsTo("promotions/staging")); diff != "" {
		t.Errorf("requests to another repository were counted (-want +got):\n%s", diff)
	}
	if got := registry.RequestsTo("shop"); got["GET tags"] != 1 || got["HEAD manifests"] == 0 {
		t.Errorf("a listing was counted as %v", got)
	}
}

func TestRegistryIsRestoredFromAnOldCopy(t *testing.T) {
	registry, err := controlplane.OpenRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.GoAway() })
	push := func(tag, content string) {
		if _, err := registry.Push(t.Context(), controlplane.Artifact{Repository: "shop", Tag: tag, Files: map[string]string{"a.yaml": content}}); err != nil {
			t.Fatal(err)
		}
	}
	push("1.0.0", "{}")
	old, err := registry.Digests(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	push("1.0.0", "{a: b}")
	push("1.1.0", "{}")
	if err := registry.Restore(t.Context(), "shop", old); err != nil {
		t.Fatal(err)
	}
	now, err := registry.Digests(t.Context(), "shop")
	if diff := cmp.Diff(old, now); diff != "" || err != nil {
		t.Errorf("error %v, tags (-want +got):\n%s", err, diff)
	}
}

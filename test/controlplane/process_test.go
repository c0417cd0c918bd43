// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

func TestAPIServerComesBackWithItsData(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{})
	s.create(&corev1.ConfigMap{ObjectMeta: named("kept")})
	server := s.Part(parts.APIServer)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if s.answers(t) {
		t.Fatal("a killed API server answers")
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(s, &corev1.ConfigMap{ObjectMeta: named("kept")}, "what was stored before", func(*corev1.ConfigMap) bool { return true })

	server.Pause()
	if s.answers(t) {
		t.Error("a paused API server answers")
	}
	server.Resume()
	if !s.answers(t) {
		t.Error("a resumed API server does not answer")
	}
}

func (s *stage) answers(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	clients := kubernetes.NewForConfigOrDie(s.RESTConfig())
	_, err := clients.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	return err == nil
}

func TestRequestsCountsWhatWasAsked(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{})
	before, err := s.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.create(&corev1.ConfigMap{ObjectMeta: named("one")}, &corev1.ConfigMap{ObjectMeta: named("two")})
	watch, err := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().Secrets("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	after, err := s.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := after.Since(before)
	if n := asked[controlplane.Request{Verb: "POST", Resource: "configmaps"}]; n != 2 {
		t.Errorf("counted %d new ConfigMaps; want 2", n)
	}
	if n := asked[controlplane.Request{Verb: "WATCH", Resource: "secrets"}]; n != 1 {
		t.Errorf("counted %d watches of secrets; want 1", n)
	}
}

func TestUserMayDoWhatRBACAllows(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{})
	config, err := s.RESTConfigFor("nobody")
	if err != nil {
		t.Fatal(err)
	}
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if err == nil {
		t.Error("a user without a role lists secrets")
	}
}

func TestRegistryGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{})
	digest := s.push("1.0.0")
	if err := s.Registry.GoAway(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Registry.Digests(t.Context(), "shop"); err == nil {
		t.Error("a registry that is away answers")
	}
	if err := s.Registry.ComeBack(); err != nil {
		t.Fatal(err)
	}
	s.Registry.RequireLogin("me", "secret")
	digests, err := s.Registry.Digests(t.Context(), "shop")
	if err != nil || digests["1.0.0"] != digest {
		t.Errorf("got %v, %v; want 1.0.0 with %s", digests, err, digest)
	}
	if err := s.Registry.Delete(t.Context(), "shop", "1.0.0"); err != nil {
		t.Fatal(err)
	}
	if digests, err := s.Registry.Digests(t.Context(), "shop"); err != nil || len(digests) != 0 {
		t.Errorf("got %v, %v after the only tag was deleted", digests, err)
	}
}

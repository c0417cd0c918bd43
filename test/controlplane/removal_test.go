// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A pod in place of one that is gone is not removed by a request of KWOK that was meant
// for that one. Others remove what they like: the Job controller, pods that have no node.
func TestKWOKRemovesOnlyPodsThatAreDeleted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop() }()
	if err := c.refuseLateRemovals(t.Context()); err != nil {
		t.Fatal(err)
	}
	config, err := c.RESTConfigFor(kwokUser, adminGroup)
	if err != nil {
		t.Fatal(err)
	}
	kwok, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	onNode, pending := canaryPod("on-node"), canaryPod("pending")
	pending.Spec.NodeName = ""
	for _, o := range []*corev1.Pod{onNode, pending} {
		if err := c.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	atOnce := client.GracePeriodSeconds(0)

	for _, o := range []*corev1.Pod{onNode, pending} {
		await(t, "a refusal to remove pod "+o.Name, func() bool {
			return apierrors.IsInvalid(kwok.Delete(t.Context(), o, atOnce, client.DryRunAll))
		})
	}
	for _, o := range []*corev1.Pod{onNode, pending} {
		if err := c.client.Delete(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(onNode), onNode); err != nil || onNode.DeletionTimestamp == nil {
		t.Fatalf("got %v, want a pod that is being deleted", err)
	}
	if err := kwok.Delete(t.Context(), onNode, atOnce); err != nil {
		t.Error(err)
	}
	for _, gone := range []*corev1.Pod{onNode, pending} {
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v, want a pod that is gone", gone.Name, err)
		}
	}
}

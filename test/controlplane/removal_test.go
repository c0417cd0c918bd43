// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A pod in place of one that is gone is not removed by a request that was meant for that
// one.
func TestOnlyPodsThatAreDeletedAreRemovedByName(t *testing.T) {
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
	byName, byUID := canaryPod("by-name"), canaryPod("by-uid")
	for _, o := range []*corev1.Pod{byName, byUID} {
		if err := c.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	atOnce := client.GracePeriodSeconds(0)

	await(t, "a refusal to remove a pod by its name", func() bool {
		return apierrors.IsInvalid(c.client.Delete(t.Context(), byName, atOnce, client.DryRunAll))
	})
	if err := c.client.Delete(t.Context(), byUID, atOnce, client.Preconditions{ResourceVersion: &byUID.ResourceVersion}); !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want a refusal of a request without a UID", err)
	}
	for _, deleted := range []error{
		c.client.Delete(t.Context(), byUID, atOnce, client.Preconditions{UID: &byUID.UID}),
		c.client.Delete(t.Context(), byName),
	} {
		if deleted != nil {
			t.Error(deleted)
		}
	}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(byName), byName); err != nil || byName.DeletionTimestamp == nil {
		t.Fatalf("got %v, want a pod that is being deleted", err)
	}
	if err := c.client.Delete(t.Context(), byName, atOnce); err != nil {
		t.Error(err)
	}
	for _, gone := range []*corev1.Pod{byName, byUID} {
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v, want a pod that is gone", gone.Name, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func event(name, version, kind, object string, change func(*corev1.Event)) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name},
		InvolvedObject: corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: fixture.Namespace, Name: object},
		Type:           corev1.EventTypeNormal, Reason: name, Message: "about " + object,
	}
	change(e)
	return e
}

func TestEventsOfATreeAreMergedByTime(t *testing.T) {
	at := func(d time.Duration) func(*corev1.Event) { return func(e *corev1.Event) { e.LastTimestamp = ago(d) } }
	objects := append(shop(deployment("web")),
		event("Promoted", "kuberik.com/v1alpha1", "Rollout", "shop", at(3*time.Minute)),
		event("Scaled", "apps/v1", "Deployment", "web", func(e *corev1.Event) {
			e.EventTime, e.FirstTimestamp = metav1.NewMicroTime(fixture.Noon.Add(-9*time.Minute)), ago(20*time.Minute)
			e.Series = &corev1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(fixture.Noon.Add(-time.Minute))}
		}),
		event("Applied", "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "shop", func(e *corev1.Event) {
			e.EventTime, e.Count = metav1.NewMicroTime(fixture.Noon.Add(-2*time.Minute)), 2
		}),
		event("Other", "apps/v1", "Deployment", "other", at(0)),
		event("SameName", "v1", "Service", "web", at(0)),
	)
	cluster := clusterOf(t, objects...)
	built := build(t, cluster, running(), tree.Limits{})
	type line struct {
		Ago            time.Duration
		Object, Reason string
		Count          int32
	}
	var got []line
	for _, e := range tree.Events(t.Context(), cluster, built).Items {
		got = append(got, line{fixture.Noon.Sub(e.Time.Time), e.Object.String(), e.Reason, e.Count})
	}
	want := []line{
		{3 * time.Minute, "Rollout/shop", "Promoted", 1},
		{2 * time.Minute, "Kustomization/shop", "Applied", 2},
		{time.Minute, "Deployment/web", "Scaled", 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEventsThatMayNotBeReadAreNamed(t *testing.T) {
	cluster := clusterOf(t, shop(deployment("web"))...)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
	if err := cluster.Fail(&corev1.EventList{}, forbidden); err != nil {
		t.Fatal(err)
	}
	got := tree.Events(t.Context(), cluster, build(t, cluster, running(), tree.Limits{}))
	want := []string{"events of namespace " + fixture.Namespace + ": you may not read it: " + forbidden.Error()}
	if diff := cmp.Diff(want, got.Incomplete); diff != "" || len(got.Items) > 0 {
		t.Errorf("%d events, incomplete (-want +got):\n%s", len(got.Items), diff)
	}
}

// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func eventOfShop(reason, kind string, ago time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: fixture.Namespace, Name: strings.ToLower(reason)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "kuberik.com/v1alpha1", Kind: "Rollout", Namespace: fixture.Namespace, Name: "shop"},
		Type:           kind, Reason: reason, LastTimestamp: metav1.NewTime(noon.Add(-ago)),
	}
}

func TestEventsAreOfTheTypesThatWereNamed(t *testing.T) {
	m := newInMemory(t, fixture.MakeRollout("shop").Obj(), eventOfShop("Promoted", corev1.EventTypeNormal, time.Minute), eventOfShop("BakeFailed", corev1.EventTypeWarning, time.Hour))
	for types, want := range map[string]string{"": "BakeFailed Promoted", "--types=warning": "BakeFailed", "--types=Normal,WARNING": "BakeFailed Promoted"} {
		got := m.run(t, strings.Fields("events shop "+types)...)
		var reasons []string
		for _, line := range strings.Split(strings.TrimSpace(got.Out), "\n")[1:] {
			reasons = append(reasons, strings.Fields(line)[3])
		}
		if strings.Join(reasons, " ") != want {
			t.Errorf("%q: %v, want %s, the newest last", types, got, want)
		}
	}
	if got := m.run(t, "events", "shop", "--types=bad"); got.Code != 1 || !strings.Contains(got.Err, "choose Normal or Warning") {
		t.Errorf("a type that does not exist: %+v", got)
	}
}

func TestEventsGoOnWithThoseThatAreNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newInMemory(t, fixture.MakeRollout("shop").Obj(), eventOfShop("Promoted", corev1.EventTypeNormal, time.Minute))
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			time.Sleep(7 * time.Second)
			if err := m.client.Create(ctx, eventOfShop("BakeFailed", corev1.EventTypeWarning, 0)); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
			stop()
		}()
		got := m.runUntil(ctx, t, "events", "shop", "-w")
		if got.Code != 0 || strings.Count(got.Out, "Promoted") != 1 || strings.Count(got.Out, "BakeFailed") != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

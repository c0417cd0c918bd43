// SPDX-License-Identifier: Apache-2.0

package expectations

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

func object(uid, version string) *v1alpha1.Rollout {
	r := &v1alpha1.Rollout{}
	r.UID, r.ResourceVersion = types.UID(uid), version
	return r
}

func TestCopyThatDoesNotShowAWriteIsBehindIt(t *testing.T) {
	var writes Versions
	writes.Wrote(object("a", "10"))
	for _, look := range []struct {
		uid, version string
		stale        bool
	}{
		{"a", "9", true}, {"b", "9", false}, {"a", "10", false}, {"a", "9", false}, // forgotten after it was seen once
	} {
		if got := writes.Stale(object(look.uid, look.version)); got != look.stale {
			t.Errorf("%s at %s: stale is %t", look.uid, look.version, got)
		}
	}
}

func TestEachCopyOfADeletedObjectIsBehind(t *testing.T) {
	var writes Versions
	gone := writes.ForgetGone()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	without := fake.NewClientBuilder().WithScheme(scheme).Build()
	if err := writes.Delete(t.Context(), without, object("a", "10")); err != nil { // it is gone already
		t.Fatal(err)
	}
	for _, version := range []string{"9", "10", "11", "9"} {
		if !writes.Stale(object("a", version)) {
			t.Errorf("the copy at %s is not stale", version)
		}
	}
	gone.Delete(event.DeleteEvent{Object: object("a", "11")})
	if writes.Len() != 0 {
		t.Error("it is remembered after its event")
	}
}

// An object that is deleted before its next lookup must not stay for ever.
func TestSoManyWritesAreRemembered(t *testing.T) {
	var writes Versions
	for i := range most + 1 {
		writes.Wrote(object(strconv.Itoa(i), "10"))
	}
	if got := writes.Len(); got != most {
		t.Errorf("%d are remembered", got)
	}
	if writes.Stale(object("0", "9")) || !writes.Stale(object("1", "9")) {
		t.Error("it is not the oldest one that was forgotten")
	}
}

func TestDeletedObjectsAreForgotten(t *testing.T) {
	var writes Versions
	gone := writes.ForgetGone()
	writes.Wrote(object("a", "10"))
	writes.Wrote(object("b", "10"))
	if !gone.Create(event.CreateEvent{}) || !gone.Update(event.UpdateEvent{}) || !gone.Generic(event.GenericEvent{}) {
		t.Error("it keeps an event back")
	}
	if !gone.Delete(event.DeleteEvent{Object: object("a", "11")}) {
		t.Error("it keeps a deletion back")
	}
	if writes.Len() != 1 || writes.Stale(object("a", "9")) || !writes.Stale(object("b", "9")) {
		t.Error("not just what was deleted is forgotten")
	}
}

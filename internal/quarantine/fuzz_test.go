// SPDX-License-Identifier: Apache-2.0

package quarantine_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// odd are objects that nobody but a user writes.
var odd = []string{
	`{}`,
	`{"spec":{"until":"0001-01-01T00:00:00Z"},"status":{"until":"9999-12-31T23:59:59Z"}}`,
	`{"spec":{"until":null,"lifted":true},"status":{"phase":"Nonsense","endedAt":"9999-12-31T23:59:59Z"}}`,
	`{"status":{"until":"0001-01-01T00:00:00Z","endedAt":"0001-01-01T00:00:00Z","failures":[{"cause":"Nonsense"},{"time":"9999-12-31T23:59:59Z"}]}}`,
	`{"status":{"failures":[{"entryID":1,"rollout":{"uid":"a"},"time":null},{"entryID":1,"rollout":{"uid":"a"},"time":"2026-03-02T12:00:00Z"}]}}`,
	`{"spec":{"enforce":"Always"},"status":{"until":"2026-03-02T12:00:00.000000001Z","failures":[{},{},{},{},{},{},{},{},{},{},{},{},{}]}}`,
}

// FuzzOddObjects checks what holds of a quarantine whatever it contains: nothing panics, a
// phase ends when Next says, and a failure that is listed is not listed twice.
func FuzzOddObjects(f *testing.F) {
	for _, object := range odd {
		for _, at := range []int64{0, 1, -1 << 40, 1 << 37} {
			f.Add(object, at, int64(1), int64(time.Hour))
		}
	}
	f.Fuzz(func(t *testing.T, object string, at, id, holds int64) {
		var q v1alpha1.ReleaseQuarantine
		if json.Unmarshal([]byte(object), &q) != nil {
			return
		}
		at &= 1<<37 - 1 // the API only allows years of four digits
		now := time.Unix(at, 0).UTC()
		by := holdFor(time.Duration(holds))
		checkSettled(t, &q, now)
		failed := failure("a", id, now)
		status, changed := quarantine.Report(q.Status, failed, by)
		if changed && len(status.Failures) > 10 {
			t.Errorf("%d failures", len(status.Failures))
		}
		if again, changed := quarantine.Report(status, failed, by); changed {
			t.Errorf("a failure is listed twice: %+v", again)
		}
		if wire, err := json.Marshal(status); err != nil || json.Unmarshal(wire, new(v1alpha1.ReleaseQuarantineStatus)) != nil {
			t.Errorf("%+v cannot be stored: %v", status, err)
		}
		q.Status = status
		checkSettled(t, &q, now)
	})
}

// checkSettled checks what follows from an object at a time.
func checkSettled(t *testing.T, q *v1alpha1.ReleaseQuarantine, now time.Time) {
	t.Helper()
	before := *q.DeepCopy()
	settled := quarantine.Settle(&q.Spec, q.Status, 1, now)
	if !reflect.DeepEqual(before, *q) {
		t.Error("Settle modified its input")
	}
	if holds := settled.Phase == v1alpha1.QuarantineHeld; holds != (settled.EndedAt == nil) || holds && q.Spec.Lifted {
		t.Errorf("%s since %v, lifted: %t", settled.Phase, settled.EndedAt, q.Spec.Lifted)
	}
	if again := quarantine.Settle(&q.Spec, settled, 1, now); !reflect.DeepEqual(settled, again) {
		t.Errorf("settled again, it is %+v after %+v", again, settled)
	}
	next := quarantine.Next(&q.Spec, &settled, now)
	if next.IsZero() {
		return
	}
	if !next.After(now) {
		t.Fatalf("it changes at %s, and now it is %s", next, now)
	}
	if phase := quarantine.Phase(&q.Spec, &settled, next.Add(-1)); phase != settled.Phase {
		t.Errorf("it becomes %s before %s", phase, next)
	}
	if phase := quarantine.Phase(&q.Spec, &settled, next); phase != v1alpha1.QuarantineEnded {
		t.Errorf("at %s it is still %s", next, phase)
	}
}

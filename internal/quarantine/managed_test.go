// SPDX-License-Identifier: Apache-2.0

package quarantine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

func TestCounted(t *testing.T) {
	hour, later := &metav1.Time{Time: noon.Add(time.Hour)}, &metav1.Time{Time: noon.Add(99 * time.Hour)}
	for name, test := range map[string]struct {
		until   *metav1.Time
		managed bool
		want    *metav1.Time
	}{
		"failures decide":                {later, true, later},
		"a report that was interrupted":  {nil, true, hour},
		"what a user created has no end": {nil, false, nil},
		"whatever is written there":      {later, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(test.want, quarantine.Counted(v1alpha1.ReleaseQuarantineStatus{Until: test.until}, test.managed, noon).Until); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	for name, want := range map[string]string{"sha256-3f2a9c1d5b7e8f60a1b2": "3f2a9c1d5b7e8f60a1b2", "sha512-b64-00000000000000000000": "00000000000000000000"} {
		q := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Labels: quarantine.Labels(name)}}
		if q.Labels[v1alpha1.QuarantineDigestLabel] != want || !quarantine.IsManaged(q) {
			t.Errorf("%s: %v", name, q.Labels)
		}
	}
	if quarantine.IsManaged(&v1alpha1.ReleaseQuarantine{}) {
		t.Error("nobody says that the controller has created it")
	}
}

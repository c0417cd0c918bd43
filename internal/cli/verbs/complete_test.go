// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestNamesOfQuarantinesAreCompleted(t *testing.T) {
	bad := func(name string, lifted bool) *v1alpha1.ReleaseQuarantine {
		return &v1alpha1.ReleaseQuarantine{
			ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name},
			Spec:       v1alpha1.ReleaseQuarantineSpec{Digest: "sha256:00", Lifted: lifted},
		}
	}
	got := newInMemory(t, bad("one", false), bad("two", true), bad("three", false)).run(t, "__complete", "lift", "")
	if diff := cmp.Diff("one\nthree\n:4\n", got.Out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

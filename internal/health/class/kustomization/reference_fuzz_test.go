// SPDX-License-Identifier: Apache-2.0

package kustomization_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

// FuzzReference verifies that Reference returns a valid name of a Kustomization, in the
// check's own namespace or in the one that is written, or a short error.
func FuzzReference(f *testing.F) {
	for _, value := range []string{
		"", "web", "apps/web", "/", "//", "a/b/c", "../web", "apps/../web", " web", "web\n", "WEB", "web\x00", "\xff", "%s", "${NAME}",
		strings.Repeat("a", 253), strings.Repeat("a", 254), strings.Repeat("\x00", 1000), "kube-system/\u202eweb",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		ref, err := kustomization.Reference(checkWith(v1alpha1.KustomizationAnnotation, value))
		if err != nil {
			if len(err.Error()) > 1024 {
				t.Errorf("%q is refused in %d bytes", value, len(err.Error()))
			}
			return
		}
		if len(validation.NameIsDNSSubdomain(ref.Name, false)) > 0 || len(validation.ValidateNamespaceName(ref.Namespace, false)) > 0 {
			t.Errorf("%q reads as %s, which nothing can be called", value, ref)
		}
		if value != ref.NamespacedName.String() && (value != ref.Name || ref.Namespace != "shop") {
			t.Errorf("%q reads as %s", value, ref)
		}
	})
}

// FuzzInterval verifies that no interval is shorter than five seconds.
func FuzzInterval(f *testing.F) {
	for _, value := range []string{"", "30s", "-1h", "0", "1ns", "9999999h", "NaN", "1e9s", "5", "1h1h1h"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if got := kustomization.Interval(checkWith(v1alpha1.RequeueIntervalAnnotation, value)); got < 5*time.Second {
			t.Errorf("%q is every %s", value, got)
		}
	})
}

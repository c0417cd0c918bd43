// SPDX-License-Identifier: Apache-2.0

package kustomization_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

func checkWith(annotation, value string) *v1alpha1.HealthCheck {
	class := v1alpha1.HealthCheckClassKustomization
	return &v1alpha1.HealthCheck{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", Annotations: map[string]string{annotation: value},
		},
		Spec: v1alpha1.HealthCheckSpec{Class: &class},
	}
}

func TestReferenceNamesAKustomization(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"a name is one of the check's own namespace": {"web", "shop/web"},
		"a namespace may be given":                   {"apps/web", "apps/web"},
		"dots belong to a name":                      {"web.v1", "shop/web.v1"},
		"nothing names nothing":                      {"", ""},
		"a name may not be empty":                    {"apps/", ""},
		"a namespace may not be empty":               {"/web", ""},
		"there are two parts at most":                {"a/b/c", ""},
		"a name is in lower case":                    {"Web", ""},
		"a namespace has no dots":                    {"a.b/web", ""},
		"spaces are no part of a name":               {" web", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := kustomization.Reference(checkWith(v1alpha1.KustomizationAnnotation, tc.value))
			if tc.want == "" {
				g.Expect(err).To(MatchError(ContainSubstring(v1alpha1.KustomizationAnnotation)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.String()).To(Equal("Kustomization " + tc.want))
		})
	}
}

func TestIntervalForWhatCannotBeWatched(t *testing.T) {
	for name, tc := range map[string]struct {
		value string
		want  time.Duration
	}{
		"is 30 seconds unless given":       {"", 30 * time.Second},
		"is what the annotation says":      {"2m", 2 * time.Minute},
		"is 5 seconds at least":            {"1s", 5 * time.Second},
		"is 5 seconds for negative ones":   {"-1h", 5 * time.Second},
		"is the default for what is wrong": {"soon", 30 * time.Second},
		"needs a unit":                     {"10", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			got := kustomization.Interval(checkWith(v1alpha1.RequeueIntervalAnnotation, tc.value))
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

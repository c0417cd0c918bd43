// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// wireKey is the pattern of the annotation's key in this API.
var wireKey = regexp.MustCompile(`(?s)^rollout\.kuberik\.com/substitute\.([^.]+)\.from$`)

// FuzzSubstituteAnnotations checks that keys are read in the form of this API, and that a
// Rollout only has the variables whose annotations name it.
func FuzzSubstituteAnnotations(f *testing.F) {
	const prefix, suffix = "rollout.kuberik.com/substitute.", ".from"
	for _, key := range []string{
		prefix + "VERSION" + suffix, prefix + suffix, prefix + "." + suffix, prefix + "a.b" + suffix, "x" + prefix + "V" + suffix,
		prefix + "V" + suffix + "\n", prefix + "\n" + suffix, prefix + "from", prefix + "\xff" + suffix, prefix + strings.Repeat("V", 300) + suffix,
	} {
		f.Add(key, "shop", "shop")
		f.Add(key, "other", "shop")
		f.Add(key, "", "")
	}
	f.Fuzz(func(t *testing.T, key, value, rollout string) {
		k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}}
		var variables, rollouts []string
		if match := wireKey.FindStringSubmatch(key); match != nil {
			if value == rollout {
				variables = match[1:]
			}
			if value != "" {
				rollouts = []string{value}
			}
		}
		if got := targets.VariablesOf(k, rollout); !slices.Equal(got, variables) {
			t.Errorf("%q: %q gives %s the variables %q, want %q", key, value, rollout, got, variables)
		}
		if got := targets.RolloutsOf(k); !slices.Equal(got, rollouts) {
			t.Errorf("%q: %q names %q, want %q", key, value, got, rollouts)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFailureBegan(t *testing.T) {
	at := func(kind, status, when string) any {
		return map[string]any{"type": kind, "status": status, "lastTransitionTime": when}
	}
	const early, late = "2026-07-06T10:00:00Z", "2026-07-06T11:00:00Z"
	for name, tc := range map[string]struct {
		conditions []any
		want       string
	}{
		"is unknown without conditions":           {nil, ""},
		"is the transition of the only condition": {[]any{at("Ready", "False", early)}, early},
		"is the newest transition":                {[]any{at("A", "True", early), at("B", "False", late), at("C", "True", early)}, late},
		"is that of Stalled where there is one":   {[]any{at("Ready", "False", late), at("Stalled", "True", early)}, early},
		"is not that of a Stalled that is False":  {[]any{at("Ready", "False", late), at("Stalled", "False", early)}, late},
		"is not that of a Stalled without time":   {[]any{at("Ready", "False", late), map[string]any{"type": "Stalled", "status": "True"}}, late},
		"leaves out times that cannot be read":    {[]any{at("Ready", "False", early), at("Other", "False", "yesterday")}, early},
		"leaves out what is no condition":         {[]any{"broken", at("Ready", "False", early)}, early},
		"is unknown when no time can be read":     {[]any{at("Ready", "False", "yesterday")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": tc.conditions}}}
			got := failedSince(object)
			if tc.want == "" {
				g.Expect(got).To(BeZero())
				return
			}
			g.Expect(got.UTC().Format(time.RFC3339)).To(Equal(tc.want))
		})
	}
}

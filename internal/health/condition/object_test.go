// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
)

// ready is an object that has a status.
var ready = map[string]any{
	"metadata": map[string]any{"name": "web", "generation": int64(2)},
	"status":   map[string]any{"phase": "Ready", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
}

func TestObjectIsJudgedByItsFields(t *testing.T) {
	for source, want := range map[string]any{
		"status.phase == 'Ready'":                                 true,
		"metadata.generation > 2":                                 false,
		"status.conditions.exists(c, c.status == 'True')":         true,
		"has(status.observedGeneration)":                          false,
		"status[?'observedGeneration'].orValue(0) == 0":           true,
		"spec.replicas == 1":                                      "it uses a field that does not exist",
		"status.replicas == 1":                                    `it uses the key "replicas", which does not exist`,
		"status.phase":                                            "the result is not true or false",
		"[1]" + strings.Repeat(".map(x, [x, x])", 60) + " == [1]": "it is too expensive: use fewer or smaller lists, or a simpler expression",
	} {
		g := NewWithT(t)
		expression, err := condition.Object("spec.object.current", source)
		g.Expect(err).NotTo(HaveOccurred())
		holds, err := expression.HoldsFor(t.Context(), ready, condition.NewAllowance(1))
		if text, fails := want.(string); fails {
			g.Expect(err).To(MatchError(text), source)
			continue
		}
		g.Expect(err).NotTo(HaveOccurred(), source)
		g.Expect(holds).To(Equal(want), source)
	}
}

func TestObjectExpressionMustBeOne(t *testing.T) {
	for source, want := range map[string]string{
		"status.phase ==":         "spec.object.failed: Syntax error",
		strings.Repeat("x", 2049): "spec.object.failed: it has 2049 characters, and may have 2048",
		"has(status)":             "spec.object.failed: invalid argument to has() macro",
	} {
		_, err := condition.Object("spec.object.failed", source)
		NewWithT(t).Expect(err).To(MatchError(HavePrefix(want)))
	}
}

// One expression is cheap enough, and many evaluations together are not.
func TestAllowanceIsForAllObjects(t *testing.T) {
	g := NewWithT(t)
	expression, err := condition.Object("spec.object.current", "[1,2,3,4,5,6,7,8,9].all(x, [1,2,3,4,5,6,7,8,9].all(y, x + y > 0))")
	g.Expect(err).NotTo(HaveOccurred())
	allowance, times := condition.NewAllowance(1), 0
	for err == nil && times < 100_000 {
		_, err = expression.HoldsFor(t.Context(), ready, allowance)
		times++
	}
	g.Expect(err).To(MatchError(ContainSubstring("too expensive")))
	g.Expect(times).To(BeNumerically("~", 1000, 900))
	_, again := expression.HoldsFor(t.Context(), ready, allowance)
	g.Expect(again).To(Equal(err), "nothing is left")
}

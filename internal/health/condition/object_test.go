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
		"[1]" + strings.Repeat(".map(x, [x, x])", 40) + " == [1]": "it is too expensive: use fewer or smaller lists, or a simpler expression",
	} {
		g := NewWithT(t)
		expression, err := condition.Object("spec.object.current", source)
		g.Expect(err).NotTo(HaveOccurred())
		plan, err := expression.Plan(condition.NewAllowance(1))
		g.Expect(err).NotTo(HaveOccurred())
		holds, err := plan.Holds(t.Context(), ready)
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
		longestOr("a", 501):       "spec.object.failed: it has 1001 values, fields and calls, with those of its macros, and may have 500: use a simpler expression",
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
	plan, err := expression.Plan(condition.NewAllowance(1))
	times := 0
	for err == nil && times < 100_000 {
		_, err = plan.Holds(t.Context(), ready)
		times++
	}
	g.Expect(err).To(MatchError(ContainSubstring("too expensive")))
	g.Expect(times).To(BeNumerically("~", 1000, 900))
	_, again := plan.Holds(t.Context(), ready)
	g.Expect(again).To(Equal(err), "nothing is left")
}

// longestOr returns an expression of many names.
func longestOr(name string, n int) string { return strings.Repeat(name+"||", n-1) + name }

// Plans are work of which an evaluation need not show anything.
func TestPlansUseTheAllowance(t *testing.T) {
	g := NewWithT(t)
	expression, err := condition.Object("spec.object.current", "false && ("+longestOr("a", 240)+")")
	g.Expect(err).NotTo(HaveOccurred())
	allowance := condition.NewAllowance(1)
	before := allowance.Left()
	plan, err := expression.Plan(allowance)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.Holds(t.Context(), ready)).To(BeFalse())
	g.Expect(before - allowance.Left()).To(BeNumerically("~", 480, 3))
	allowance.Use(before)
	_, err = plan.Holds(t.Context(), ready)
	g.Expect(err).To(MatchError(ContainSubstring("too expensive")))
}

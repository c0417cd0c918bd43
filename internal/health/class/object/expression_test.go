// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"fmt"
	"math"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
)

const (
	isReady   = "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')"
	isStalled = "has(status.conditions) && status.conditions.exists(e, e.type == 'Stalled' && e.status == 'True')"
)

func bare(r *helmv2.HelmRelease) { r.Status = helmv2.HelmReleaseStatus{ObservedGeneration: -1} }

// fluxSays returns what Flux says of an object.
func fluxSays(t *testing.T, expressions kustomize.HealthCheckExpressions, o client.Object) health.Outcome {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := cel.NewStatusEvaluator(&expressions)
	if err != nil {
		t.Fatal(err)
	}
	result, err := evaluator.Evaluate(t.Context(), &unstructured.Unstructured{Object: content})
	switch {
	case err != nil:
		return health.Unobserved("")
	case result.Status == status.CurrentStatus:
		return health.Good("", "")
	case result.Status == status.FailedStatus:
		return health.Bad("", "")
	}
	return health.NoData("", "")
}

func TestExpressionsMeanWhatTheyMeanInFlux(t *testing.T) {
	objects := map[string]client.Object{
		"current": current("web"), "rolling": rolling("web"), "failed": failed("web"), "not ready": release("web", metav1.ConditionFalse),
		"outdated": release("web", metav1.ConditionTrue, outdated), "outdated and failed": release("web", metav1.ConditionTrue, outdated, stalled),
		"without a status":   release("web", metav1.ConditionTrue, bare),
		"without conditions": release("web", metav1.ConditionTrue, func(r *helmv2.HelmRelease) { r.Status.Conditions = nil }),
	}
	for _, expressions := range []kustomize.HealthCheckExpressions{
		{Current: isReady},
		{Current: isReady, Failed: isStalled},
		{Current: isReady, Failed: isStalled, InProgress: "metadata.generation != status.observedGeneration"},
		{Current: "status.conditions[?0].status.orValue('') == 'True'", Failed: "status.conditions[?1].hasValue()"},
		{Current: "data.x == 'y'"},
		{Current: "spec.suspend.orValue(true)"},
		{Current: "metadata.name"},
		{Current: "kind == 'HelmRelease' && apiVersion.startsWith('helm.toolkit.fluxcd.io/') && metadata.generation >= 2.0"},
		{Current: "sets.contains(['True'], status.conditions.map(c, c.status)) && metadata.name.upperAscii() == 'WEB' && base64.encode(b'a') == 'YQ=='"},
		{Current: "timestamp('2026-01-01T10:00:00Z').getHours() == 10 && 'a,b'.split(',').join('-') == 'a-b' && 'a'.replace('a', 'b') == 'b'"},
		{Current: "1", Failed: "true"},
		{Current: "true", Failed: "1 / 0 == 1"},
	} {
		for name, o := range objects {
			t.Run(fmt.Sprintf("%s of %s", expressions.Current, name), func(t *testing.T) {
				spec := named("web")
				spec.Current, spec.Failed, spec.InProgress = expressions.Current, expressions.Failed, expressions.InProgress
				got, want := open(t, o).measure(spec), fluxSays(t, expressions, o)
				NewWithT(t).Expect(got.Result).To(Equal(want.Result), got.Message)
			})
		}
	}
}

func TestExpressionOfAnObjectThatIsBeingDeletedIsNotAsked(t *testing.T) {
	spec := named("web")
	spec.Current = "true"
	c := open(t, release("web", metav1.ConditionTrue, doomed))
	c.Expect(c.measure(spec)).To(Equal(health.NoData("0/1", "HelmRelease web is Terminating")))
}

func TestErrorOfAnExpressionIsInOurWords(t *testing.T) {
	const tooExpensive = "it is too expensive: use fewer or smaller lists, or a simpler expression"
	for source, want := range map[string]string{
		"status.phase == 'Ready'":     `it uses the key "phase", which does not exist`,
		"data.x == 'y'":               "it uses a field that does not exist",
		"metadata.name":               "the result is not true or false",
		"int(metadata.name) == 1":     "it converts a value to a type that it does not fit",
		"metadata.name + 1 == 'web1'": "it uses a value of another type than it expects",
		"metadata.name" + strings.Repeat(".replace('', '"+strings.Repeat("x", 500)+"')", 3) + " == ''": tooExpensive,
		"[1]" + strings.Repeat(".map(x, [x, x])", 40) + " == [2]":                                      tooExpensive,
	} {
		spec := named("web")
		spec.Current = source
		c := open(t, current("web"))
		c.Expect(c.measure(spec)).To(Equal(health.Unobserved("HelmRelease web is Unknown: spec.object.current: "+want)), source)
	}
}

// laborious returns an expression that compares texts. Its loops are too short to be
// interrupted, so a slow machine changes nothing.
func laborious() string {
	return "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5].all(b, '" + strings.Repeat("x", 1500) + "' != ''))"
}

// A failure that is known counts, although other objects cannot be judged.
func TestFailureOutweighsWhatCannotBeJudged(t *testing.T) {
	spec := selected(nil)
	spec.Current, spec.Failed = "status.phase == 'Ready'", isStalled
	c := open(t, current("web"), failed("api"))
	c.Expect(c.measure(spec)).To(Equal(health.Bad("0/2", "HelmRelease api is Failed")))
}

// Each evaluation is cheap enough, but all of them together are not.
func TestWorkIsLimitedForAllObjectsTogether(t *testing.T) {
	spec := selected(nil)
	spec.Current, spec.Failed, spec.InProgress = laborious(), "!"+laborious(), "!"+laborious()
	c := open(t)
	for n := range 1000 {
		c.objects = append(c.objects, current(fmt.Sprintf("web-%03d", n)))
	}
	got := c.measure(spec)
	c.Expect(got.Result).To(Equal(v1alpha1.MeasurementError))
	c.Expect(got.Message).To(HaveSuffix("it is too expensive: use fewer or smaller lists, or a simpler expression"))
	c.objects = c.objects[:100]
	c.Expect(c.measure(spec).Result).To(Equal(v1alpha1.MeasurementGood))
}

// An expression of which nearly nothing is evaluated costs its plan, once for all objects.
func TestExpressionsArePlannedOnceForAllObjects(t *testing.T) {
	spec := selected(nil)
	unevaluated := " || (false && (" + strings.Repeat("[1].all(x,x)&&", 35) + "true))"
	spec.Current, spec.Failed, spec.InProgress = "true"+unevaluated, "false"+unevaluated, "false"+unevaluated
	garbage := func(objects int) uint64 {
		c := open(t)
		for n := range objects {
			c.objects = append(c.objects, current(fmt.Sprintf("web-%03d", n)))
		}
		least := uint64(math.MaxUint64)
		for range 3 {
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			c.Expect(c.measure(spec).Result).To(Equal(v1alpha1.MeasurementGood))
			goruntime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		return least
	}
	if perObject := (garbage(300) - garbage(100)) / 200; perObject > 50_000 {
		t.Errorf("each object needs %d bytes", perObject)
	}
}

// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// looking returns a HealthCheck of a bake, which fails nothing, and asks three times the same
// about all objects of a kind.
func (a abuser) looking(i int, kind, expression string) *v1alpha1.HealthCheck {
	check := a.HealthCheck()
	check.Name, check.Annotations = fmt.Sprint("looks-", i), nil
	check.Spec = v1alpha1.HealthCheckSpec{
		Class: new(v1alpha1.HealthCheckClassObject),
		Object: &v1alpha1.ObjectSpec{
			APIVersion: "v1", Kind: kind, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": "everybody"}},
			Current: expression, Failed: expression, InProgress: expression,
		},
		MeasuringSpec: v1alpha1.MeasuringSpec{
			Enforce: new(bool), Delay: &metav1.Duration{}, Interval: &metav1.Duration{Duration: judgedEvery}, Timeout: &metav1.Duration{Duration: 30 * time.Second},
		},
	}
	return check
}

// repeated returns the longest expression of parts that are joined by &&.
func repeated(part string, most int) string {
	return strings.Join(strings.Fields(strings.Repeat(part+" ", min(most, 2048/(len(part)+2)))), "&&")
}

func TestExpressionsByTheHundred(t *testing.T) {
	const checks, services = 300, 500
	x := begin(t, fmt.Sprintf("has %d HealthChecks ask three of the longest expressions each, some of them of %d Services", checks, services))
	a := newAbuser(t)
	a.bakes()
	for i := range services {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: fmt.Sprint("of-", i), Labels: map[string]string{"of": "everybody"}}}
		service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "registry.example.com"
		if err := plane.Client().Create(t.Context(), service); err != nil {
			t.Fatal(err)
		}
	}
	for i := range checks {
		kind, expression := "ConfigMap", repeated("[1].all(x,x)", 1000)
		switch i % 3 {
		case 0:
			kind, expression = "Service", "false&&("+repeated("[1].all(x,x)", 20)+")"
		case 1:
			kind, expression = "Service", repeated("true", 200)
		}
		a.makes(a.looking(i, kind, expression))
	}
	x.passes(checks, "those that are too long are refused, and the others have a limit of work")
}

// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestFreezes(t *testing.T) {
	f := newFrozen(t)
	over := f.own.DeepCopy()
	over.Name, over.Spec.Rules[0].DateRange.Start, over.Spec.Rules[0].DateRange.End = "freeze-20260101-0000", "2026-01-01", "2026-01-01"
	broken := f.own.DeepCopy()
	broken.Name, broken.Spec.Timezone = "freeze-20260202-0000", "Europe/Nowhere"
	opened := f.gate.DeepCopy()
	opened.Name, opened.Spec.Passing = "freeze-opened", new(true)
	objects := []client.Object{f.gate, opened, f.own, over, broken, f.all, fixture.MakeSchedule("others").Obj()}
	for name, tt := range map[string]struct {
		args      []string
		forbidden client.ObjectList
		want      answer
	}{
		"of a namespace": {nil, nil, answer{Out: `
KIND                    NAME                  UNTIL                 ROLLOUTS  WHY
ClusterRolloutSchedule  freeze-20261121-1100  Sat 21 Nov 14:00 CET  -         INC-4711
RolloutGate             freeze-opened         over                  1         INC-4711
RolloutGate             freeze-web            it is unfrozen        1         INC-4711
RolloutSchedule         freeze-20260101-0000  over                  2         INC-4711
RolloutSchedule         freeze-20260202-0000  it is unfrozen        2         INC-4711
RolloutSchedule         freeze-20261121-1100  Sat 21 Nov 14:00 CET  2         INC-4711
`[1:]}},
		"of another namespace": {[]string{"-n", "edge"}, nil, answer{Out: `
KIND                    NAME                  UNTIL                 ROLLOUTS  WHY
ClusterRolloutSchedule  freeze-20261121-1100  Sat 21 Nov 14:00 CET  -         INC-4711
`[1:]}},
		"of all namespaces, some not readable": {[]string{"-A", "-o", "name"}, &v1alpha1.ClusterRolloutScheduleList{}, answer{Out: `
rolloutgate.kuberik.com/freeze-opened
rolloutgate.kuberik.com/freeze-web
rolloutschedule.kuberik.com/freeze-20260101-0000
rolloutschedule.kuberik.com/freeze-20260202-0000
rolloutschedule.kuberik.com/freeze-20261121-1100
`[1:], Err: "⚠ you may not list ClusterRolloutSchedules: freezes of the whole cluster are not shown\n"}},
		"not readable": {nil, &v1alpha1.RolloutScheduleList{}, answer{Err: "✗ list freezes: rolloutschedules is forbidden: no right to list\n", Code: 1}},
		"for a script": {
			[]string{"-A", "-o", "jsonpath={.kind} {range .items[*]}{.namespace}/{.name} {.until} {.rollouts} {.over}\n{end}"}, nil,
			answer{Out: `
FreezeList /freeze-20261121-1100 2026-11-21T13:00:00Z  
shop-prod/freeze-opened  1 true
shop-prod/freeze-web  1 
shop-prod/freeze-20260101-0000  2 true
shop-prod/freeze-20260202-0000  2 
shop-prod/freeze-20261121-1100 2026-11-21T13:00:00Z 2 
`[1:]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var copies []client.Object
			for _, o := range objects {
				copies = append(copies, o.DeepCopyObject().(client.Object))
			}
			m := newInMemory(t, copies...)
			m.forbidden = tt.forbidden
			if diff := cmp.Diff(tt.want, m.run(t, append([]string{"freeze"}, tt.args...)...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	none := answer{Err: "no freezes found\n"}
	for _, word := range []string{"freeze", "freezes"} {
		if diff := cmp.Diff(none, newInMemory(t).run(t, word)); diff != "" {
			t.Errorf("%s without any (-want +got):\n%s", word, diff)
		}
	}
	change := answer{Err: "✗ say what to freeze: one Rollout, or -l SELECTOR, or --all; see: kubectl rollouts freeze --help\n", Code: 1}
	if diff := cmp.Diff(change, newInMemory(t).run(t, "freeze", "-A", "--until", "2h")); diff != "" {
		t.Errorf("a change of nothing (-want +got):\n%s", diff)
	}
}

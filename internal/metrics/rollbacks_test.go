// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// late makes the condition of the Rollout that of a rollback that is overdue.
func (p *play) late() {
	p.rollout.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.RolledBackCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.RollbackOverdueReason,
	}}
}

// isLate is a pass that stores that the rollback is overdue.
func (p *play) isLate(entries ...*fixture.EntryBuilder) {
	before := p.rollout
	p.others(entries...)
	p.late()
	p.metrics.Observe(metrics.Pass{Before: before, Stored: p.rollout, Status: &p.rollout.Status, Decision: wait})
}

func TestRollbacksAreCountedByWhatBecomesOfThem(t *testing.T) {
	failed := fixture.MakeEntry("1.1.0").ID(2).Failed()
	back := func() *fixture.EntryBuilder { return fixture.MakeEntry("1.0.0").ID(3).Back("1.1.0", 2, 1) }
	fix := func() *fixture.EntryBuilder { return fixture.MakeEntry("1.2.0").ID(4) }
	for name, tt := range map[string]struct {
		happens func(*play)
		want    map[string]float64
	}{
		"a promotion is no rollback": {
			happens: func(p *play) {
				p.stores(promote, fix().Deploying(), failed)
				p.stores(does(promotion.FinishBake), fix().Succeeded(), failed)
			},
			want: map[string]float64{},
		},
		"one that runs": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.looks(wait)
			},
			want: map[string]float64{},
		},
		"one that succeeds": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.stores(does(promotion.StartBake), back().Baking(p.at(10)), failed)
				p.stores(does(promotion.FinishBake), back().Succeeded(), failed)
				p.looks(nothing)
				p.looks(nothing)
			},
			want: map[string]float64{"restored": 1},
		},
		"one that succeeds at once": {
			happens: func(p *play) { p.stores(promote, back().Succeeded(), failed) },
			want:    map[string]float64{"restored": 1},
		},
		"one that a user calls successful": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.others(back().Succeeded(), failed)
				p.looks(nothing)
			},
			want: map[string]float64{"restored": 1},
		},
		"one that is overdue": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.isLate(back().Deploying(), failed)
				p.looks(wait)
				p.isLate(back().Baking(p.at(10)), failed)
			},
			want: map[string]float64{"overdue": 1},
		},
		"one that is overdue, and succeeds": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.isLate(back().Deploying(), failed)
				p.stores(does(promotion.FinishBake), back().Succeeded(), failed)
			},
			want: map[string]float64{"overdue": 1, "restored": 1},
		},
		"one that a fix replaces": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.isLate(back().Deploying(), failed)
				p.stores(promote, fix().Deploying(), back().Cancelled(), failed)
				p.looks(wait)
			},
			want: map[string]float64{"overdue": 1, "superseded": 1},
		},
		"one that is replaced in a history that no longer has it": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.stores(promote, fix().Deploying())
			},
			want: map[string]float64{"superseded": 1},
		},
		"one that has succeeded before it is replaced": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.others(fix().Deploying(), back().Succeeded(), failed)
				p.looks(wait)
			},
			want: map[string]float64{"restored": 1},
		},
		"one whose history was erased": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.others()
				p.looks(wait)
			},
			want: map[string]float64{"superseded": 1},
		},
		"what was there before": {
			happens: func(p *play) {
				p.others(back().Succeeded(), failed)
				p.restart()
				p.looks(nothing)
			},
			want: map[string]float64{},
		},
		"what was overdue before": {
			happens: func(p *play) {
				p.others(back().Deploying(), failed)
				p.late()
				p.restart()
				p.looks(wait)
				p.stores(does(promotion.FinishBake), back().Succeeded(), failed)
			},
			want: map[string]float64{"restored": 1},
		},
		"two of them": {
			happens: func(p *play) {
				p.stores(promote, back().Deploying(), failed)
				p.stores(does(promotion.FinishBake), back().Succeeded(), failed)
				again := fixture.MakeEntry("1.0.0").ID(5).Back("1.2.0", 4, 3)
				p.stores(promote, fix().Failed(), back().Succeeded(), failed)
				p.stores(promote, again.Succeeded(), fix().Failed(), back().Succeeded(), failed)
			},
			want: map[string]float64{"restored": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(failed)
			tt.happens(p)
			got := map[string]float64{}
			for name, value := range series(t, p.metrics) {
				if result, ok := strings.CutPrefix(name, "rollout_rollbacks_total{result="); ok {
					got[strings.TrimSuffix(result, "}")] = value
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryResultOfARollbackIsShownFromTheStart(t *testing.T) {
	for _, family := range gathered(t, newPlay().metrics) {
		if family.GetName() == "rollout_rollbacks_total" && len(family.GetMetric()) == 3 {
			return
		}
	}
	t.Error("there are no three series")
}

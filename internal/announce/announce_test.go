// SPDX-License-Identifier: Apache-2.0

package announce_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestEventIsInTheLogAsItIsEmitted(t *testing.T) {
	g, log, events := NewWithT(t), &fixture.Log{}, &fixture.Events{}
	ctx := ctrl.LoggerInto(context.Background(), log.Logger())
	announce.Event(ctx, events, fixture.MakeRollout("shop").Obj(), corev1.EventTypeWarning, "Late", strings.Repeat("x", 2000))
	cut := strings.Repeat("x", 681) + " … " + strings.Repeat("x", 340)
	g.Expect(events.All()).To(Equal([]fixture.Event{{On: "shop", Type: "Warning", Reason: "Late", Message: cut}}))
	g.Expect(log.All()).To(Equal([]fixture.Line{{Message: cut, Values: map[string]any{"reason": "Late", "type": "Warning"}}}))
}

// decision is a decision with minimal log values.
type decision struct{}

func (decision) LogValues() []any { return []any{"action", "Wait"} }

func TestPassEndSaysWhy(t *testing.T) {
	for name, tt := range map[string]struct {
		result ctrl.Result
		err    error
		why    string
		want   map[string]any
	}{
		"all is done":          {want: map[string]any{"ended": "all is done until something changes"}},
		"it waits for time":    {result: ctrl.Result{RequeueAfter: time.Minute}, want: map[string]any{"ended": "all is done until something changes, or time has passed", "again": "1m0s"}},
		"it ends before":       {why: "it is suspended", want: map[string]any{"ended": "it is suspended"}},
		"the error is said":    {err: errors.New("no"), want: map[string]any{"ended": `it failed; the line "Reconciler error" says why`}},
		"an error counts more": {err: errors.New("no"), why: "it is suspended", want: map[string]any{"ended": `it failed; the line "Reconciler error" says why`}},
	} {
		t.Run(name, func(t *testing.T) {
			g, log, pass := NewWithT(t), &fixture.Log{}, &announce.Pass{}
			pass.Decided(decision{})
			pass.Stored(true)
			if tt.why != "" {
				pass.Ends(tt.why)
			}
			result, err := pass.End(ctrl.LoggerInto(context.Background(), log.Logger()), tt.result, tt.err)
			g.Expect(result).To(Equal(tt.result))
			g.Expect(errors.Is(err, tt.err)).To(BeTrue())
			tt.want["action"], tt.want["stored"] = "Wait", true
			g.Expect(log.All()).To(Equal([]fixture.Line{{Level: 1, Message: "the pass has ended", Values: tt.want}}))
		})
	}
}

func TestShortenKeepsWhatAnErrorIs(t *testing.T) {
	g, cause := NewWithT(t), errors.New("it is so")
	short := fmt.Errorf("for this: %w", cause)
	g.Expect(announce.Shorten(short)).To(BeIdenticalTo(short))
	long := announce.Shorten(fmt.Errorf("%s: %w", strings.Repeat("x", 5000), cause))
	g.Expect(long.Error()).To(HaveLen(1023 + len("…")))
	g.Expect(errors.Is(long, cause)).To(BeTrue())
	g.Expect(announce.Shorten(nil)).To(Succeed())
}

// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Decision is what a pass has decided, as keys and values of a log line.
type Decision interface {
	LogValues() []any
}

// Pass collects what is logged about one pass. The zero value is ready to use.
type Pass struct {
	decision Decision
	stored   bool
	why      string
}

// Decided records what the pass has decided. The values of the decision are only computed
// if they are logged.
func (p *Pass) Decided(d Decision) { p.decision = d }

// Stored records whether the pass has stored any change.
func (p *Pass) Stored(changed bool) { p.stored = changed }

// Ends records why the pass ends before everything is done.
func (p *Pass) Ends(why string) { p.why = why }

// End logs the pass at level 1. It returns the result for controller-runtime, which logs
// the error. It shortens the text of an error that is too long for the log. The error
// still wraps the original one.
func (p *Pass) End(ctx context.Context, result ctrl.Result, err error) (ctrl.Result, error) {
	if log := ctrl.LoggerFrom(ctx).V(1); log.Enabled() {
		log.Info("the pass has ended", p.values(result, err)...)
	}
	return result, Shorten(err)
}

func (p *Pass) values(result ctrl.Result, err error) []any {
	var values []any
	if p.decision != nil {
		values = p.decision.LogValues()
	}
	values = append(values, "stored", p.stored, "ended", p.ended(result, err))
	if err == nil && result.RequeueAfter > 0 {
		values = append(values, "again", result.RequeueAfter.String())
	}
	return values
}

func (p *Pass) ended(result ctrl.Result, err error) string {
	switch {
	case err != nil:
		return "it failed; the line \"Reconciler error\" says why"
	case p.why != "":
		return p.why
	case result.RequeueAfter > 0:
		return "all is done until something changes, or time has passed"
	}
	return "all is done until something changes"
}

// Shorten limits the length of the text of an error that will be logged.
func Shorten(err error) error {
	if err == nil {
		return nil
	}
	full := err.Error()
	if text := truncate.Text(full, longest); text != full {
		return shortened{err, text}
	}
	return err
}

// shortened is an error with a text of limited length.
type shortened struct {
	error
	text string
}

func (s shortened) Error() string { return s.text }
func (s shortened) Unwrap() error { return s.error }

// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPaceIsTheMeanOfTheBeatsMeanwhile(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(0, 0).Add(time.Duration(second) * time.Second) }
	p := &Pacer{}
	for second, took := range []time.Duration{90, 90, 10, 20, 30, 40, 90, 90} {
		p.note(beat{at(second), took}, nil)
	}
	// The second before and the second after belong to it.
	if pace, err := p.Between(at(3).Add(-time.Second/4), at(4).Add(time.Second/4)); pace != 25 || err != nil {
		t.Errorf("the pace is %d, %v, want 25", pace, err)
	}
	if pace, err := p.Between(at(20), at(30)); err == nil {
		t.Errorf("the pace is %d when there was no beat", pace)
	}
	broken := errors.New("no clock")
	p.note(beat{}, broken)
	if _, err := p.Between(at(3), at(4)); !errors.Is(err, broken) {
		t.Errorf("the error is %v, want %v", err, broken)
	}
}

func TestPacerMeasuresUntilItIsStopped(t *testing.T) {
	p, began := New(), time.Now()
	ctx, stop := context.WithTimeout(t.Context(), beatEvery+beatEvery/2)
	defer stop()
	p.Run(ctx)
	pace, err := p.Between(began, time.Now())
	if err != nil || pace <= 0 || len(p.beats) < 2 {
		t.Errorf("the pace is %s after %d beats, %v", pace, len(p.beats), err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import "context"

// laps are the durations of similar waves, in seconds, and the pace of the machine during
// the waves, in milliseconds.
type laps struct {
	targets, all, p50, p99, paces []float64
}

// lap adds a wave.
func (b *bench) lap(l *laps, title string, w *wave) error {
	pace, err := b.pacer.Between(w.began(), w.began().Add(w.all()))
	if err != nil {
		return err
	}
	b.print("%s: targets %s, all %s, at a pace of %.2f ms", title, w.targets(), w.all(), millis(pace))
	latencies := w.latencies()
	l.targets, l.all = append(l.targets, seconds(w.targets())), append(l.all, seconds(w.all()))
	l.p50, l.p99 = append(l.p50, seconds(percentile(latencies, 50))), append(l.p99, seconds(percentile(latencies, 99)))
	l.paces = append(l.paces, millis(pace))
	return nil
}

// lapFloor adds a wave of the bare client that is like one of the controller.
func (b *bench) lapFloor(ctx context.Context, l *laps, like *wave) error {
	w, err := b.floorAfter(ctx, like)
	if err != nil {
		return err
	}
	return b.lap(l, "floor", w)
}

func (l laps) show(m measured) {
	m["wave.time"], m["wave.p50"], m["wave.p99"] = median(l.targets), median(l.p50), median(l.p99)
	m["wave.pace"] = median(l.paces)
}

// compare compares the laps of the controller with those of the bare client.
func (l laps) compare(bare laps, m measured) {
	m["wave.floor"], m["floor.pace"] = median(bare.targets), median(bare.paces)
	m["wave.ratio"] = median(l.paced(l.targets)) / median(bare.paced(bare.targets))
	m["wave.whole"] = median(l.paced(l.all)) / median(bare.paced(bare.all))
}

// paced returns times in beats instead of seconds. A machine that is slower for some
// minutes takes longer for each beat.
func (l laps) paced(times []float64) []float64 {
	beats := make([]float64, len(times))
	for i, time := range times {
		beats[i] = time / l.paces[i]
	}
	return beats
}

// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestRatioIsThatOfAMachineWithOnePace tests a machine that became half as fast during
// the waves of the controller, but not during those of the bare client.
func TestRatioIsThatOfAMachineWithOnePace(t *testing.T) {
	own := laps{targets: []float64{11, 22}, all: []float64{12, 24}, paces: []float64{4, 8}}
	bare := laps{targets: []float64{10, 10}, all: []float64{10, 10}, paces: []float64{4, 4}}
	m := measured{}
	own.compare(bare, m)
	for key, want := range map[string]float64{"wave.ratio": 1.1, "wave.whole": 1.2, "wave.floor": 10, "floor.pace": 4} {
		if m[key] != want {
			t.Errorf("%s is %v, want %v", key, m[key], want)
		}
	}
}

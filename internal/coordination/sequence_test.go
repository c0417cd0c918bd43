// SPDX-License-Identifier: Apache-2.0

package coordination_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/coordination"
)

func TestTurnsGoInOrder(t *testing.T) {
	t.Parallel()

	noon := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	type member = coordination.Member
	tests := map[string]struct {
		members []member
		want    []string
	}{
		"nobody waits": {},
		"by name, as text": {
			members: []member{{Name: "d2"}, {Name: "d10"}, {Name: "d1"}},
			want:    []string{"d1", "d10", "d2"},
		},
		"the order that is set comes before the name": {
			members: []member{{Name: "a", Order: 2}, {Name: "b"}, {Name: "c", Order: -1}},
			want:    []string{"c", "b", "a"},
		},
		"who had no turn yet comes before any order": {
			members: []member{{Name: "a", Order: -5, LastTurn: noon}, {Name: "b", Order: 7}},
			want:    []string{"b", "a"},
		},
		"of those that had a turn, who has waited longest": {
			members: []member{{Name: "a", LastTurn: noon.Add(time.Minute)}, {Name: "b", LastTurn: noon}, {Name: "c", LastTurn: noon}},
			want:    []string{"b", "c", "a"},
		},
		"who has begun comes before everything": {
			members: []member{{Name: "a", Order: -1}, {Name: "b", Order: 3, Halfway: true, LastTurn: noon}},
			want:    []string{"b", "a"},
		},
		"of those that have begun, the furthest along": {
			members: []member{{Name: "a", Halfway: true, Progress: 1}, {Name: "b", Halfway: true, Progress: 2}, {Name: "c", Progress: 9}},
			want:    []string{"b", "a", "c"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			waiting := slices.Clone(tt.members)
			for {
				next, found := coordination.Next(waiting)
				if !found {
					break
				}
				got = append(got, next.Name)
				waiting = slices.DeleteFunc(waiting, func(m member) bool { return m.Name == next.Name })
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("turns: %v, want %v", got, tt.want)
			}
		})
	}
}

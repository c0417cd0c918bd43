// SPDX-License-Identifier: Apache-2.0

package truncate

import "encoding/json"

// Items returns as many items of a list as a limit allows, in their order, and how many
// are left out. The limit is in bytes of JSON. Items that matter are taken first.
func Items[T any](items []T, limit int, matters func(T) bool) (kept []T, omitted int32) {
	taken := make([]bool, len(items))
	for _, first := range []bool{true, false} {
		for i := range items {
			if matters(items[i]) != first {
				continue
			}
			size := ItemSize(items[i])
			if size > limit {
				limit = 0 // a smaller item that matters less does not replace it
				break
			}
			taken[i], limit = true, limit-size
		}
	}
	for i := range items {
		if taken[i] {
			kept = append(kept, items[i])
		}
	}
	return kept, int32(len(items) - len(kept))
}

// ItemSize returns how many bytes an item of a list takes in JSON.
func ItemSize(item any) int {
	wire, err := json.Marshal(item)
	if err != nil {
		return 0 // JSON can encode all types of the API
	}
	return len(wire) + len(",")
}

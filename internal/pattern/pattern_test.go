// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/pattern"
)

func TestCompile(t *testing.T) {
	const large = "it is too large: with its repetitions written out it may have 10000 steps"
	for expression, want := range map[string]string{
		`^main-[0-9a-f]+-(?P<ts>[0-9]+)$`:       "",
		`^v?(\d{1,5})\.(\d{1,5})\.(\d{1,5})$`:   "",
		strings.Repeat("a{1000}", 10):           "",
		strings.Repeat("a{1000}", 11):           large,
		"((a{10}){10}){10}":                     "",
		strings.Repeat("((a{10}){10}){10}", 11): large,
		strings.Repeat(`[\pL\pN]{1000}`, 2):     large,
		strings.Repeat("a", 1024):               "",
		strings.Repeat("a", 1025):               "it has 1025 characters, and may have 1024",
		"(":                                     "error parsing regexp: missing closing ): `(`",
	} {
		t.Run(expression[:min(len(expression), 40)], func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			compiled, err := pattern.Compile(expression)
			runtime.ReadMemStats(&after)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if said != want || (compiled == nil) != (want != "") {
				t.Errorf("it says %q, want %q", said, want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
				t.Errorf("it took %d bytes", took)
			}
		})
	}
}

func TestSize(t *testing.T) {
	for expression, want := range map[string]int{"abc": 3, "a{1000}": 1000, "(": 0, strings.Repeat("a{1000}", 11): -1, strings.Repeat("a", 1025): -1} {
		size, ok := pattern.Size(expression)
		if ok != (want >= 0) || ok && size != want {
			t.Errorf("%.20s: %d %t, want %d", expression, size, ok, want)
		}
	}
}

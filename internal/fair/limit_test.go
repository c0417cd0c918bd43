// SPDX-License-Identifier: Apache-2.0

package fair_test

import (
	"slices"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/fair"
)

func TestGroupHasAtMostSomeItemsUnderWay(t *testing.T) {
	l := &fair.Limit[string]{Most: 2}
	var began []string
	for _, item := range []string{"a", "b", "c", "d", "c"} {
		if l.Enter("loud", item) {
			began = append(began, item)
		}
	}
	if !l.Enter("quiet", "q") {
		t.Error("another group waits")
	}
	if !slices.Equal(began, []string{"a", "b"}) || l.Len() != 5 {
		t.Errorf("%v began, of %d", began, l.Len())
	}
	for _, called := range []string{"c", "d"} {
		if next, ok := l.Leave("loud"); !ok || next != called {
			t.Errorf("the next one is %q", next)
		}
	}
	if l.Enter("loud", "e") {
		t.Error("e has overtaken the ones that were parked before")
	}
	for _, called := range []string{"d", "c"} {
		if !l.Enter("loud", called) {
			t.Errorf("%s does not begin", called)
		}
	}
	if next, ok := l.Leave("loud"); !ok || next != "e" || !l.Enter("loud", "e") {
		t.Errorf("the next one is %q", next)
	}
	for _, group := range []string{"loud", "loud", "quiet"} {
		if next, ok := l.Leave(group); ok {
			t.Errorf("%s is still parked", next)
		}
	}
	if l.Len() != 0 {
		t.Errorf("%d are left", l.Len())
	}
}

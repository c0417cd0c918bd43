// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// A schedule is part of each pass of each Rollout that it selects.
func TestKnownWindowCostsNothing(t *testing.T) {
	g := NewWithT(t)
	for name, edit := range map[string]func(*v1alpha1.RolloutSchedule){
		"one that can be evaluated": func(*v1alpha1.RolloutSchedule) {},
		"one that cannot":           func(s *v1alpha1.RolloutSchedule) { s.Spec.Timezone = "Mars" },
	} {
		o := stored("nights")
		edit(o)
		windows, s := &Windows{}, ScheduleOf(o)
		windows.of(s, fixture.Noon)
		g.Expect(testing.AllocsPerRun(10, func() { windows.of(s, fixture.Noon.Add(time.Minute)) })).To(BeNumerically("<", 3), name)
	}
}

func stored(name string) *v1alpha1.RolloutSchedule {
	o := fixture.MakeSchedule(name).Obj()
	o.UID, o.Generation = types.UID(name), 1
	return o
}

func TestKnownWindowIsThatOfTheSchedule(t *testing.T) {
	edited, other, unstored := stored("nights"), stored("other"), fixture.MakeSchedule("in a file").Obj()
	edited.Generation, edited.Spec.Action = 2, v1alpha1.ScheduleDeny
	other.Spec.Timezone = "Asia/Kathmandu"
	unedited := unstored.DeepCopy()
	unstored.Spec.Timezone = "Mars"
	windows := &Windows{}
	for hours := range 72 {
		now := fixture.Noon.Add(time.Duration(hours*7%72) * time.Hour) // clocks may also be set back
		for _, o := range []*v1alpha1.RolloutSchedule{stored("nights"), other, edited, stored("nights"), unedited, unstored} {
			s := ScheduleOf(o)
			NewWithT(t).Expect(windows.of(s, now)).To(Equal(s.Window(now)), "%s of generation %d at %s", s, o.Generation, now)
		}
	}
	NewWithT(t).Expect((*Windows)(nil).of(ScheduleOf(other), fixture.Noon)).To(Equal(ScheduleOf(other).Window(fixture.Noon)))
}

func TestSoManyWindowsAreKnown(t *testing.T) {
	windows := &Windows{}
	for n := range mostWindows + 10 {
		windows.of(ScheduleOf(stored(fmt.Sprint(n))), fixture.Noon)
	}
	NewWithT(t).Expect(windows.known.Len()).To(Equal(mostWindows))
}

// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/test/emulator"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// watched returns a screen of the namespace shop-prod, and what is written to it.
func watched(style show.Style, now time.Time) (*screen, *strings.Builder) {
	out := &strings.Builder{}
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{Out: out, ErrOut: out})
	p.Out.Style, p.Now = style, func() time.Time { return now }
	return newScreen(&getting{Program: p, out: &program.Output{}}, nil), out
}

func baking(name string) *v1alpha1.Rollout {
	return fixture.MakeRollout(name).BakeTime(30 * time.Minute).
		History(fixture.MakeEntry("1.5.0").ID(42).Baking(fixture.Noon).Because("baking for 30m0s")).Obj()
}

func done(name string) *v1alpha1.Rollout {
	return fixture.MakeRollout(name).History(fixture.MakeEntry("1.5.0").ID(42).Succeeded()).Obj()
}

// firstWords returns the first three words of each line.
func firstWords(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, strings.Join(strings.Fields(line)[:3], " "))
	}
	return all
}

// What is there at first is in order, and a line follows for each change.
func TestWatchWritesALineForEachChange(t *testing.T) {
	s, out := watched(show.Style{Unicode: true}, fixture.Noon)
	suspended := done("web")
	suspended.Spec.Suspend = true
	for _, c := range []changed{
		{rollout: done("web")}, {rollout: baking("shop")}, {rollout: baking("cart")}, {}, {rollout: baking("shop")},
		{rollout: done("shop")}, {rollout: suspended}, {rollout: fixture.MakeRollout("new").Obj()}, {rollout: done("shop"), gone: true},
	} {
		s.take(c)
	}
	want := []string{
		"NAME VERSION STATE", "cart 1.5.0 Baking", "shop 1.5.0 Baking", "web 1.5.0 Succeeded",
		"shop 1.5.0 Succeeded", "web 1.5.0 Suspended", "new - -", "shop 1.5.0 Gone",
	}
	if diff := cmp.Diff(want, firstWords(out.String())); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, out)
	}
	if lines := strings.Split(out.String(), "\n"); strings.Index(lines[0], "STATE") != strings.Index(lines[5], "Suspended") {
		t.Errorf("the columns are not those of the header:\n%s", out)
	}
}

func TestWatchOnADumbTerminalWritesNoEscapeCodes(t *testing.T) {
	s, out := watched(show.StyleOf(true, 40, func(name string) string { return map[string]string{"TERM": "dumb"}[name] }), fixture.Noon)
	s.take(changed{rollout: baking("shop")})
	s.take(changed{})
	if s.redraws() || strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "Baking") {
		t.Errorf("it wrote %q", out)
	}
}

// The filters are those of get.
func TestWatchLeavesOutWhatDoesNotMatch(t *testing.T) {
	for name, filter := range map[string]func(*getting){
		"moving": func(g *getting) { g.moving = true },
		"ready":  func(g *getting) { g.ready = "ready=false" },
		"held":   func(g *getting) { g.held = true },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := watched(show.Style{Redraws: true, Width: 80}, fixture.Noon)
			filter(s.getting)
			matching := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.5.0").Baking(fixture.Noon)).Obj()
			matching.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse}}
			matching.Status.ReleaseCandidates = []v1alpha1.ReleaseCandidate{{VersionInfo: v1alpha1.VersionInfo{Tag: "1.6.0"}, Holds: []v1alpha1.CandidateHold{{Message: "held"}}}}
			s.take(changed{rollout: matching})
			if len(s.lines) != 1 {
				t.Errorf("it is left out")
			}
			s.take(changed{rollout: done("shop")})
			if len(s.lines) != 0 {
				t.Errorf("what does not match any more is still there: %v", s.lines)
			}
		})
	}
}

func TestWatchDrawsBelowTheRolloutsThatTheyCannotBeRead(t *testing.T) {
	s, out := watched(show.Style{Redraws: true, Unicode: true}, fixture.Noon)
	s.noHeader = true
	s.take(changed{rollout: done("shop")})
	screen := emulator.New(80, 10)
	line := strings.Join(s.row(s.lines["shop-prod/shop"]), "  ")
	const notice = "Rollouts cannot be read for now"
	for _, step := range []struct {
		say  func()
		want string
	}{
		{func() {}, line},
		{func() { s.note(show.Warns, "%s", notice) }, line + "\n" + notice},
		{func() { s.note(show.Well, "Rollouts can be read again") }, line},
	} {
		step.say()
		s.draw()
		if _, err := screen.Write([]byte(strings.ReplaceAll(out.String(), "\n", "\r\n"))); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if diff := cmp.Diff(step.want, strings.TrimSpace(screen.Text())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/test/emulator"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// watched returns a screen, and what is written to it.
func watched(style show.Style, now time.Time) (*screen, *strings.Builder) {
	out := &strings.Builder{}
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{Out: out, ErrOut: out})
	p.Out.Style, p.Now = style, func() time.Time { return now }
	return newScreen(&watching{Program: p}, nil), out
}

func baking(name string) *v1alpha1.Rollout {
	return fixture.MakeRollout(name).BakeTime(30 * time.Minute).
		History(fixture.MakeEntry("1.5.0").ID(42).Baking(fixture.Noon).Because("baking for 30m0s")).Obj()
}

func TestWatchWritesALineForEachChange(t *testing.T) {
	s, out := watched(show.Style{Unicode: true}, fixture.Noon)
	done := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.5.0").ID(42).Succeeded()).Obj()
	for _, c := range []changed{{rollout: baking("shop")}, {rollout: baking("shop")}, {rollout: done}, {rollout: fixture.MakeRollout("new").Obj()}} {
		s.take(c)
	}
	want := "" +
		"shop-prod/shop  1.5.0 (#42)  InProgress  baking for 30m0s\n" +
		"shop-prod/shop  1.5.0 (#42)  Succeeded  -\n" +
		"shop-prod/new  -  nothing is promoted  up to date\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWatchOnADumbTerminalWritesNoEscapeCodes(t *testing.T) {
	s, out := watched(show.StyleOf(true, 40, func(name string) string { return map[string]string{"TERM": "dumb"}[name] }), fixture.Noon)
	s.take(changed{rollout: baking("shop")})
	if s.redraws() || strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "baking for 30m0s") {
		t.Errorf("it wrote %q", out)
	}
}

func TestWatchOfWhatMovesLeavesOutWhatHasEnded(t *testing.T) {
	s, _ := watched(show.Style{Redraws: true, Width: 80}, fixture.Noon)
	s.moving = true
	s.take(changed{rollout: baking("shop")})
	if len(s.lines) != 1 {
		t.Errorf("a bake does not move: %v", s.lines)
	}
	s.take(changed{rollout: fixture.MakeRollout("shop").History(fixture.MakeEntry("1.5.0").Succeeded()).Obj()})
	if len(s.lines) != 0 {
		t.Errorf("what has ended is still there: %v", s.lines)
	}
}

func TestWatchDrawsBelowTheRolloutsThatTheyCannotBeRead(t *testing.T) {
	s, out := watched(show.Style{Redraws: true, Unicode: true}, fixture.Noon)
	s.take(changed{rollout: fixture.MakeRollout("shop").History(fixture.MakeEntry("1.5.0").ID(42).Succeeded()).Obj()})
	screen := emulator.New(80, 10)
	const line, notice = "shop-prod/shop  1.5.0 (#42)  Succeeded  -", "Rollouts cannot be read for now"
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

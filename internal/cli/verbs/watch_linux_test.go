// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// rolloutsOnTerminal returns Rollouts as the objects of a cluster.
func rolloutsOnTerminal(t *testing.T, rollouts ...*v1alpha1.Rollout) string {
	t.Helper()
	var all strings.Builder
	for _, r := range rollouts {
		r.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Rollout"))
		text, err := yaml.Marshal(r)
		mustDo(t, err)
		fmt.Fprintf(&all, "---\n%s", text)
	}
	return all.String()
}

// bakingSince returns a Rollout whose bake of half an hour has been running for ten minutes
// at noon.
func bakingSince(name, because string) *v1alpha1.Rollout {
	return fixture.MakeRollout(name).BakeTime(30 * time.Minute).
		History(fixture.MakeEntry("1.5.0").ID(42).Baking(noon.Add(-10 * time.Minute)).Because(because)).Obj()
}

func ended(name string) *v1alpha1.Rollout {
	return fixture.MakeRollout(name).History(fixture.MakeEntry("1.5.0").ID(42).Succeeded()).Obj()
}

func modified(r *v1alpha1.Rollout) rolloutChange { return rolloutChange{watch.Modified, r} }

// wideReason has wide and combining characters: 17 columns of them.
const wideReason = "春の値上げ, re\u0301sume\u0301"

// last is what a Rollout shows that was deployed long ago.
func last(name string) string {
	return fmt.Sprintf("shop-prod/%s  1.5.0 (#42)  Succeeded  -", name)
}

func TestWatchDrawsAgainInPlace(t *testing.T) {
	t.Parallel()
	objects := rolloutsOnTerminal(t, bakingSince("shop", wideReason), bakingSince("web", strings.Repeat("long ", 40)))
	for columns, want := range map[int][3]string{
		40: {
			"shop-prod/shop  1.5.0 (#42)  ██░░░░  33…\n" +
				"shop-prod/web   1.5.0 (#42)  ██░░░░  33…",
			"shop-prod/shop  1.5.0 (#42)  Succeeded …\n" +
				"shop-prod/web   1.5.0 (#42)  ██░░░░  33…",
			"shop-prod/shop  1.5.0 (#42)  Succeeded …",
		},
		60: { // 9 columns are left, where 4 wide characters need 8
			"shop-prod/shop  1.5.0 (#42)  ████░░░░░░░░░░  33%  春の値上…\n" +
				"shop-prod/web   1.5.0 (#42)  ████░░░░░░░░░░  33%  long long…",
			"shop-prod/shop  1.5.0 (#42)  Succeeded            -\n" +
				"shop-prod/web   1.5.0 (#42)  ████░░░░░░░░░░  33%  long long…",
			last("shop"),
		},
		80: {
			"shop-prod/shop  1.5.0 (#42)  ████████░░░░░░░░░░░░░░░░  33%  春の値上げ, re\u0301sume\u0301\n" +
				"shop-prod/web   1.5.0 (#42)  ████████░░░░░░░░░░░░░░░░  33%  " + strings.Repeat("long ", 3) + "long…",
			"shop-prod/shop  1.5.0 (#42)  Succeeded                      -\n" +
				"shop-prod/web   1.5.0 (#42)  ████████░░░░░░░░░░░░░░░░  33%  " + strings.Repeat("long ", 3) + "long…",
			last("shop"),
		},
		200: {
			"shop-prod/shop  1.5.0 (#42)  ████████░░░░░░░░░░░░░░░░  33%  春の値上げ, re\u0301sume\u0301\n" +
				"shop-prod/web   1.5.0 (#42)  ████████░░░░░░░░░░░░░░░░  33%  " + strings.Repeat("long ", 18) + "lo … " + strings.Repeat("long ", 8) + "long",
			"shop-prod/shop  1.5.0 (#42)  Succeeded                      -\n" +
				"shop-prod/web   1.5.0 (#42)  ████████░░░░░░░░░░░░░░░░  33%  " + strings.Repeat("long ", 18) + "lo … " + strings.Repeat("long ", 8) + "long",
			last("shop"),
		},
	} {
		t.Run(fmt.Sprintf("at %d columns", columns), func(t *testing.T) {
			t.Parallel()
			x := onTerminal(t, columns, objects, nil, "watch", "-A")
			x.awaitText(want[0])
			x.change(modified(ended("shop")))
			x.awaitText(want[1])
			x.change(rolloutChange{watch.Deleted, bakingSince("web", "")})
			x.awaitText(want[2])
			x.change(rolloutChange{watch.Deleted, ended("shop")})
			x.awaitText("no Rollouts to show so far")
			x.change(rolloutChange{watch.Added, ended("shop")})
			x.awaitText(want[2])
		})
	}
}

// A terminal wraps what is on it again when its window gets narrower.
func TestWatchDrawsAgainAfterTheWindowGotNarrower(t *testing.T) {
	t.Parallel()
	r := ended("shop")
	r.Status.History[0].BakeStatusMessage = new("applied for the bake time, 春の値上げ")
	x := onTerminal(t, 80, rolloutsOnTerminal(t, r, ended("web")), nil, "watch", "-A")
	wide := "shop-prod/shop  1.5.0 (#42)  Succeeded  applied for the bake time, 春の値上げ\n" +
		"shop-prod/web   1.5.0 (#42)  Succeeded  -"
	x.awaitText(wide)
	for _, columns := range []int{80, 50} {
		x.resize(26)
		x.awaitText("shop-prod/shop  1.5.0 (#4…\nshop-prod/web   1.5.0 (#4…")
		x.resize(columns)
		x.awaitText(map[int]string{80: wide, 50: "shop-prod/shop  1.5.0 (#42)  Succeeded  applied f…\nshop-prod/web   1.5.0 (#42)  Succeeded  -"}[columns])
	}
	x.press("\x03")
	if code := x.awaitExit(); code != program.Interrupted {
		t.Errorf("exit code %d, want %d", code, program.Interrupted)
	}
}

// Lines that were scrolled away cannot be drawn again.
func TestWatchOfMoreThanTheWindowHasShowsHowManyMore(t *testing.T) {
	t.Parallel()
	var all []*v1alpha1.Rollout
	var want strings.Builder
	for i := range 30 {
		name := fmt.Sprintf("r%02d", i)
		all = append(all, ended(name))
		if i < emulatedRows-2 {
			want.WriteString(last(name) + "\n")
		}
	}
	x := onTerminal(t, 80, rolloutsOnTerminal(t, all...), nil, "watch", "-A")
	x.awaitText(want.String() + "and 20 more")
	x.change(rolloutChange{watch.Deleted, ended("r29")})
	x.awaitText(want.String() + "and 19 more")
	x.change(modified(bakingSince("r00", "")))
	x.await(func(text string) bool {
		return strings.HasPrefix(text, "shop-prod/r00  1.5.0 (#42)  ████████░░░░") && strings.HasSuffix(text, "\nand 19 more") &&
			strings.Count(text, "\n") == emulatedRows-2
	}, "r00 bakes, and nothing is there twice")
}

func TestWatchEndsWithAnInterrupt(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, 80, rolloutsOnTerminal(t, ended("shop")), nil, "watch", "-A")
	x.awaitText(last("shop"))
	x.press("\x03")
	if code := x.awaitExit(); code != program.Interrupted {
		t.Errorf("exit code %d, want %d", code, program.Interrupted)
	}
	if after := x.modes(); after != x.before {
		t.Errorf("the terminal was %+v, and is %+v", x.before, after)
	}
}

func (x *terminal) modes() unix.Termios {
	x.t.Helper()
	modes, err := unix.IoctlGetTermios(int(x.keyboard.Fd()), unix.TCGETS)
	mustDo(x.t, err)
	return *modes
}

func TestWatchDrawsNothingAgainOnADumbTerminal(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"watch", "-A"}, {"watch", "-A", "--plain"}} {
		var environment []string
		if len(args) == 2 {
			environment = []string{"TERM=dumb"}
		}
		x := onTerminal(t, 200, rolloutsOnTerminal(t, bakingSince("shop", wideReason)), environment, args...)
		x.awaitText("shop-prod/shop  1.5.0 (#42)  InProgress  " + wideReason)
		x.change(modified(ended("shop")))
		x.awaitText("shop-prod/shop  1.5.0 (#42)  InProgress  " + wideReason + "\n" + last("shop"))
		if written := x.written(); strings.Contains(written, "\x1b") {
			t.Errorf("%q writes escape codes: %q", args, written)
		}
	}
}

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
// at noon. Its next release waits for something.
func bakingSince(name, waits string) *v1alpha1.Rollout {
	r := fixture.MakeRollout(name).BakeTime(30 * time.Minute).
		History(fixture.MakeEntry("1.5.0").ID(42).Baking(noon.Add(-10 * time.Minute)).Because(waits)).Obj()
	return waitsFor(r, waits)
}

func waitsFor(r *v1alpha1.Rollout, message string) *v1alpha1.Rollout {
	r.Status.ReleaseCandidates = []v1alpha1.ReleaseCandidate{{VersionInfo: v1alpha1.VersionInfo{Tag: "1.6.0"}, Holds: []v1alpha1.CandidateHold{{Message: message}}}}
	return r
}

func ended(name string) *v1alpha1.Rollout {
	return fixture.MakeRollout(name).History(fixture.MakeEntry("1.5.0").ID(42).Succeeded()).Obj()
}

func modified(r *v1alpha1.Rollout) rolloutChange { return rolloutChange{watch.Modified, r} }

// wideReason has wide and combining characters: 17 columns of them.
const wideReason = "春の値上げ, re\u0301sume\u0301"

const header = "NAMESPACE  NAME  VERSION  STATE      SINCE  NEXT  WAITS FOR\n"

// last is what a Rollout shows that was deployed long ago.
func last(name string) string {
	return fmt.Sprintf("shop-prod  %-4s  1.5.0    Succeeded  264d   -     up to date", name)
}

// long returns a reason of so many words.
func long(words int) string { return strings.TrimSpace(strings.Repeat("long ", words)) }

func TestWatchDrawsAgainInPlace(t *testing.T) {
	t.Parallel()
	objects := rolloutsOnTerminal(t, bakingSince("shop", wideReason), bakingSince("web", long(20)))
	for columns, want := range map[int][3]string{
		40: {
			"NAMESPACE  NAME  VERSION  STATE        …\n    WAITS FOR\n" +
				"shop-prod  shop  1.5.0    ██░░░░  33%  …\n    " + wideReason + "\n" +
				"shop-prod  web   1.5.0    ██░░░░  33%  …\n    " + long(7) + "\n    " + long(7) + "\n    " + long(6),
			"NAMESPACE  NAME  VERSION  STATE        …\n    WAITS FOR\n" +
				"shop-prod  shop  1.5.0    Succeeded    …\n    up to date\n" +
				"shop-prod  web   1.5.0    ██░░░░  33%  …\n    " + long(7) + "\n    " + long(7) + "\n    " + long(6),
			"NAMESPACE  NAME  VERSION  STATE      SI…\n    WAITS FOR\n" +
				"shop-prod  shop  1.5.0    Succeeded  26…\n    up to date",
		},
		80: {
			"NAMESPACE  NAME  VERSION  STATE          SINCE  NEXT   WAITS FOR\n" +
				"shop-prod  shop  1.5.0    ██░░░░░░  33%  264d   1.6.0  春の値上げ, re\u0301sume\u0301\n" +
				"shop-prod  web   1.5.0    ██░░░░░░  33%  264d   1.6.0\n    " + long(15) + "\n    " + long(5),
			"NAMESPACE  NAME  VERSION  STATE          SINCE  NEXT   WAITS FOR\n" +
				"shop-prod  shop  1.5.0    Succeeded      264d   -      up to date\n" +
				"shop-prod  web   1.5.0    ██░░░░░░  33%  264d   1.6.0\n    " + long(15) + "\n    " + long(5),
			header + last("shop"),
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

// What does not match is not there, and goes when it does not match any more.
func TestWatchHasTheFiltersOfGet(t *testing.T) {
	t.Parallel()
	web := bakingSince("web", "")
	web.Labels = map[string]string{"tier": "web"}
	objects := rolloutsOnTerminal(t, bakingSince("shop", ""), ended("cart"), web)
	for flags, want := range map[string]int{"-l tier=web": 1, "--moving": 2, "--failed": 0, "": 3} {
		x := onTerminal(t, 80, objects, nil, append([]string{"get", "-w", "-A"}, strings.Fields(flags)...)...)
		x.await(func(text string) bool {
			return strings.Count(text, "shop-prod") == want && strings.Contains(text, "\n") == (want > 0)
		}, fmt.Sprint(flags, want))
	}
}

// A terminal wraps what is on it again when its window gets narrower.
func TestWatchDrawsAgainAfterTheWindowGotNarrower(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, 80, rolloutsOnTerminal(t, waitsFor(ended("shop"), "closed on 春の値上げ"), ended("web")), nil, "watch", "-A", "--no-headers")
	wide := "shop-prod  shop  1.5.0  Succeeded  264d  1.6.0  closed on 春の値上げ\n" +
		"shop-prod  web   1.5.0  Succeeded  264d  -      up to date"
	x.awaitText(wide)
	for range 2 {
		x.resize(26)
		x.awaitText("shop-prod  shop  1.5.0  S…\n    closed on 春の値上げ\nshop-prod  web   1.5.0  S…\n    up to date")
		x.resize(80)
		x.awaitText(wide)
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
	want := header
	for i := range 30 {
		name := fmt.Sprintf("r%02d", i)
		all = append(all, ended(name))
		if i < emulatedRows-3 {
			want += last(name) + "\n"
		}
	}
	x := onTerminal(t, 80, rolloutsOnTerminal(t, all...), nil, "watch", "-A")
	x.awaitText(want + "and 21 more")
	x.change(rolloutChange{watch.Deleted, ended("r29")})
	x.awaitText(want + "and 20 more")
	x.change(modified(bakingSince("r00", "")))
	x.await(func(text string) bool {
		return strings.Contains(text, "\nshop-prod  r00   1.5.0    ██░░░░░░") && strings.HasSuffix(text, "\nand 20 more") &&
			strings.Count(text, "\n") == emulatedRows-2
	}, "r00 bakes, and nothing is there twice")
}

// What explains a failure is there in full, and what has no room is counted as a whole.
func TestWatchNeverCutsWhyAReleaseFailed(t *testing.T) {
	t.Parallel()
	failing := ended("r0")
	failing.Status.History[0].BakeStatus, failing.Status.History[0].BakeStatusMessage = new(v1alpha1.BakeFailed), new(long(60)+" end")
	x := onTerminal(t, 80, rolloutsOnTerminal(t, failing, waitsFor(ended("r1"), long(60)), ended("r2")), nil, "watch", "-A", "--no-headers")
	x.awaitText("shop-prod  r0  1.5.0  Failed     264d  -\n    " + strings.Repeat(long(15)+"\n    ", 4) + "end\nand 2 more")
}

func TestWatchEndsWithAnInterrupt(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, 80, rolloutsOnTerminal(t, ended("shop")), nil, "watch", "-A")
	x.awaitText(header + last("shop"))
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
		x.awaitPart("shop-prod  shop  1.5.0    Baking 33%  264d   1.6.0  " + wideReason)
		x.change(modified(ended("shop")))
		x.awaitPart(wideReason + "\nshop-prod  shop  1.5.0    Succeeded   264d   -      up to date")
		if written := x.written(); strings.Contains(written, "\x1b") {
			t.Errorf("%q writes escape codes: %q", args, written)
		}
	}
}

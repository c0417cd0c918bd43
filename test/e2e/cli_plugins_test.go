// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// The names that users call the command line by.
const (
	itself    = "flux-rollout"
	ofKubectl = "kubectl rollouts"
	ofFlux    = "flux rollout"
)

// called returns a function that runs the command line by the name that users call it by.
func called(t *testing.T, c *env.CommandLine, name string) func(args ...string) env.Answer {
	t.Helper()
	if name == itself {
		return c.Under(filepath.Join(c.Plugins(), name))
	}
	host, plugin, _ := strings.Cut(name, " ")
	run := under(t, c, host)
	return func(args ...string) env.Answer {
		t.Helper()
		return run(append([]string{plugin}, args...)...)
	}
}

// under returns a function that runs the real kubectl or flux, with the command line as
// its plugin.
func under(t *testing.T, c *env.CommandLine, host string) func(args ...string) env.Answer {
	t.Helper()
	built, err := parts.Build(t.Context(), os.Stderr, parts.Name(host))
	if err != nil {
		t.Fatal(err)
	}
	return c.Under(built[parts.Name(host)])
}

// Cases 1 and 2.
func TestKubectlAndFluxRunTheCommandLine(t *testing.T) {
	s := gated(t)
	for _, name := range []string{ofKubectl, ofFlux} {
		t.Run(name, func(t *testing.T) {
			run := called(t, s.CommandLine(s.Namespace+":henry", masters), name)
			for _, tt := range []struct {
				args []string
				code int
				want string
			}{
				{[]string{"explain", s.Name, "-n", s.Namespace}, 0, "► " + name + " approve shop --gate freeze --version 1.1.0"},
				{[]string{"explain", s.Name, "--version=1.1.0", "--check"}, 2, "1.1.0   held by 1"},
				{[]string{"explain", s.Name, "-n", "nowhere"}, 1, "there is no Rollout shop in namespace nowhere"},
				{[]string{"explain"}, 1, "see: " + name + " explain --help"},
				{[]string{"explain", "--help"}, 0, "\n  " + name + " explain shop\n"},
				{[]string{"__complete", "explain", "sh"}, 0, "shop\n:4\n"},
			} {
				answer := run(tt.args...)
				if answer.Code != tt.code || !strings.Contains(answer.Stdout+answer.Stderr, tt.want) {
					t.Errorf("%s %q: want exit code %d and %q, got %+v", name, tt.args, tt.code, tt.want, answer)
				}
			}
		})
	}
}

func TestKubectlAndFluxCompleteTheCommandLine(t *testing.T) {
	s := gated(t)
	for _, name := range []string{ofKubectl, ofFlux} {
		t.Run(name, func(t *testing.T) {
			host, plugin, _ := strings.Cut(name, " ")
			run := under(t, s.CommandLine(s.Namespace+":julia", masters), host)
			for typed, want := range map[string]string{
				"expl":               "explain\tSay why a release is not out, and what would let it go\n:4\n",
				"explain sh":         "shop\n:4\n",
				"explain shop --che": "--check\texit with 2 if nothing can go out: the release, or without --version every candidate, is held, the Rollout is suspended, or it has failed\n:4\n",
			} {
				answer := run(append([]string{"__complete", plugin}, strings.Fields(typed)...)...)
				if answer.Stdout != want {
					t.Errorf("completion of %q: want %q, got %+v", name+" "+typed, want, answer)
				}
			}
		})
	}
}

func TestFluxPassesArgumentsVerbatim(t *testing.T) {
	s := gated(t)
	ivan := s.CommandLine(s.Namespace+":ivan", masters)
	run := called(t, ivan, ofFlux)
	_, remedy, _ := strings.Cut(run("explain", s.Name).Stdout, "► "+ofFlux+" ")
	remedy, _, _ = strings.Cut(remedy, "\n")
	if answer := run(append(strings.Fields(remedy), "-y")...); answer.Code != 0 {
		t.Fatalf("%s %s: %+v", ofFlux, remedy, answer)
	}
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)

	flux := under(t, ivan, "flux")
	if answer := flux("--namespace", "nowhere", "rollout", "explain", s.Name); answer.Code != 1 || !strings.Contains(answer.Stderr, "namespace nowhere") {
		t.Errorf("a namespace before the name of the plugin: %+v", answer)
	}
	message := `it's "slow"; $HOME --namespace=x  -- *`
	if answer := run("rollback", s.Name, "-y", "-m", message); answer.Code != 0 {
		t.Fatalf("%s rollback: %+v", ofFlux, answer)
	}
	if got := *s.AwaitState("1.0.0", v1alpha1.BakeSucceeded).Current().Message; got != message {
		t.Errorf("the history says %q, want %q", got, message)
	}
}

func TestFluxListsTheCommandLineAmongItsPlugins(t *testing.T) {
	s := newEnv(t)
	flux := under(t, s.CommandLine(s.Namespace+":kim", masters), "flux")
	listed := flux("plugin", "list")
	if words := strings.Fields(listed.Stdout); listed.Code != 0 || !slices.Equal(words[:min(len(words), 5)], []string{"NAME", "VERSION", "PATH", "rollout", "manual"}) {
		t.Errorf("flux plugin list: %+v", listed)
	}
	if help := flux("--help"); !strings.Contains(help.Stdout, "Runs the rollout plugin") {
		t.Errorf("flux --help: %+v", help)
	}
}

// Case 8.
func TestPinByTheCommandLineOutlivesTheParent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{itself, ofKubectl, ofFlux} {
		t.Run(name, func(t *testing.T) {
			p := ruled(t)
			p.commit(p.rollout("", 1))
			p.awaitRollout()
			for _, version := range []string{"0.9.0", "1.0.0"} {
				p.Publish(p.ConfigRelease(version))
			}
			p.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

			run := called(t, p.CommandLine(p.Namespace+":lena", masters), name)
			if answer := run("pin", p.Name, "0.9.0", "-y", "-m", "1.0.0 is slow"); answer.Code != 0 {
				t.Fatalf("%s pin: %+v", name, answer)
			}
			p.AwaitState("0.9.0", v1alpha1.BakeSucceeded)
			for pass := range 3 {
				after := p.applied("", pass+2)
				if diff := cmp.Diff([]string{"rollouts-cli"}, managersOf(after, "f:wantedVersion")); diff != "" || after.Pinned() != "0.9.0" {
					t.Errorf("after pass %d, the pin is %q, of (-want +got):\n%s", pass+1, after.Pinned(), diff)
				}
			}
		})
	}
}

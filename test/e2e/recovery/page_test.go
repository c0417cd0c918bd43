// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// page runs the commands of a page of docs/guides as a user who may do everything. The page
// calls the environments shop-staging and shop-production.
type page struct {
	t    *testing.T
	run  func(args ...string) env.Answer
	file string
	// start restarts the controller of staging with a flag, in a cluster of its own.
	start  func(flag string)
	begin  string // what comes before the commands of the page
	rename *strings.Replacer
}

// step is commands of the page, and what it shows after them, if anything; or flags that it
// starts a controller with.
type step struct{ commands, shown, flags string }

// page returns the page about recovery for an application.
func (a *application) page() *page {
	t := a.prod.T
	t.Helper()
	built, err := parts.Build(t.Context(), os.Stderr, parts.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	user := a.prod.CommandLine(a.prod.Namespace+":anna", "system:masters")
	user.AddCluster(stagingCluster, a.staging.CommandLine(a.staging.Namespace+":bert", "system:masters"))
	user.AddCluster(prodCluster, user)
	return &page{
		t: t, run: user.Under("/bin/sh"), file: "backup-and-recovery.md", start: a.startsStagingWith,
		begin: fmt.Sprintf("set -e; kubectl() { %q \"$@\"; }; cd %q\n", built[parts.Kubectl], t.TempDir()),
		rename: strings.NewReplacer("shop-staging", a.staging.Namespace, "shop-production", a.prod.Namespace,
			goneUID, a.gone, "config/crd", filepath.Join(parts.Root(), "config", "crd")),
	}
}

// goneUID is that of a cluster that is gone, in the page.
const goneUID = "5f2c7a3e-0d7e-4f5b-9d6c-2f4a2f3c9b11"

// controllers are the commands that stop and start the controller, which is no Deployment
// here.
var controllers = map[string]func(context.Context) error{
	scaled("0"): func(ctx context.Context) error { return plane.Controller.Stop(ctx) },
	scaled("1"): func(ctx context.Context) error { return plane.Controller.Start(ctx) },
}

func scaled(replicas string) string {
	return "kubectl -n kuberik-system scale deployment rollout-controller-controller-manager --replicas=" + replicas
}

// does runs all commands of a section, and awaits what the page shows after them.
func (p *page) does(section string) {
	p.t.Helper()
	for _, s := range p.steps(section) {
		p.follow(s)
	}
}

// follow runs one step. Commands that show something change nothing: they are run until they
// show it.
func (p *page) follow(s step) {
	p.t.Helper()
	if control, ok := controllers[s.commands]; ok {
		if err := control(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	if s.flags != "" {
		p.start(p.rename.Replace(s.flags))
		return
	}
	if s.shown == "" {
		p.must(s.commands)
		return
	}
	want := pattern(p.rename.Replace(s.shown))
	env.Eventually(p.t, s.shown, func() (bool, string) {
		shown := p.must(s.commands)
		return want.MatchString(flat(shown)), shown
	})
}

// must runs commands that have to succeed.
func (p *page) must(commands string) string {
	p.t.Helper()
	answer := p.run("-c", p.begin+p.rename.Replace(commands))
	if answer.Code != 0 {
		p.t.Fatalf("%s\nexited with %d:\n%s%s", commands, answer.Code, answer.Stdout, answer.Stderr)
	}
	return answer.Stdout
}

// pattern matches what a command prints. The page writes … for what differs each time.
func pattern(shown string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(flat(shown)), "…", `.+`) + "$")
}

// flat returns words with one space between each two: the widths of columns differ.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

var (
	heading = regexp.MustCompile("(?m)^##+ ")
	block   = regexp.MustCompile("(?ms)^ *```(sh|text)\n(.*?)^ *```$")
)

// steps returns the steps of a section of the page, without those of the sections below it.
func (p *page) steps(section string) []step {
	p.t.Helper()
	var steps []step
	for _, b := range block.FindAllStringSubmatch(p.section(section), -1) {
		switch content := strings.TrimSpace(b[2]); {
		case b[1] == "sh":
			steps = append(steps, step{commands: content})
		case strings.HasPrefix(content, "--"):
			steps = append(steps, step{flags: content})
		default:
			steps[len(steps)-1].shown = content
		}
	}
	if len(steps) == 0 {
		p.t.Fatalf("section %q has no commands", section)
	}
	return steps
}

// section returns the text of a section.
func (p *page) section(title string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "guides", p.file))
	if err != nil {
		p.t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "# "+title+"\n")
	if !found {
		p.t.Fatalf("%s has no section %q", p.file, title)
	}
	if next := heading.FindStringIndex(after); next != nil {
		after = after[:next[0]]
	}
	return after
}

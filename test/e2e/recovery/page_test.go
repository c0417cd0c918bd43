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

// page runs the commands of docs/guides/backup-and-recovery.md as a user who may do
// everything. The page calls the environments shop-staging and shop-production.
type page struct {
	t      *testing.T
	run    func(args ...string) env.Answer
	begin  string // what comes before the commands of the page
	rename *strings.Replacer
}

// step is commands of the page, and what it shows after them, if anything.
type step struct{ commands, shown string }

// page returns the page for an application.
func (a *application) page() *page {
	t := a.prod.T
	t.Helper()
	built, err := parts.Build(t.Context(), os.Stderr, parts.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	user := a.prod.CommandLine(a.prod.Namespace+":anna", "system:masters")
	return &page{
		t: t, run: user.Under("/bin/sh"),
		begin: fmt.Sprintf("set -e; kubectl() { %q \"$@\"; }; cd %q\n", built[parts.Kubectl], t.TempDir()),
		rename: strings.NewReplacer("shop-staging", a.staging.Namespace, "shop-production", a.prod.Namespace,
			"config/crd", filepath.Join(parts.Root(), "config", "crd")),
	}
}

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
	for _, s := range stepsOf(p.t, section) {
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

var block = regexp.MustCompile("(?ms)^ *```(sh|text)\n(.*?)^ *```$")

// stepsOf returns the steps of a section of the page.
func stepsOf(t *testing.T, section string) []step {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "guides", "backup-and-recovery.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("the page has no section %q", section)
	}
	body, _, _ := strings.Cut(after, "\n## ")
	var steps []step
	for _, b := range block.FindAllStringSubmatch(body, -1) {
		switch content := strings.TrimSpace(b[2]); b[1] {
		case "sh":
			steps = append(steps, step{commands: content})
		case "text":
			steps[len(steps)-1].shown = content
		}
	}
	if len(steps) == 0 {
		t.Fatalf("section %q has no commands", section)
	}
	return steps
}

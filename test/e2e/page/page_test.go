// SPDX-License-Identifier: Apache-2.0

// Package page tests the page of `ui` in a real browser, on a real control plane.
package page

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var plane *env.Plane

func TestMain(m *testing.M) {
	os.Exit(env.Main(m, &plane, controlplane.Options{Flux: true, ImageScanner: true}))
}

// interrupted is the exit code after Ctrl-C.
const interrupted = 130

// masters may do everything.
const masters = "system:masters"

// gated returns an application that runs 1.0.0. A gate holds 1.1.0.
func gated(t *testing.T) *env.Application {
	t.Helper()
	a := env.NewApplication(t, plane)
	a.Release("1.0.0")
	a.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	gate := fixture.MakeGate("qa", a.Name).Closed().Obj()
	gate.Namespace = a.Namespace
	a.Create(gate)
	a.Release("1.1.0")
	a.AwaitCandidate("1.1.0")
	return a
}

// tab is a tab of a browser that shows the page.
type tab struct {
	t       *testing.T
	running *env.Running
	ended   bool
	browser
}

var printed = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#k=\S+`)

// open starts the page as a user, and opens it.
func open(t *testing.T, as *env.CommandLine) *tab {
	t.Helper()
	o := &tab{t: t, running: as.Start("ui", "--open=false")}
	t.Cleanup(o.end)
	o.running.AwaitText("#k=")
	o.browser = newBrowser(t)
	o.do(t, chromedp.Navigate(printed.FindString(o.running.Said())))
	return o
}

// end ends the program as Ctrl-C does, once.
func (o *tab) end() {
	if o.ended {
		return
	}
	o.ended = true
	o.running.Interrupt()
	if ended := o.running.End(); ended.Code != interrupted {
		o.t.Errorf("Ctrl-C: %+v", ended)
	}
}

// shows waits until the page shows a text.
func (o *tab) shows(text string) {
	o.t.Helper()
	env.Eventually(o.t, "a page with "+text, func() (bool, string) {
		seen := o.text()
		return strings.Contains(seen, text), seen
	})
}

func (o *tab) text() string {
	o.t.Helper()
	return ask(o.t, o.browser, chromedp.Evaluate[string](`document.body.innerText`))
}

// picture keeps what the page looks like in a folder, for a person to look at.
func (o *tab) picture(name string) {
	o.t.Helper()
	folder := os.Getenv("PICTURES")
	if folder == "" {
		return
	}
	image := ask(o.t, o.browser, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(folder, name+".png"), image, 0o600); err != nil {
		o.t.Error(err)
	}
}

// Cases 1, 26 and 27: from the list to the reason, and a change is seen without reload.
func TestPageSaysWhyAReleaseIsNotOut(t *testing.T) {
	a := gated(t)
	o := open(t, a.CommandLine(a.Namespace+":kate", masters))
	o.shows("not passing: RolloutGate qa")
	o.shows("☝ 1 wait for a person")
	o.picture("fleet")
	o.do(t, chromedp.Click(chromedp.CSS("main th a")))
	for _, text := range []string{"1.1.0 held by 1", "SomeGatesBlocking", "If nobody does anything: nothing goes out", "kubectl rollouts explain shop", "2 of 2 applied 1.0.0", "What the release reaches"} {
		o.shows(text)
	}
	o.picture("rollout")
	gate := fixture.MakeGate("qa", a.Name).Obj()
	gate.Namespace = a.Namespace
	a.Change(gate, func() { gate.Spec.Passing = new(true) })
	a.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	o.shows("There is no newer release.")
	o.do(t, chromedp.Click(chromedp.CSS("header a")))
	o.shows("✔ Up to date")

	o.end()
	o.shows("reconnecting")
}

// Case 29: the API server is away, and comes back.
func TestPageSaysThatTheAPIServerIsAway(t *testing.T) {
	a := gated(t)
	as, between := a.CommandLine(a.Namespace+":lucy", masters).Through()
	o := open(t, as)
	o.shows("RolloutGate qa")
	between.Inject(func(wire.Request) wire.Fault { return wire.Drop() })
	between.BreakConnections()
	o.shows("the API server does not answer")
	between.Inject(nil)
	o.shows("live ")
}

// The address is good for one browser: whoever reads it later from a list of processes is
// refused, and the terminal says so.
func TestAddressIsGoodForOneBrowser(t *testing.T) {
	a := gated(t)
	o := open(t, a.CommandLine(a.Namespace+":mary", masters))
	o.shows("RolloutGate qa")
	other := &tab{t: t, running: o.running, browser: newBrowser(t)}
	other.do(t, chromedp.Navigate(printed.FindString(o.running.Said())))
	other.shows("not connected")
	o.running.AwaitText("the key was used before")
}

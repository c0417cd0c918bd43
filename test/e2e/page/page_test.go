// SPDX-License-Identifier: Apache-2.0

// Package page tests the page of `ui` in a real browser, on a real control plane.
package page

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/browser"
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
	browser.Browser
}

var printed = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/#k=\S+`)

// open starts the page as a user, and opens it.
func open(t *testing.T, as *env.CommandLine, flags ...string) *tab {
	t.Helper()
	o := &tab{t: t, running: as.Start(append([]string{"ui", "--open=false"}, flags...)...)}
	t.Cleanup(func() { o.running.End() }) // the end of the test kills it
	o.running.AwaitText("#k=")
	o.Browser = browser.Start(t)
	o.Do(t, chromedp.Navigate(printed.FindString(o.running.Said())))
	o.shows("live ") // it has its session now
	return o
}

// shows waits until the page shows a text.
func (o *tab) shows(text string) {
	o.t.Helper()
	env.Eventually(o.t, "a page with "+text, func() (bool, string) {
		seen := o.text()
		return strings.Contains(seen, text), seen
	})
}

// text is what the page shows. While a page takes the place of another one, it is an error of
// the browser.
func (o *tab) text() string {
	o.t.Helper()
	seen, err := chromedp.Run(o.Ctx, chromedp.Evaluate[string](`document.body?.innerText ?? ""`))
	if err != nil {
		return err.Error()
	}
	return seen
}

// picture keeps what the page looks like in a folder.
func (o *tab) picture(name string) {
	o.t.Helper()
	folder := os.Getenv("PICTURES")
	if folder == "" {
		return
	}
	image := browser.Ask(o.t, o.Browser, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(folder, name+".png"), image, 0o600); err != nil {
		o.t.Error(err)
	}
}

// Cases 1, 26 and 27: from the list to the reason, and a change is seen without reload.
func TestPageSaysWhyAReleaseIsNotOut(t *testing.T) {
	a := gated(t)
	o := open(t, a.CommandLine(a.Namespace+":kate", masters))
	own := "/?q=" + a.Namespace // the other tests have Rollouts, too
	o.goes(own)
	o.shows("not passing: RolloutGate qa")
	o.shows("☝ 1 wait for a user")
	o.picture("fleet")
	o.Do(t, chromedp.Click(chromedp.CSS("main th a")))
	for _, text := range []string{"1.1.0 held by 1", "SomeGatesBlocking", "If nobody does anything: nothing goes out", "kubectl rollouts explain shop", "2 of 2 applied 1.0.0", "What the release reaches"} {
		o.shows(text)
	}
	o.picture("rollout")
	gate := fixture.MakeGate("qa", a.Name).Obj()
	gate.Namespace = a.Namespace
	a.Change(gate, func() { gate.Spec.Passing = new(true) })
	a.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	o.shows("There is no newer release.")
	o.goes(own)
	o.shows("✔ Up to date")

	o.running.Interrupt()
	if ended := o.running.End(); ended.Code != interrupted {
		t.Errorf("Ctrl-C: %+v", ended)
	}
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

// The address is good for one Browser: whoever reads it later from a list of processes is
// refused, and the terminal says so.
func TestAddressIsGoodForOneBrowser(t *testing.T) {
	a := gated(t)
	o := open(t, a.CommandLine(a.Namespace+":mary", masters))
	o.shows("RolloutGate qa")
	other := &tab{t: t, running: o.running, Browser: browser.Start(t)}
	other.Do(t, chromedp.Navigate(printed.FindString(o.running.Said())))
	other.shows("not connected")
	o.running.AwaitText("the key was used before")
}

// A tenant sees the namespace in which he has a role, and why nothing else is shown.
func TestTenantSeesHisOwnNamespace(t *testing.T) {
	mine, other := gated(t), gated(t)
	name := metav1.ObjectMeta{Namespace: mine.Namespace, Name: "tenant"}
	mine.Create(&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"kuberik.com", "image.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io"},
		Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
	}}}, &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: mine.Namespace + ":tenant"}},
	})
	as := mine.CommandLine(mine.Namespace + ":tenant")
	env.Eventually(t, "an API server that knows the role", func() (bool, string) {
		answer := as.Run("get", "-o", "name")
		return answer.Code == 0, answer.Stderr
	})
	o := open(t, as)
	o.shows("not passing: RolloutGate qa")
	if seen := o.text(); strings.Contains(seen, other.Namespace) || !strings.Contains(seen, "kubectl rollouts get") || strings.Contains(seen, "get -A") {
		t.Errorf("the tenant sees:\n%s", seen)
	}
	o.Do(t, chromedp.Click(chromedp.CSS("main th a")))
	o.shows("1.1.0 held by 1")
	o.shows("SomeGatesBlocking")
	o.goes("/rollouts/" + other.Namespace + "/shop")
	o.shows("forbidden")
}

// goes opens an address of the page.
func (o *tab) goes(path string) {
	o.t.Helper()
	o.Do(o.t, chromedp.Navigate(printed.FindStringSubmatch(o.running.Said())[1]+path))
}

// Case 38: nothing that a rule of WCAG 2.2 AA finds, light and dark, wide and narrow, and no
// page that scrolls sideways.
func TestPagesCanBeReadByEverybody(t *testing.T) {
	a := gated(t)
	o := open(t, a.CommandLine(a.Namespace+":ann", masters), allowed)
	o.shows("RolloutGate qa")
	for name, path := range map[string]string{"list": "/", "rollout": "/rollouts/" + a.Namespace + "/shop", "pipelines": "/pipelines"} {
		o.goes(path)
		o.shows("live ")
		o.canBeRead(name)
	}
}

// canBeRead checks what is shown.
func (o *tab) canBeRead(name string) {
	o.t.Helper()
	axe, err := os.ReadFile("../../../web/node_modules/axe-core/axe.min.js")
	if err != nil {
		browser.Required(o.t, "axe-core is not there: run hack/browser.sh")
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 360} {
			o.Do(o.t, chromedp.EmulateViewport(width, 800))
			o.schemes(scheme)
			found := browser.Ask(o.t, o.Browser, chromedp.Evaluate[string](string(axe)+`; axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}).then(
				(r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html).join("\n")).join("\n"))`, chromedp.EvalAwaitPromise))
			if found != "" {
				o.t.Errorf("%s, %s, %d pixels: %s", name, scheme, width, found)
			}
			if wide := browser.Ask(o.t, o.Browser, chromedp.Evaluate[int64](`Math.max(document.documentElement.scrollWidth, document.querySelector("dialog")?.scrollWidth ?? 0)`)); wide > width {
				o.t.Errorf("%s is %d pixels wide on %d", name, wide, width)
			}
			o.picture(name + "-" + scheme + "-" + strconv.FormatInt(width, 10))
		}
	}
}

// Case 15: text of objects is text, and marks that would turn it around are seen.
func TestTextOfObjectsIsText(t *testing.T) {
	a := gated(t)
	a.Ask(v1alpha1.DeployMessageAnnotation, "<img src=x onerror=alert(1)> \u202egnp.exe "+strings.Repeat("long", 100))
	a.Pin("1.1.0")
	a.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	o := open(t, a.CommandLine(a.Namespace+":eve", masters))
	o.goes("/rollouts/" + a.Namespace + "/shop")
	o.shows("<img src=x onerror=alert(1)> \u2423gnp.exe longlong")
	if n := browser.Ask(t, o.Browser, chromedp.Evaluate[int64](`document.querySelectorAll("main img").length`)); n > 0 {
		t.Errorf("the text has become %d images", n)
	}
}

// Cases 32 and 39: the address has the search and the filter, and each reason for an empty
// list has words of its own.
func TestAddressHasWhatIsSearched(t *testing.T) {
	a := gated(t)
	o := open(t, a.CommandLine(a.Namespace+":joe", masters))
	o.goes("/?q=" + url.QueryEscape("QA "+a.Namespace))
	o.shows("1 all")
	o.shows("RolloutGate qa")
	o.goes("/?state=failed&q=" + a.Namespace)
	o.shows("No Rollout matches.")
	o.goes("/?q=" + url.QueryEscape("([*ä"))
	o.shows("No Rollout matches.")
	o.Do(t, chromedp.Click(chromedp.CSS(".nothing button")))
	o.shows("RolloutGate qa")
	o.goes("/pipelines")
	o.shows("kubectl rollouts pipeline -A")
	o.goes("/rollouts/" + a.Namespace + "/nobody")
	o.shows("there is no Rollout nobody")

	none := open(t, a.CommandLine(a.Namespace+":jim", masters), "-n", "default")
	none.shows("There is no Rollout in namespace default.")
}

// schemes shows the page as a system with light or dark colours does.
func (o *tab) schemes(name string) {
	o.t.Helper()
	if _, err := chromedp.Call(o.Ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	}); err != nil {
		o.t.Fatalf("the Browser: %v", err)
	}
}

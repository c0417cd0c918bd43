// SPDX-License-Identifier: Apache-2.0

// Package browser shows pages to tests in a real browser.
package browser

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// programs are the names of programs that can show a page.
var programs = []string{"chromium", "chromium-headless-shell", "google-chrome"}

// Find finds a browser. Without one, the test is skipped, unless it is required.
func Find(t *testing.T) string {
	t.Helper()
	program, found := Program()
	if !found {
		Required(t, "there is no browser: run hack/browser.sh, or set CHROMIUM")
	}
	return program
}

// Program returns the path of a browser, if there is one.
func Program() (path string, found bool) {
	for _, name := range append([]string{os.Getenv("CHROMIUM")}, programs...) {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path, true
		}
	}
	return "", false
}

// Required ends the test because something is not there: CI must have it.
func Required(t *testing.T, because string) {
	t.Helper()
	if os.Getenv("REQUIRE_BROWSER") != "" {
		t.Fatal(because)
	}
	t.Skip(because)
}

// Browser is a browser with one tab.
type Browser struct{ Ctx context.Context }

// Start starts a browser. The test fails if anything that a page does is an error, or against
// its own policy.
func Start(t *testing.T, more ...chromedp.ExecAllocatorOption) Browser {
	t.Helper()
	ctx, end := Open(t.Context(), Find(t), t.TempDir(), more...)
	t.Cleanup(end)
	err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page: %s", event.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if event.Entry.Source == "security" || event.Entry.Source == "violation" {
				t.Errorf("the page: %s", event.Entry.Text)
			}
		}
	})
	if err != nil {
		t.Fatalf("listen to the browser: %v", err)
	}
	return Browser{ctx}
}

// Open opens a tab of a headless browser that keeps its files in an empty folder. The returned
// function ends it.
func Open(ctx context.Context, program, profile string, more ...chromedp.ExecAllocatorOption) (tab context.Context, end func()) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 800), chromedp.Flag("disable-quic", true))
	allocated, release := chromedp.NewExecAllocator(ctx, append(options, more...)...)
	tab, closeTab := chromedp.NewContext(allocated)
	return tab, func() { closeTab(); release() }
}

// Do acts one step after another.
func (b Browser) Do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, step := range steps {
		Ask(t, b, step)
	}
}

// Ask acts, and returns what the browser answers.
func Ask[T any](t *testing.T, b Browser, action chromedp.Action[T]) T {
	t.Helper()
	patient, stop := context.WithTimeout(b.Ctx, fixture.Patience)
	defer stop()
	answer, err := chromedp.Run(patient, action)
	if err != nil {
		t.Fatalf("the browser: %v", err)
	}
	return answer
}

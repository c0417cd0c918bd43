// SPDX-License-Identifier: Apache-2.0

package page

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

// browsers are the names of programs that can show the page.
var browsers = []string{"chromium", "chromium-headless-shell", "google-chrome"}

// findBrowser finds a browser. Without one, the test is skipped, unless it is required.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range append([]string{os.Getenv("CHROMIUM")}, browsers...) {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	required(t, "there is no browser: run hack/browser.sh, or set CHROMIUM")
	return ""
}

// required ends the test because something is not there: CI must have it.
func required(t *testing.T, because string) {
	t.Helper()
	if os.Getenv("REQUIRE_BROWSER") != "" {
		t.Fatal(because)
	}
	t.Skip(because)
}

// browser is a browser with one tab.
type browser struct{ ctx context.Context }

// newBrowser starts a browser. The test fails if anything that the page does is an error, or
// against its own policy.
func newBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(findBrowser(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 800), chromedp.Flag("disable-quic", true))
	options = append(options, more...)
	allocated, release := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(release)
	ctx, end := chromedp.NewContext(allocated)
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
		t.Fatalf("start the browser: %v", err)
	}
	return browser{ctx}
}

// do acts one step after another.
func (b browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for _, step := range steps {
		ask(t, b, step)
	}
}

// ask acts, and returns what the browser answers.
func ask[T any](t *testing.T, b browser, action chromedp.Action[T]) T {
	t.Helper()
	patient, stop := context.WithTimeout(b.ctx, fixture.Patience)
	defer stop()
	answer, err := chromedp.Run(patient, action)
	if err != nil {
		t.Fatalf("the browser: %v", err)
	}
	return answer
}

// SPDX-License-Identifier: Apache-2.0

// Package site builds the documentation as a site, and looks at it in a browser.
package site

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fluxrollouts/rollout-controller/test/browser"
)

func TestSite(t *testing.T) {
	browser.Find(t)
	if _, err := exec.LookPath("npm"); err != nil {
		browser.Required(t, "there is no npm")
	}
	site := served(build(t))
	pages := site.pages(t)
	if len(pages) < 80 {
		t.Errorf("there are only %d pages", len(pages))
	}
	t.Run("links lead somewhere", func(t *testing.T) { site.followLinks(t, pages) })
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	b := browser.Start(t)
	t.Run("pages load, and are in the menu", func(t *testing.T) {
		for _, page := range pages {
			b.Do(t, chromedp.Navigate(server.URL+page))
			if title := browser.Ask(t, b, chromedp.Evaluate[string](`document.querySelector("h1")?.innerText ?? ""`)); title == "" {
				t.Errorf("%s has no heading", page)
			}
			inMenu := `[...document.querySelectorAll(".VPSidebar a")].some((a) => a.pathname === location.pathname)`
			if page != "/" && page != "/contents" && !browser.Ask(t, b, chromedp.Evaluate[bool](inMenu)) {
				t.Errorf("%s is not in the menu", page)
			}
		}
		if missing := site.missing(); len(missing) > 0 {
			t.Errorf("pages ask for what is not there: %q", missing)
		}
	})
	t.Run("search finds a message", func(t *testing.T) {
		b.Do(t, chromedp.Navigate(server.URL+"/"), chromedp.Click(chromedp.CSS(".VPNavBarSearch button")),
			chromedp.SendKeys(chromedp.CSS("input.search-input"), "not passing RolloutGate"))
		found := chromedp.CSS(`.VPLocalSearchBox a[href^="/messages"]`)
		b.Do(t, chromedp.WaitVisible(found))
	})
	screenshots(t, b, server.URL)
}

// screenshots keeps pictures of some pages if a folder for them is named.
func screenshots(t *testing.T, b browser.Browser, url string) {
	t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	for _, page := range []string{"", "quickstart", "guides/environments"} {
		for _, width := range []int64{1280, 360} {
			b.Do(t, chromedp.EmulateViewport(width, 800), chromedp.Navigate(url+"/"+page))
			name := strings.ReplaceAll("site-"+page, "/", "-") + map[int64]string{1280: "-wide.png", 360: "-narrow.png"}[width]
			image := browser.Ask(t, b, chromedp.CaptureScreenshot())
			if err := os.WriteFile(filepath.Join(folder, name), image, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}

// build builds the site, and returns its folder. What npm has installed stays for the next time.
func build(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../bin/site")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "../../hack/site/build.sh", folder)
	command.Env = append(os.Environ(), "VERSION=v1.2.3")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build the site: %v\n%s", err, said)
	}
	return folder
}

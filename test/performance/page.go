// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/fluxrollouts/rollout-controller/test/browser"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

const (
	// pagePatience is how long the page may take to show a fleet.
	pagePatience = 2 * time.Minute
	// typed is how often a search is typed.
	typed = 10
	// pageRest is how long the page is left alone.
	pageRest = 5 * time.Second
)

// measurePage measures what a user of the page waits for, in a real browser. Without one there
// are no figures of it.
func (c *commandLine) measurePage(ctx context.Context, m measured) error {
	program, found := browser.Program()
	if !found {
		c.print("page: there is no browser")
		return nil
	}
	ctx, end := context.WithTimeout(ctx, pagePatience)
	defer end()
	server, address, err := c.servePage(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = server.Wait() }() // it was ended
	defer end()
	profile, err := os.MkdirTemp(c.home, "browser-*")
	if err != nil {
		return err
	}
	tab, closeTab := browser.Open(ctx, program, profile)
	defer closeTab()
	if err := c.measureTab(tab, address, m); err != nil {
		return err
	}
	memory, err := controlplane.MemoryOf(server.Process.Pid)
	m["page.memory"] = float64(memory.Own) / (1 << 20)
	c.print("page: %.0f ms to the list, %.0f kB, typing %.0f ms, %.0f nodes, tab %.0f MiB, server %.0f MiB, %.0f requests at rest",
		m["page.load"], m["page.bytes"], m["page.typing"], m["page.nodes"], m["page.tab"], m["page.memory"], m["page.requests"])
	return err
}

// servePage serves the page until the context ends, and returns its address. It has read the
// fleet then: what is measured is a warm server.
func (c *commandLine) servePage(ctx context.Context) (*exec.Cmd, string, error) {
	server := exec.CommandContext(ctx, c.path, "ui", "--open=false")
	server.Env = append(os.Environ(), c.environment...)
	said, err := server.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := server.Start(); err != nil {
		return nil, "", err
	}
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return nil, "", fmt.Errorf("the page says no address: %w", err)
	}
	_, err = c.quiet(ctx)
	return server, strings.TrimSpace(address), err
}

// The scripts that measure. Each answers with a number.
const (
	// drawn answers with the time from the first request to the first rows.
	drawn = `new Promise((done) => { const look = setInterval(() => {
		if (document.querySelectorAll("main th a").length) { clearInterval(look); requestAnimationFrame(() => done(performance.now())); } }, 2); })`
	// transferred answers with all that has come over the wire, in bytes.
	transferred = `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((sum, e) => sum + e.transferSize, 0)`
	nodes       = `document.querySelectorAll("*").length`
	heap        = `performance.memory.usedJSHeapSize`
	// search answers with the longest time from a key to the frame that shows its result.
	search = `(async () => { const input = document.querySelector("input[type=search]"); let longest = 0;
		for (let i = 0; i < %d; i++) { input.value = "namespace rollout ".slice(0, i + 1); const began = performance.now();
			input.dispatchEvent(new InputEvent("input", { bubbles: true }));
			await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
			longest = Math.max(longest, performance.now() - began); }
		input.value = ""; input.dispatchEvent(new InputEvent("input", { bubbles: true })); return longest; })()`
)

func (c *commandLine) measureTab(tab context.Context, address string, m measured) error {
	if _, err := chromedp.Run(tab, chromedp.Navigate(address)); err != nil {
		return fmt.Errorf("open the page: %w", err)
	}
	for _, step := range []struct {
		key, script string
		unit        float64
	}{
		{"page.load", drawn, 1},
		{"page.bytes", transferred, 1000},
		{"page.nodes", nodes, 1},
		{"page.typing", fmt.Sprintf(search, typed), 1},
		{"page.tab", heap, 1 << 20},
	} {
		value, err := chromedp.Run(tab, chromedp.Evaluate[float64](step.script, chromedp.EvalAwaitPromise))
		if err != nil {
			return fmt.Errorf("measure %s: %w", step.key, err)
		}
		m[step.key] = value / step.unit
	}
	return c.measurePageAtRest(tab, m)
}

// measurePageAtRest counts what the server asks while a tab shows the fleet.
func (c *commandLine) measurePageAtRest(ctx context.Context, m measured) error {
	before, err := c.quiet(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, pageRest); err != nil {
		return err
	}
	after, err := c.requests(ctx)
	m["page.requests"] = float64(after.Since(before).Count(all))
	return err
}

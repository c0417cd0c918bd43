// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const printed = `A rollout controller for Flux
==> Starting a control plane...

2. A newer release
   1.1.0 is pushed.

00:16.0  registry      has a new artifact
3. A bad release
   1.2.0 is pushed, and its pods <never> become ready.

00:26.0  registry      has a new artifact, shop:1.2.0
00:26.1  Rollout       1.2.0 is Deploying: waiting for Flux to apply 1.2.0 to 2 targets, then for 1
                       HealthCheck
01:26.0  Rollout       1.2.0 is Failed
   ✓ promotion 3, of 1.2.0, is Failed

4. The fix waits
`

func TestChapterHasItsLinesAndTimes(t *testing.T) {
	g := NewWithT(t)
	lines, err := step(printed, "3. A bad release")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lines).To(Equal([]line{
		{text: "3. A bad release"},
		{text: "   1.2.0 is pushed, and its pods <never> become ready."},
		{},
		{clock: "00:26.0", actor: "registry", text: "has a new artifact, shop:1.2.0"},
		{at: 100 * time.Millisecond, clock: "00:26.1", actor: "Rollout", text: "1.2.0 is Deploying: waiting for Flux to apply 1.2.0 to 2 targets, then for 1"},
		{at: 100 * time.Millisecond, text: "                       HealthCheck"},
		{at: time.Minute, clock: "01:26.0", actor: "Rollout", text: "1.2.0 is Failed"},
		{at: time.Minute, text: "   ✓ promotion 3, of 1.2.0, is Failed"},
	}))
}

func TestOnlyWhatIsWantedIsDrawn(t *testing.T) {
	g := NewWithT(t)
	lines, err := step(printed, "3. A bad release")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(onlyOf(lines, regexp.MustCompile("^1.2.0 is pushed|^Rollout 1.2.0 is Deploying"))).To(Equal([]line{
		{text: "3. A bad release"},
		{text: "   1.2.0 is pushed, and its pods <never> become ready."},
		{},
		{at: 100 * time.Millisecond, clock: "00:26.1", actor: "Rollout", text: "1.2.0 is Deploying: waiting for Flux to apply 1.2.0 to 2 targets, then for 1"},
		{at: 100 * time.Millisecond, text: "                       HealthCheck"},
	}))
	g.Expect(onlyOf(lines, regexp.MustCompile(""))).To(Equal(lines))
}

func TestChapterThatIsNotThereIsAnError(t *testing.T) {
	for _, title := range []string{"", "3. A bad", "5. You decide"} {
		_, err := step(printed, title)
		NewWithT(t).Expect(err).To(HaveOccurred(), title)
	}
}

func TestDrawIsAnSVGWithEveryLineInItsOrder(t *testing.T) {
	g := NewWithT(t)
	lines, err := step(printed, "3. A bad release")
	g.Expect(err).NotTo(HaveOccurred())
	svg := draw("make demo", lines)
	g.Expect(wellFormed(svg)).To(Succeed())
	g.Expect(svg).To(ContainSubstring("&lt;never&gt;"))
	g.Expect(svg).To(ContainSubstring(`1.2.0 is <tspan class="bad">Failed</tspan>`))
	g.Expect(svg).To(ContainSubstring(`<tspan class="good">✓</tspan> promotion 3`))
	var delays []string
	for _, match := range regexp.MustCompile(`animation-delay: ([0-9.]+)s`).FindAllStringSubmatch(svg, -1) {
		delays = append(delays, match[1])
	}
	g.Expect(delays).To(Equal([]string{"0.0", "0.0", "0.0", "0.0", "0.1", "0.1", "2.1", "2.1"}), "it waits two seconds at most")
}

// The picture in the documentation is a run of the demo as it is now.
func TestPictureOfTheReadmeIsOneOfThese(t *testing.T) {
	g := NewWithT(t)
	svg, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "pictures", "story.svg"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(wellFormed(string(svg))).To(Succeed())
	for _, said := range []string{
		"1.1.0 waits: not passing: RolloutGate qa", "$ kubectl rollouts approve shop", "baking for", "goes back to 1.0.0", "1.0.0 is <tspan class=\"good\">Succeeded",
	} {
		g.Expect(string(svg)).To(ContainSubstring(said))
	}
}

// So are those of the guide to the command line.
func TestPicturesOfTheCommandLineAreOfTheDemo(t *testing.T) {
	for name, parts := range map[string][]string{
		"remedies.svg": {"4. And a failed check", "kubectl rollouts explain shop", "held by 3", "--past-gates"},
		"simulate.svg": {"3. A freeze holds it, too", "kubectl rollouts simulate shop", "is still held"},
	} {
		g := NewWithT(t)
		svg, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "pictures", name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(wellFormed(string(svg))).To(Succeed())
		for _, said := range parts {
			g.Expect(string(svg)).To(ContainSubstring(said))
		}
	}
}

func wellFormed(svg string) error {
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// gated is a cluster in which a gate holds the next release.
const gated = `
apiVersion: kuberik.com/v1alpha1
kind: Rollout
metadata: {name: shop, namespace: default, uid: u1, resourceVersion: "7"}
spec: {releasesImagePolicy: {name: shop}}
status:
  availableReleases: [{tag: 1.3.2}, {tag: 1.5.0}]
  history: [{id: 41, version: {tag: 1.3.2}, timestamp: "2026-11-19T08:12:00Z", bakeStatus: Succeeded}]
---
apiVersion: kuberik.com/v1alpha1
kind: RolloutGate
metadata: {name: qa, namespace: default, resourceVersion: "3"}
spec: {rolloutRef: {name: shop}, passing: false}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: shop, namespace: default}
spec: {imageRepositoryRef: {name: shop}, policy: {semver: {range: ">=1.0.0"}}}
status:
  latestRef: {name: registry.example.com/shop, tag: 1.5.0}
  conditions: [{type: Ready, status: "True", reason: Succeeded, message: "", lastTransitionTime: "2026-11-19T08:12:00Z"}]
`

var promoteGated = []string{"promote", "shop", "--past-gates"}

func TestPromoteAsksOnATerminal(t *testing.T) {
	for name, test := range map[string]struct {
		keys, says string
		code       int
		sends      bool
	}{
		"y":          {"y\n", "✔ Rollout shop", 0, true},
		"yes":        {"yes\n", "✔ Rollout shop", 0, true},
		"n":          {"n\n", "✗ nothing was changed", program.No, false},
		"Enter":      {"\n", "✗ nothing was changed", program.No, false},
		"other text": {"past-gates\n", "✗ nothing was changed", program.No, false},
		"Ctrl-D":     {"\x04", "\n✗ nothing was changed", program.No, false},
		"Ctrl-C":     {"\x03", "\n✗ nothing was changed", program.Interrupted, false},
		"y, Ctrl-C":  {"y\x03", "\n✗ nothing was changed", program.Interrupted, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := onTerminal(t, 80, gated, nil, promoteGated...)
			x.awaitPart("? go on? [y/N]")
			x.press(test.keys)
			if code := x.awaitExit(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			x.awaitPart(test.says)
			if _, err := os.Stat(x.patch); (err == nil) != test.sends {
				t.Errorf("sent: %v, want %v; it shows:\n%s", err == nil, test.sends, x.text())
			}
		})
	}
}

func TestTerminalThatHasNoColoursGetsNone(t *testing.T) {
	for variable, want := range map[string]bool{"": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		x := onTerminal(t, 80, gated, []string{variable}, "explain", "shop")
		x.awaitExit()
		x.awaitPart("✗ SomeGatesBlocking")
		written := x.written()
		if has := strings.Contains(written, "\x1b"); has != want {
			t.Errorf("with %q, escape codes: %v, want %v: %q", variable, has, want, written)
		}
	}
}

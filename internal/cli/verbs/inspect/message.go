// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"errors"
	"regexp"
	"strings"

	"github.com/fluxrollouts/rollout-controller/internal/cli/messages"
)

// message says what a message of the controller means. It asks no cluster.
func (e *explaining) message() error {
	if !e.out.IsText() {
		return errors.New("--message prints text: leave out -o")
	}
	found := messages.Find(e.said)
	if len(found) == 0 {
		return errors.New("no message of the controller is like that: copy a whole sentence of it, or its reason")
	}
	for i, f := range found {
		if i > 0 {
			e.Program.Out.Line("")
		}
		e.Program.Out.Prose("%s: %s", e.Program.Out.Bold(f.Section), plain(f.Seen))
		e.Program.Out.Prose("  %s", plain(f.Means))
	}
	return nil
}

var linked = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// plain returns a text of the catalogue as it is read in a terminal.
func plain(markdown string) string {
	return strings.NewReplacer("`", "", "<br>", "; ").Replace(linked.ReplaceAllString(markdown, "$1"))
}

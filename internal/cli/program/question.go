// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// Effect is what a change does.
type Effect struct {
	// Lines are in words, without times.
	Lines []string
	// Cautions say what is bad about the release that is chosen.
	Cautions []string
	// Held is what holds the release now; empty if nothing does.
	Held string
	// Promotes is true if a release goes out at once, or may do so.
	Promotes bool
}

// AskUser asks if a change is to be made, and names the cluster. Everything but "y" and
// "yes" is a no, and so is an interrupt.
func (p *Program) AskUser(ctx context.Context) error {
	if !p.Asks {
		return errors.New("nothing was changed: with -y it is, without a question")
	}
	in := ""
	if cluster := p.ClusterName(); cluster != "" {
		in = " in " + show.Clean(cluster)
	}
	fmt.Fprintf(p.Err.Out, "%s go on%s? [y/N] ", p.Err.Sign(show.Asks), in)
	// Nothing ends a read from a terminal: after an interrupt it stays until the process ends.
	answers := make(chan string, 1)
	go func() {
		answer, err := bufio.NewReader(p.In).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			answer = ""
		}
		answers <- answer
	}()
	select {
	case answer := <-answers:
		return p.agreed(answer)
	case <-ctx.Done():
		return p.agreed("")
	}
}

// agreed returns nil for "y" and "yes". After an answer without the key Enter it begins a
// new line, for what comes next.
func (p *Program) agreed(answer string) error {
	if !strings.HasSuffix(answer, "\n") {
		p.Err.Line("")
	}
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return Refuse("nothing was changed")
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// errNotAgreed ends a verb because the user did not agree.
var errNotAgreed = errors.New("nothing was changed")

// askUser asks if a change is to be made. Everything but "y" and "yes" is an error, and so
// is an interrupt.
func (p *program) askUser(ctx context.Context) error {
	if !p.asks {
		return errors.New("nothing was changed: with -y it is, without a question")
	}
	fmt.Fprintf(p.err.Out, "%s go on? [y/N] ", p.err.Sign(show.Asks))
	// Nothing ends a read from a terminal: after an interrupt it stays until the process ends.
	answers := make(chan string, 1)
	go func() {
		answer, err := bufio.NewReader(p.in).ReadString('\n')
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
func (p *program) agreed(answer string) error {
	if !strings.HasSuffix(answer, "\n") {
		p.err.Line("")
	}
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return errNotAgreed
	}
	return nil
}

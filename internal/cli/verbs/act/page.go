// SPDX-License-Identifier: Apache-2.0

package act

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/web"
)

// Page makes the changes of the page: each by the verb of the command line, with its checks
// and its request. Only the question is another one.
type Page struct{ *program.Program }

// onPage are the verbs of the page.
var onPage = map[string]func(*program.Program) *cobra.Command{
	"promote": NewPromote, "rollback": NewRollback, "pin": NewPin, "unpin": NewUnpin, retryVerb: NewRetry, "unblock": NewUnblock,
	"suspend": NewSuspend, "resume": NewResume, "lift": NewLift, "unfreeze": NewUnfreeze,
	"approve": NewApprove, "reject": NewReject, "override": NewOverride,
}

// flagsOnPage are those that say what is asked for. The page chooses neither the cluster nor
// the user, and writes no files.
var flagsOnPage = []string{"version", "to", "gate", "role", "for", "past-gates", "force", "withdraw", "revoke"}

const (
	reasonFlag = "message"
	// unsaid satisfies the checks of a verb before the user writes a reason.
	unsaid = "(your reason)"
)

// errSeen ends a verb that was only to say what it would do.
var errSeen = errors.New("the effect was shown")

// Predict implements web.Actions.
func (p Page) Predict(ctx context.Context, of types.NamespacedName, a web.Action) (web.Prediction, error) {
	var seen web.Prediction
	said, err := p.run(ctx, of, a, unsaid, func(now web.Prediction) error {
		seen = now
		return errSeen
	})
	switch {
	case err == nil: // it is so already
		return seen, program.Refuse("%s", strings.Join(said, "\n"))
	case errors.Is(err, errSeen):
		return seen, nil
	}
	return seen, p.explained(err)
}

// Send implements web.Actions.
func (p Page) Send(ctx context.Context, of types.NamespacedName, a web.Action, seen string) ([]string, error) {
	said, err := p.run(ctx, of, a, "", func(now web.Prediction) error {
		switch {
		case now.Seen != seen:
			return web.Another{Now: now}
		case now.Reason == web.ReasonRequired && strings.TrimSpace(a.Reason) == "":
			return program.Refuse("say why, in your own words")
		}
		return nil
	})
	return said, p.explained(err)
}

// explained returns an error without the exit code of the command line.
func (p Page) explained(err error) error {
	var exit program.Exit
	if errors.As(err, &exit) && exit.Err != nil {
		return exit.Err
	}
	return p.Explained(err)
}

// run runs a verb until its effect is known, and on if that is agreed to. It returns what the
// verb says.
func (p Page) run(ctx context.Context, of types.NamespacedName, a web.Action, otherwise string, agrees func(web.Prediction) error) ([]string, error) {
	var out, notes bytes.Buffer
	style := show.Style{Unicode: true}
	within := p.Within(of.Namespace, show.Printer{Style: style, Out: &out}, show.Printer{Style: style, Out: &notes})
	cmd, use, err := prepared(within, a, otherwise)
	if err != nil {
		return nil, err
	}
	within.Agrees = func(e program.Effect) error {
		now := web.Prediction{Effect: e.Lines, Cautions: e.Cautions, Promotes: e.Promotes, Notes: sentences(notes.String()), Reason: use, Command: p.command(of, a, use)}
		if e.Held != "" {
			now.Notes = append(now.Notes, "held so far: "+e.Held)
		}
		if use == web.ReasonOptional && len(e.Cautions) > 0 {
			now.Reason = web.ReasonRequired
		}
		return agrees(now.As(a))
	}
	cmd.SetContext(ctx)
	name := []string{cmp.Or(a.Name, of.Name)}
	if err := cmd.ValidateArgs(name); err != nil {
		return nil, err
	}
	err = cmd.RunE(cmd, name)
	return sentences(out.String()), err
}

// prepared returns the verb of an action with its flags, and whether it has a reason. Without
// a reason it gets another text; that may be empty.
func prepared(p *program.Program, a web.Action, otherwise string) (*cobra.Command, web.ReasonUse, error) {
	verb, known := onPage[a.Verb]
	if !known {
		return nil, "", fmt.Errorf("the page has no verb %q", a.Verb)
	}
	cmd := verb(p)
	args, asks := cutReason(a.Args)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, "", err
	}
	var others []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(flagsOnPage, f.Name) {
			others = append(others, "--"+f.Name)
		}
	})
	if others = append(others, cmd.Flags().Args()...); len(others) > 0 {
		return nil, "", fmt.Errorf("the page does not have %s", strings.Join(others, ", "))
	}
	use := useOf(cmd, asks)
	why := cmp.Or(strings.TrimSpace(a.Reason), otherwise)
	if use == web.ReasonNone || why == "" {
		return cmd, use, nil
	}
	return cmd, use, cmd.Flags().Set(reasonFlag, why)
}

// cutReason returns arguments without the reason that is left to the user, and whether there
// was one.
func cutReason(args []string) (rest []string, asks bool) {
	for i := range args {
		if args[i] == "-m" && i+1 < len(args) && args[i+1] == "" {
			return slices.Concat(args[:i], args[i+2:]), true
		}
	}
	return args, false
}

// useOf says whether a verb with its flags has a reason.
func useOf(cmd *cobra.Command, asks bool) web.ReasonUse {
	is := func(flag string) bool { return cmd.Flags().Changed(flag) }
	switch {
	case cmd.Flags().Lookup(reasonFlag) == nil, is("withdraw"):
		return web.ReasonNone
	case asks, is("force"), slices.Contains([]string{"rollback", "override"}, cmd.Name()):
		return web.ReasonRequired
	}
	return web.ReasonOptional
}

// command returns what does the same in a terminal. The reason is left to the user.
func (p Page) command(of types.NamespacedName, a web.Action, use web.ReasonUse) string {
	args, _ := cutReason(a.Args)
	words := append([]string{a.Verb, cmp.Or(a.Name, of.Name)}, args...)
	if use != web.ReasonNone {
		words = append(words, "-m", "")
	}
	return p.CommandLine(of.Namespace, words...)
}

// sentences returns the lines of a text without their signs.
func sentences(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if _, rest, cut := strings.Cut(strings.TrimSpace(line), " "); cut {
			all = append(all, rest)
		}
	}
	return all
}

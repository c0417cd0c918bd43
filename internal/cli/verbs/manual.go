// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/internal/cli/manual"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// newManual writes the reference of the command line. It is no verb for users, who neither
// see nor complete it: `make generate` and releases call it.
func newManual(p *program.Program) *cobra.Command {
	var made string
	cmd := &cobra.Command{
		Use: "__manual markdown|man FOLDER", Short: "Write the reference of the verbs to a folder", Hidden: true,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			pages, err := manualPages(p, args[0], made)
			if err != nil {
				return err
			}
			return manual.Write(args[1], pages)
		},
	}
	cmd.Flags().StringVar(&made, "made", "", "when the sources were made (RFC 3339), for man pages")
	return cmd
}

// manualPages returns the pages in one of two forms. They have the name by which users
// find them, and not the one by which the program was called.
func manualPages(p *program.Program, form, made string) ([]manual.Page, error) {
	as := func(called string) *cobra.Command {
		return newRoot(program.New(called, genericiooptions.IOStreams{In: p.In, Out: p.Out.Out, ErrOut: p.Err.Out}))
	}
	switch form {
	case "markdown":
		return manual.Markdown(as("kubectl rollouts")), nil
	case "man":
		at, err := time.Parse(time.RFC3339, made)
		if err != nil {
			return nil, fmt.Errorf("say when the sources were made, with --made: %w", err)
		}
		return manual.Man(as("flux-rollout"), p.Version, at), nil
	}
	return nil, fmt.Errorf("there is no form %q; choose markdown or man", form)
}

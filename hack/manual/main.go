// SPDX-License-Identifier: Apache-2.0

// Command manual writes the reference of the command line from its command tree to a
// folder, as pages in Markdown or as man pages, or the page of the controller's messages:
//
//	manual FOLDER markdown
//	manual FOLDER messages
//	manual FOLDER man VERSION MADE
//
// A page depends on the tree and on nothing else: it is the same on each machine. Flags of
// the root, which each verb has, are on its own page only.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say which folder to write to")
	}
	pages, err := reference(args[1:])
	if err != nil {
		return err
	}
	return write(args[0], pages)
}

// reference returns the pages in one of two forms, by their file names. They have the name
// by which users find the program.
func reference(form []string) (map[string]string, error) {
	as := func(called string) *cobra.Command {
		return verbs.NewRoot(program.New(called, genericiooptions.NewTestIOStreamsDiscard()))
	}
	switch {
	case len(form) == 1 && form[0] == "markdown":
		return markdown(as("kubectl rollouts")), nil
	case len(form) == 1 && form[0] == "messages":
		return map[string]string{"messages.md": messagesPage()}, nil
	case len(form) == 3 && form[0] == "man":
		made, err := time.Parse(time.RFC3339, form[2])
		if err != nil {
			return nil, err
		}
		return man(as("flux-rollout"), form[1], made), nil
	}
	return nil, errors.New("say markdown, messages, or man VERSION and MADE")
}

// write writes pages to a folder, which it creates. Other files in it stay.
func write(folder string, pages map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

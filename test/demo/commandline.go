// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// plugin is where kubectl finds the command line: next to the kubeconfig.
func (d *demo) plugin() string {
	return filepath.Join(filepath.Dir(d.plane.Kubeconfig()), scenario.CommandLineName)
}

// rollouts runs the command line as a user does, and shows the command and its output.
// The exit code must be 0.
func (s *session) rollouts(ctx context.Context, args ...string) error {
	return s.rolloutsIn(ctx, s.plane, args...)
}

// rolloutsIn does the same in a cluster. Its name is shown if there is more than one.
func (s *session) rolloutsIn(ctx context.Context, plane *controlplane.ControlPlane, args ...string) error {
	s.printer.show(says(you, order, "%s$ kubectl rollouts %s", place(plane), strings.Join(quoted(args), " ")))
	command := exec.CommandContext(ctx, s.plugin(), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig())
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	s.print("\n%s\n", indented(output.String()))
	if err != nil {
		return fmt.Errorf("kubectl rollouts %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// place returns what is shown before a command, to say in which cluster it runs.
func place(plane *controlplane.ControlPlane) string {
	if plane.Name() == "" {
		return ""
	}
	return plane.Name() + " "
}

// quoted puts arguments with spaces into quotes.
func quoted(args []string) []string {
	all := make([]string, len(args))
	for i, arg := range args {
		if all[i] = arg; strings.Contains(arg, " ") {
			all[i] = `"` + arg + `"`
		}
	}
	return all
}

func indented(text string) string {
	var all strings.Builder
	for line := range strings.Lines(text) {
		all.WriteString("    " + line)
	}
	return all.String()
}

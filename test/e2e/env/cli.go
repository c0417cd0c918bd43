// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// CommandLine runs the command-line program as a user of the API server.
type CommandLine struct {
	t          *testing.T
	program    string
	kubeconfig string
}

// Answer is what a command has printed, and its exit code.
type Answer struct {
	Stdout, Stderr string
	Code           int
}

// buildCommandLine builds the program once for all tests of a process.
var buildCommandLine = sync.OnceValues(func() (string, error) {
	return scenario.BuildCommandLine(context.Background(), os.Stderr)
})

// CommandLine returns the program for a user, with the application's namespace in the
// context of its kubeconfig.
func (e *Env) CommandLine(user string, groups ...string) *CommandLine {
	e.T.Helper()
	program, err := buildCommandLine()
	if err != nil {
		e.T.Fatal(err)
	}
	kubeconfig, err := e.Plane.AddUser(user, groups...)
	if err != nil {
		e.T.Fatal(err)
	}
	config := filepath.Join(e.T.TempDir(), "kubeconfig")
	if err := inNamespace(kubeconfig, e.Namespace, config); err != nil {
		e.T.Fatal(err)
	}
	return &CommandLine{e.T, program, config}
}

// inNamespace writes a kubeconfig whose context has a namespace.
func inNamespace(from, namespace, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	return clientcmd.WriteToFile(*config, to)
}

// Run runs the program, and returns what it answers.
func (c *CommandLine) Run(args ...string) Answer {
	c.t.Helper()
	return c.answer(exec.CommandContext(c.t.Context(), c.program, args...))
}

// Under returns a function that runs kubectl or flux, which finds the command line as its
// plugin.
func (c *CommandLine) Under(program string) func(args ...string) Answer {
	c.t.Helper()
	folder := c.Plugins()
	return func(args ...string) Answer {
		c.t.Helper()
		command := exec.CommandContext(c.t.Context(), program, args...)
		command.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"), "FLUXCD_PLUGINS="+folder)
		return c.answer(command)
	}
}

// Plugins returns a folder that has the command line under each of its names.
func (c *CommandLine) Plugins() string {
	c.t.Helper()
	folder := c.t.TempDir()
	for _, name := range []string{scenario.CommandLineName, "kubectl_complete-rollouts", "flux-rollout"} {
		if err := os.Symlink(c.program, filepath.Join(folder, name)); err != nil {
			c.t.Fatal(err)
		}
	}
	return folder
}

// Shell runs a line that the program has printed, word for word.
func (c *CommandLine) Shell(line string) Answer {
	c.t.Helper()
	const asPlugin = `kubectl() { shift; "$PROGRAM" "$@"; }; `
	return c.answer(exec.CommandContext(c.t.Context(), "sh", "-c", asPlugin+line))
}

func (c *CommandLine) answer(command *exec.Cmd) Answer {
	c.t.Helper()
	var out, err bytes.Buffer
	command.Stdout, command.Stderr = &out, &err
	if command.Env == nil {
		command.Env = os.Environ()
	}
	command.Env = append(command.Env, "KUBECONFIG="+c.kubeconfig, "PROGRAM="+c.program, "TZ=UTC")
	failure := command.Run()
	var exit *exec.ExitError
	if failure != nil && !errors.As(failure, &exit) {
		c.t.Fatalf("run %s: %v", command, failure)
	}
	return Answer{out.String(), err.String(), command.ProcessState.ExitCode()}
}

// MustRun runs the program, and fails the test if the exit code is not 0.
func (c *CommandLine) MustRun(args ...string) string {
	c.t.Helper()
	answer := c.Run(args...)
	if answer.Code != 0 {
		c.t.Fatalf("%q exited with %d\n%s%s", args, answer.Code, answer.Stdout, answer.Stderr)
	}
	return answer.Stdout
}

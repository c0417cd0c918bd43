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
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// CommandLine runs the command-line program as a user of the API server.
type CommandLine struct {
	t          *testing.T
	program    string
	kubeconfig string
	namespace  string
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
	return &CommandLine{e.T, program, config, e.Namespace}
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
	failure := c.command(command).Run()
	var exit *exec.ExitError
	if failure != nil && !errors.As(failure, &exit) {
		c.t.Fatalf("run %s: %v", command, failure)
	}
	return Answer{out.String(), err.String(), command.ProcessState.ExitCode()}
}

// command sets the environment of a command.
func (c *CommandLine) command(command *exec.Cmd) *exec.Cmd {
	if command.Env == nil {
		command.Env = os.Environ()
	}
	command.Env = append(command.Env, "KUBECONFIG="+c.kubeconfig, "PROGRAM="+c.program, "TZ=UTC")
	return command
}

// Through returns the program of the same user, whose requests go through a wire that the
// test can break. The API server itself is shared with other tests.
func (c *CommandLine) Through() (*CommandLine, *wire.Wire) {
	c.t.Helper()
	w, err := wire.Open(c.kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(w.Close)
	kubeconfig := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := errors.Join(w.WriteKubeconfig(kubeconfig), inNamespace(kubeconfig, c.namespace, kubeconfig)); err != nil {
		c.t.Fatal(err)
	}
	return &CommandLine{c.t, c.program, kubeconfig, c.namespace}, w
}

// Credentials returns those of the user.
func (c *CommandLine) Credentials() *clientcmdapi.AuthInfo {
	c.t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	return config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
}

// AddContext adds a context with other credentials to the kubeconfig.
func (c *CommandLine) AddContext(name string, user *clientcmdapi.AuthInfo) {
	c.t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	added := config.Contexts[config.CurrentContext].DeepCopy()
	added.AuthInfo = name
	config.AuthInfos[name], config.Contexts[name] = user, added
	if err := clientcmd.WriteToFile(*config, c.kubeconfig); err != nil {
		c.t.Fatal(err)
	}
}

// AddCluster adds the context of a user, who may be one of another API server, under a name.
func (c *CommandLine) AddCluster(name string, user *CommandLine) {
	c.t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	there, failed := clientcmd.LoadFromFile(user.kubeconfig)
	if err := errors.Join(err, failed); err != nil {
		c.t.Fatal(err)
	}
	added := there.Contexts[there.CurrentContext].DeepCopy()
	config.Clusters[name], config.AuthInfos[name] = there.Clusters[added.Cluster], there.AuthInfos[added.AuthInfo]
	added.Cluster, added.AuthInfo = name, name
	config.Contexts[name] = added
	if err := clientcmd.WriteToFile(*config, c.kubeconfig); err != nil {
		c.t.Fatal(err)
	}
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

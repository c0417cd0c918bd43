// SPDX-License-Identifier: Apache-2.0

// Package gotest runs go test -json and reads its output.
package gotest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// module is the prefix of the import paths of packages.
const module = "github.com/fluxrollouts/rollout-controller/"

// Suite contains the tests of one package.
type Suite struct {
	// Name is the folder of the package.
	Name   string
	Failed bool
	Took   time.Duration
	// Tests are the tests without subtests.
	Tests []Test
	// Output is the output of a failed package. It is empty if the package passed.
	Output string
}

// Test is a test function.
type Test struct {
	Name   string
	Failed bool
	Took   time.Duration
}

// event is a line, as `go doc test2json` and `go help buildjson` describe it.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// Run runs go test -json, a command of exec.CommandContext, and returns the suites in the
// order in which they ended. It passes each suite to ended at once. It writes output from
// outside of any test, such as the compiler's, to the command's Stderr. If a test failed,
// it returns an *exec.ExitError in addition to the suites.
func Run(test *exec.Cmd, ended func(Suite)) ([]Suite, error) {
	output, err := test.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read what go test prints: %w", err)
	}
	if err := test.Start(); err != nil {
		return nil, fmt.Errorf("start go test: %w", err)
	}
	suites, err := read(output, test.Stderr, ended)
	if err != nil {
		return nil, errors.Join(err, test.Cancel(), test.Wait())
	}
	return suites, test.Wait()
}

func read(from io.Reader, other io.Writer, ended func(Suite)) ([]Suite, error) {
	r := reader{output: map[string]*strings.Builder{}, tests: map[string][]Test{}, report: ended}
	for lines := json.NewDecoder(from); ; {
		var e event
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF):
			return r.ended, nil
		case err != nil:
			return nil, fmt.Errorf("read what go test prints: %w", err)
		case e.Package == "":
			fmt.Fprint(other, e.Output)
		default:
			r.take(e)
		}
	}
}

type reader struct {
	ended  []Suite
	report func(Suite)
	output map[string]*strings.Builder
	tests  map[string][]Test
}

func (r *reader) take(e event) {
	switch e.Action {
	case "output":
		if r.output[e.Package] == nil {
			r.output[e.Package] = &strings.Builder{}
		}
		r.output[e.Package].WriteString(e.Output)
	case "pass", "fail", "skip":
		took, failed := time.Duration(e.Elapsed*float64(time.Second)), e.Action == "fail"
		switch {
		case e.Test == "":
			r.end(Suite{Name: strings.TrimPrefix(e.Package, module), Failed: failed, Took: took}, e.Package)
		case !strings.Contains(e.Test, "/"):
			r.tests[e.Package] = append(r.tests[e.Package], Test{Name: e.Test, Failed: failed, Took: took})
		}
	}
}

func (r *reader) end(s Suite, name string) {
	s.Tests = r.tests[name]
	if output := r.output[name]; s.Failed && output != nil {
		s.Output = output.String()
	}
	delete(r.output, name)
	r.ended = append(r.ended, s)
	r.report(s)
}

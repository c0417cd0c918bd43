// SPDX-License-Identifier: Apache-2.0

// Command table writes the results of the tests of faults into the table of
// docs/reliability.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
)

func main() {
	folder := flag.String("in", "", "The folder where the tests have stored their rows.")
	keep := flag.Bool("keep", false, "Leave the rows of tests that were not run as they are.")
	flag.Parse()
	if err := fill(*folder, *keep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fill(folder string, keep bool) error {
	rows, err := report.Read(folder)
	if err != nil {
		return err
	}
	path := filepath.Join(parts.Root(), "docs", "reliability.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	if keep {
		rows = report.Keep(rows, string(page))
	}
	run, err := aboutTheRun()
	if err != nil {
		return err
	}
	filled, err := report.Fill(string(page), run, rows)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(filled), 0o644)
}

// aboutTheRun returns the date, the commit, the machine and the versions of the run.
func aboutTheRun() (string, error) {
	var versions []string
	for _, name := range []parts.Name{parts.APIServer, parts.Etcd, parts.SourceController, parts.KustomizeController, parts.ImageReflectorController} {
		version, err := parts.Version(name)
		if err != nil {
			return "", err
		}
		versions = append(versions, string(name)+" "+version)
	}
	return fmt.Sprintf("Run on %s, at %s, on %s/%s with %d cores; %s; %s.", time.Now().UTC().Format(time.DateOnly), revision(),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), strings.Join(versions, ", ")), nil
}

// revision returns the commit that was tested.
func revision() string {
	commit, err := exec.Command("git", "-C", parts.Root(), "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "an unknown commit"
	}
	return strings.TrimSpace(string(commit))
}

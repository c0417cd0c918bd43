// SPDX-License-Identifier: Apache-2.0

// Command table writes the results of the tests of faults as a table to
// bin/reliability.md.
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
	flag.Parse()
	if err := write(*folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(folder string) error {
	rows, err := report.Read(folder)
	if err != nil {
		return err
	}
	run, err := aboutTheRun()
	if err != nil {
		return err
	}
	path := filepath.Join(parts.Root(), "bin", "reliability.md")
	fmt.Println("The report is in " + path)
	return os.WriteFile(path, []byte("# Faults and what was seen\n\n"+run+"\n\n"+report.Table(rows)), 0o644)
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

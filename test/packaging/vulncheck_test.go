// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// vulnerable is a program whose only vulnerability is the invented one of report.
const vulnerable = `package main

import "os"

func main() { _ = os.Getenv("HOME") }
`

// report describes a vulnerability in a function of the standard library.
const report = `{
  "schema_version": "1.3.1", "id": "GO-2026-0001", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
  "summary": "The environment can be read", "database_specific": {"url": "https://example.com/GO-2026-0001"},
  "affected": [{
    "package": {"name": "stdlib", "ecosystem": "Go"},
    "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
    "ecosystem_specific": {"imports": [{"path": "os", "symbols": ["SYMBOL"]}]}
  }]
}`

func TestKnownVulnerabilityFailsTheCheckIfItIsCalled(t *testing.T) {
	tool, program := buildVulncheck(t), writeVulnerable(t)
	printed, code := vulncheck(t, tool, "file://"+writeDatabase(t, "Getenv"), program)
	if code == 0 || !strings.Contains(printed, "GO-2026-0001") || !strings.Contains(printed, "vulnerable.main calls os.Getenv") {
		t.Errorf("what is called: exit code %d\n%s", code, printed)
	}
	if printed, code := vulncheck(t, tool, "file://"+writeDatabase(t, "Setenv"), program); code != 0 {
		t.Errorf("what is not called: exit code %d\n%s", code, printed)
	}
}

func TestCheckIsSkippedOnlyIfTheDatabaseCannotBeReached(t *testing.T) {
	tool, program := buildVulncheck(t), writeVulnerable(t)
	nowhere := "HTTPS_PROXY=http://127.0.0.1:1"
	if printed, code := vulncheck(t, tool, "https://vuln.go.dev", program, nowhere); code != 0 || !strings.Contains(printed, "SKIPPED: https://vuln.go.dev cannot be reached") {
		t.Errorf("a database out of reach: exit code %d\n%s", code, printed)
	}
	if printed, code := vulncheck(t, tool, "https://vuln.go.dev", program, nowhere, "VULNCHECK_REQUIRED=1"); code == 0 {
		t.Errorf("a database out of reach that is required: exit code 0\n%s", printed)
	}
	if printed, code := vulncheck(t, tool, "file://"+filepath.Join(t.TempDir(), "missing"), program); code == 0 {
		t.Errorf("no database: exit code 0\n%s", printed)
	}
	if printed, code := vulncheck(t, tool, "file://"+writeDatabase(t, "Getenv"), t.TempDir()); code == 0 {
		t.Errorf("no program: exit code 0\n%s", printed)
	}
}

// buildVulncheck builds the checker that the Makefile uses.
func buildVulncheck(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "govulncheck")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "golang.org/x/vuln/cmd/govulncheck")
	build.Dir = filepath.Join(parts.Root(), "hack", "vulncheck")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds it
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	return path
}

// vulncheck checks a program and returns the output and the exit code.
func vulncheck(t *testing.T, tool, database, program string, env ...string) (printed string, code int) {
	t.Helper()
	var output bytes.Buffer
	check := exec.CommandContext(t.Context(), filepath.Join(parts.Root(), "hack", "vulncheck.sh"), tool, database, ".")
	check.Dir, check.Stdout, check.Stderr = program, &output, &output
	check.Env = append(os.Environ(), env...)
	exit := &exec.ExitError{}
	if err := check.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return output.String(), code
}

func writeVulnerable(t *testing.T) string {
	t.Helper()
	return writeFiles(t, map[string]string{"go.mod": "module vulnerable\n\ngo 1.26.0\n", "main.go": vulnerable})
}

// writeDatabase writes a database with a vulnerability in a function of os.
func writeDatabase(t *testing.T, function string) string {
	t.Helper()
	return writeFiles(t, map[string]string{
		"index/db.json":        `{"modified": "2026-01-01T00:00:00Z"}`,
		"index/modules.json":   `[{"path": "stdlib", "vulns": [{"id": "GO-2026-0001", "modified": "2026-01-01T00:00:00Z"}]}]`,
		"ID/GO-2026-0001.json": strings.ReplaceAll(report, "SYMBOL", function),
	})
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

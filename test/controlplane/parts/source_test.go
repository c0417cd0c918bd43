// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The module cache is read-only, and so is this source.
func TestProgramWhoseModuleLacksWhatItEmbedsIsBuilt(t *testing.T) {
	source := filepath.Join(t.TempDir(), "embedding@v1.0.0")
	write(t, source, 0o400, map[string]string{
		"go.mod":       "module example.com/embedding\n\ngo 1.26\n",
		"cmd/main.go":  "package main\n\nimport _ \"embed\"\n\n//go:embed made/one.yaml\nvar one string\n\nfunc main() { println(one) }\n",
		"made/none.md": "no file that is embedded",
	})
	if err := os.Chmod(filepath.Join(source, "cmd"), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(source, "cmd"), 0o700) })
	dir := t.TempDir()
	write(t, dir, 0o600, map[string]string{
		"go.mod": "module example.com/part\n\ngo 1.26\n\nrequire example.com/embedding v1.0.0\n", "go.sum": "",
	})

	folder := filepath.Join(t.TempDir(), "with space")
	for range 2 { // the second time, the folder is there
		modFile, err := completeModule(folder, filepath.Join(dir, "go.mod"), "example.com/embedding", source, []string{"cmd/made/one.yaml"})
		if err != nil {
			t.Fatal(err)
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-modfile", modFile, "-o", filepath.Join(t.TempDir(), "program"), "example.com/embedding/cmd")
		build.Dir = dir
		build.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=readonly")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
}

func write(t *testing.T, folder string, mode os.FileMode, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
}

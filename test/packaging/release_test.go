// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// largestProgram is how large the program may be, without symbols, in bytes.
const largestProgram = 46_000_000

// here is the platform of this machine. Its archive can be run.
var here = runtime.GOOS + "_" + runtime.GOARCH

// makeRelease runs the target of the Makefile for this platform and for Windows, and
// returns the files.
func makeRelease(t *testing.T) map[string][]byte {
	t.Helper()
	folder := t.TempDir()
	platforms := strings.ReplaceAll(here, "_", "/") + " windows/amd64"
	release := exec.CommandContext(t.Context(), "make", "release-cli", "VERSION=v0.4.0", "PLATFORMS="+platforms, "RELEASE="+folder)
	release.Dir = parts.Root()
	if printed, err := release.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestReleaseOfTheCommandLine builds for two platforms, twice. That takes minutes if
// nothing is compiled yet.
func TestReleaseOfTheCommandLine(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the program for two platforms")
	}
	files := makeRelease(t)
	ours, windows := "flux-rollout_0.4.0_"+here+".tar.gz", "flux-rollout_0.4.0_windows_amd64.zip"
	unpacked, others := untar(t, files[ours]), unzip(t, files[windows])

	t.Run("each archive has what it should", func(t *testing.T) {
		checkContents(t, unpacked, others)
	})
	t.Run("no program is too large", func(t *testing.T) {
		for name, program := range map[string][]byte{here: unpacked["flux-rollout"], "windows": others["flux-rollout.exe"]} {
			if t.Logf("%s: %d bytes", name, len(program)); len(program) > largestProgram {
				t.Errorf("the program for %s has %d bytes, more than %d: see Size of the program in docs/contributing/testing.md",
					name, len(program), largestProgram)
			}
		}
	})
	t.Run("checksums are those of the files", func(t *testing.T) {
		if diff := cmp.Diff(checksumsOf(files), string(files["checksums.txt"])); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("manifests name the archives and their checksums", func(t *testing.T) {
		checkManifests(t, files, ours, windows)
	})
	t.Run("the program knows its version under each name", func(t *testing.T) {
		checkNames(t, unpacked["flux-rollout"])
	})
	t.Run("flux installs it as the guide says", func(t *testing.T) {
		installWithFlux(t, files)
	})
	t.Run("the same commit gives the same bytes", func(t *testing.T) {
		for name, again := range makeRelease(t) {
			if !bytes.Equal(files[name], again) {
				t.Errorf("%s differs", name)
			}
		}
	})
}

func checkContents(t *testing.T, ours, windows map[string][]byte) {
	t.Helper()
	license, err := os.ReadFile(filepath.Join(parts.Root(), "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ours["LICENSE"], license) || !bytes.Equal(windows["LICENSE"], license) {
		t.Error("an archive has another license")
	}
	if len(windows) != 2 || len(windows["flux-rollout.exe"]) == 0 {
		t.Errorf("the archive for Windows has %d files, want the program and the license", len(windows))
	}
	for _, page := range []string{"man/flux-rollout.1", "man/flux-rollout-explain.1"} {
		if text := string(ours[page]); !strings.HasPrefix(text, ".TH ") || !strings.Contains(text, `"v0.4.0"`) {
			t.Errorf("%s is no man page of this version: %.80q", page, text)
		}
	}
}

// checksumsOf returns what sha256sum writes for all files but its own.
func checksumsOf(files map[string][]byte) string {
	var lines []string
	for name, content := range files {
		if name != "checksums.txt" {
			lines = append(lines, fmt.Sprintf("%s\n%x  %s\n", name, sha256.Sum256(content), name))
		}
	}
	slices.Sort(lines)
	var text strings.Builder
	for _, line := range lines {
		_, line, _ = strings.Cut(line, "\n")
		text.WriteString(line)
	}
	return text.String()
}

func checkManifests(t *testing.T, files map[string][]byte, archives ...string) {
	t.Helper()
	for _, name := range []string{"flux-rollouts.yaml", "rollout.yaml", "flux-rollout.rb"} {
		var decoded map[string]any
		if err := yaml.Unmarshal(files[name], &decoded); strings.HasSuffix(name, ".yaml") && (err != nil || decoded["kind"] != "Plugin") {
			t.Errorf("%s: kind %v, %v", name, decoded["kind"], err)
		}
		for _, archive := range archives {
			if name == "flux-rollout.rb" && strings.HasSuffix(archive, ".zip") {
				continue // Homebrew is not on Windows
			}
			url := "https://github.com/fluxrollouts/rollout-controller/releases/download/v0.4.0/" + archive
			sum := fmt.Sprintf("%x", sha256.Sum256(files[archive]))
			if text := string(files[name]); !strings.Contains(text, url) || !strings.Contains(text, sum) {
				t.Errorf("%s does not name %s with the checksum %s:\n%s", name, url, sum, text)
			}
		}
	}
}

// checkNames runs the program as kubectl and as flux run it.
func checkNames(t *testing.T, program []byte) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "flux-rollout"), program, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"kubectl-rollouts", "kubectl_complete-rollouts"} {
		if err := os.Symlink("flux-rollout", filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"flux-rollout version --client":     "flux-rollout v0.4.0\n",
		"kubectl-rollouts version --client": "flux-rollout v0.4.0\n",
		"kubectl_complete-rollouts expl":    "explain\tSay why a release is not out, and what would let it go\n:4\n",
		"flux-rollout __completeNoDesc exp": "explain\n:4\n",
	} {
		words := strings.Fields(command)
		run := exec.CommandContext(t.Context(), filepath.Join(folder, words[0]), words[1:]...)
		run.Env = []string{} // no HOME, no kubeconfig
		if got, err := run.Output(); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", command, got, err, want)
		}
	}
	help := exec.CommandContext(t.Context(), filepath.Join(folder, "flux-rollout"), "explain", "--help")
	help.Env = []string{"FLUXCD_PLUGINS=" + folder}
	if got, err := help.Output(); err != nil || !strings.Contains(string(got), "\n  flux rollout explain shop\n") {
		t.Errorf("help in the folder of the plugins of flux: %v\n%s", err, got)
	}
}

func untar(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for from := tar.NewReader(unzipped); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(from); err != nil {
			t.Fatal(err)
		}
	}
}

func unzip(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	from, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range from.File {
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(part); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

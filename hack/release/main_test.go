// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const source = "https://example.com/it"

var made = time.Date(2026, time.January, 2, 15, 4, 6, 0, time.UTC)

// fake compiles nothing.
func fake(_ context.Context, r release, p platform) ([]byte, error) {
	return []byte(r.version + " for " + p.String()), nil
}

// arguments returns the arguments of a release of three platforms, with more after them.
func arguments(t *testing.T, out string, more ...string) []string {
	t.Helper()
	man := t.TempDir()
	for _, page := range []string{"flux-rollout.1", "flux-rollout-get.1"} {
		if err := os.WriteFile(filepath.Join(man, page), []byte("page "+page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return append([]string{
		"-version=v1.2.0", "-source=" + source, "-created=2026-01-02T15:04:06Z", "-license=../../LICENSE",
		"-man=" + man, "-out=" + out, "-platforms=linux/amd64 darwin/arm64 windows/amd64",
	}, more...)
}

// releaseOf makes a release and returns its files.
func releaseOf(t *testing.T) map[string][]byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "release")
	if err := run(t.Context(), arguments(t, out), fake); err != nil {
		t.Fatal(err)
	}
	return read(t, out)
}

func read(t *testing.T, folder string) map[string][]byte {
	t.Helper()
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

// packed is a file of an archive.
type packed struct {
	Name, Content string
	Mode          fs.FileMode
	At            time.Time
}

func untar(t *testing.T, content []byte) []packed {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var files []packed
	for from := tar.NewReader(unzipped); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, packed{header.Name, string(text), header.FileInfo().Mode(), header.ModTime.UTC()})
	}
}

func unzip(t *testing.T, content []byte) []packed {
	t.Helper()
	from, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var files []packed
	for _, f := range from.File {
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, packed{f.Name, string(text), f.Mode(), f.Modified.UTC()})
	}
	return files
}

func TestArchiveHasTheProgramTheLicenseAndTheManPages(t *testing.T) {
	license, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	files := releaseOf(t)
	pages := []packed{
		{"man/flux-rollout-get.1", "page flux-rollout-get.1", 0o644, made},
		{"man/flux-rollout.1", "page flux-rollout.1", 0o644, made},
	}
	for name, tt := range map[string]struct {
		unpack func(*testing.T, []byte) []packed
		want   []packed
	}{
		"flux-rollout_1.2.0_linux_amd64.tar.gz": {untar, append([]packed{
			{"flux-rollout", "v1.2.0 for linux/amd64", 0o755, made}, {"LICENSE", string(license), 0o644, made},
		}, pages...)},
		"flux-rollout_1.2.0_darwin_arm64.tar.gz": {untar, append([]packed{
			{"flux-rollout", "v1.2.0 for darwin/arm64", 0o755, made}, {"LICENSE", string(license), 0o644, made},
		}, pages...)},
		"flux-rollout_1.2.0_windows_amd64.zip": {unzip, []packed{
			{"flux-rollout.exe", "v1.2.0 for windows/amd64", 0o755, made}, {"LICENSE", string(license), 0o644, made},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.unpack(t, files[name])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReleasesOfOneCommitAreTheSame(t *testing.T) {
	if diff := cmp.Diff(releaseOf(t), releaseOf(t)); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

func TestChecksumsAreThoseOfAllFilesInTheFolder(t *testing.T) {
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "install.yaml"), []byte("kind: Namespace\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there are checksums already
		if err := run(t.Context(), arguments(t, out), fake); err != nil {
			t.Fatal(err)
		}
	}
	files := read(t, out)
	var want strings.Builder
	for _, name := range []string{
		"flux-rollout.rb", "flux-rollout_1.2.0_darwin_arm64.tar.gz", "flux-rollout_1.2.0_linux_amd64.tar.gz",
		"flux-rollout_1.2.0_windows_amd64.zip", "flux-rollouts.yaml", "install.yaml", "rollout.yaml",
	} {
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	if diff := cmp.Diff(want.String(), string(files["checksums.txt"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// manifest replaces the checksums of the archives, which differ between versions of Go.
func manifest(files map[string][]byte, name string) string {
	text := string(files[name])
	for archive, label := range map[string]string{
		"flux-rollout_1.2.0_linux_amd64.tar.gz": "<linux>", "flux-rollout_1.2.0_darwin_arm64.tar.gz": "<darwin>", "flux-rollout_1.2.0_windows_amd64.zip": "<windows>",
	} {
		text = strings.ReplaceAll(text, fmt.Sprintf("%x", sha256.Sum256(files[archive])), label)
	}
	return text
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var decoded map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestKrewFindsTheArchiveOfItsPlatform(t *testing.T) {
	want := decode(t, `
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata: {name: flux-rollouts}
spec:
  version: v1.2.0
  homepage: https://example.com/it
  platforms:
  - selector: {matchLabels: {os: linux, arch: amd64}}
    uri: https://example.com/it/releases/download/v1.2.0/flux-rollout_1.2.0_linux_amd64.tar.gz
    sha256: <linux>
    bin: flux-rollout
    files: [{from: flux-rollout, to: .}, {from: LICENSE, to: .}]
  - selector: {matchLabels: {os: darwin, arch: arm64}}
    uri: https://example.com/it/releases/download/v1.2.0/flux-rollout_1.2.0_darwin_arm64.tar.gz
    sha256: <darwin>
    bin: flux-rollout
    files: [{from: flux-rollout, to: .}, {from: LICENSE, to: .}]
  - selector: {matchLabels: {os: windows, arch: amd64}}
    uri: https://example.com/it/releases/download/v1.2.0/flux-rollout_1.2.0_windows_amd64.zip
    sha256: <windows>
    bin: flux-rollout.exe
    files: [{from: flux-rollout.exe, to: .}, {from: LICENSE, to: .}]
`)
	got := decode(t, manifest(releaseOf(t), "flux-rollouts.yaml"))
	spec, _ := got["spec"].(map[string]any)
	if short := fmt.Sprint(spec["shortDescription"]); len(short) < 20 || len(short) > 50 {
		t.Errorf("the short description has %d letters: %s", len(short), short)
	}
	if long := fmt.Sprint(spec["description"]); len(long) < 100 {
		t.Errorf("the description is %q", long)
	}
	delete(spec, "shortDescription")
	delete(spec, "description")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Flux adds .exe to the name of the program on Windows.
func TestFluxFindsTheArchiveOfItsPlatform(t *testing.T) {
	want := decode(t, `
apiVersion: cli.fluxcd.io/v1beta1
kind: Plugin
name: rollout
description: Say why a release is held by Flux, and promote it
homepage: https://example.com/it
source: https://example.com/it
bin: flux-rollout
versions:
- version: 1.2.0
  platforms:
  - os: linux
    arch: amd64
    url: https://example.com/it/releases/download/v1.2.0/flux-rollout_1.2.0_linux_amd64.tar.gz
    checksum: sha256:<linux>
  - os: darwin
    arch: arm64
    url: https://example.com/it/releases/download/v1.2.0/flux-rollout_1.2.0_darwin_arm64.tar.gz
    checksum: sha256:<darwin>
  - os: windows
    arch: amd64
    url: https://example.com/it/releases/download/v1.2.0/flux-rollout_1.2.0_windows_amd64.zip
    checksum: sha256:<windows>
`)
	if diff := cmp.Diff(want, decode(t, manifest(releaseOf(t), "rollout.yaml"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHomebrewInstallsEachNameOfTheProgram(t *testing.T) {
	//nolint:dupword // Ruby closes each block
	want := `# Generated for each release. Do not edit it.
class FluxRollout < Formula
  desc "Say why a release is held by Flux, and promote it"
  homepage "https://example.com/it"
  version "1.2.0"
  license "Apache-2.0"

  on_linux do
    on_intel do
      url "https://example.com/it/releases/download/v1.2.0/flux-rollout_1.2.0_linux_amd64.tar.gz"
      sha256 "<linux>"
    end
  end

  on_macos do
    on_arm do
      url "https://example.com/it/releases/download/v1.2.0/flux-rollout_1.2.0_darwin_arm64.tar.gz"
      sha256 "<darwin>"
    end
  end

  def install
    bin.install "flux-rollout"
    bin.install_symlink "flux-rollout" => "kubectl-rollouts"
    bin.install_symlink "flux-rollout" => "kubectl_complete-rollouts"
    man1.install Dir["man/*.1"]
    generate_completions_from_executable(bin/"flux-rollout", shell_parameter_format: :cobra)
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/kubectl-rollouts version --client")
  end
end
`
	if diff := cmp.Diff(want, manifest(releaseOf(t), "flux-rollout.rb")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReleaseSaysWhatIsWrong(t *testing.T) {
	empty := t.TempDir()
	for name, tt := range map[string]struct{ arg, want string }{
		"no version":           {"-version=", `"" is not a version of a release`},
		"a commit":             {"-version=be78cf4-dirty", `"be78cf4-dirty" is not a version of a release`},
		"a version without v":  {"-version=1.2.0", `"1.2.0" is not a version of a release`},
		"a part of a version":  {"-version=v1.2", `"v1.2" is not a version of a release`},
		"flags of the linker":  {"-version=v1.2.0 -X main.x=y", "is not a version of a release"},
		"no time":              {"-created=", "say when the sources were made"},
		"no sources":           {"-source=", "say where the sources and the man pages are"},
		"no man pages":         {"-man=" + empty, empty + " has no man pages"},
		"no license":           {"-license=" + empty + "/none", "read the license"},
		"no platform":          {"-platforms=", "say for which platforms"},
		"no platform at all":   {"-platforms=linux", `"linux" is not a platform`},
		"a folder that is one": {"-out=../../LICENSE", "create the folder of the release"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), arguments(t, t.TempDir(), tt.arg), fake)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestPlatformThatCannotBeBuiltEndsTheRelease(t *testing.T) {
	out := t.TempDir()
	broken := func(_ context.Context, _ release, p platform) ([]byte, error) {
		if p.os == "darwin" {
			return nil, errors.New("exit status 1")
		}
		return nil, nil
	}
	if err := run(t.Context(), arguments(t, out), broken); err == nil || err.Error() != "build for darwin/arm64: exit status 1" {
		t.Errorf("error %v", err)
	}
	if _, hasChecksums := read(t, out)["checksums.txt"]; hasChecksums {
		t.Error("half a release has checksums")
	}
}

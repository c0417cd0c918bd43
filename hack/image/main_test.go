// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pushed pushes an image to a registry of its own, and returns what was printed, without
// the registry, and the image for an architecture.
func pushed(t *testing.T, arch string) (string, v1.Image) {
	t.Helper()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/controller"
	var printed strings.Builder
	err := run(t.Context(), []string{"-repository=" + repository, "-tag=v1.2.0", "-revision=abc", "-created=2026-01-02T15:04:05Z"}, &printed,
		func(_ context.Context, p program, version, arch string) ([]byte, error) {
			return []byte(p.source + " " + version + " for " + arch), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(strings.TrimSpace(printed.String()))
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(printed.String(), repository), image
}

func TestImageHasTheProgramsAndWhomTheyTrust(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		_, image := pushed(t, arch)
		files := map[string]string{}
		content := mutate.Extract(image)
		for from := tar.NewReader(content); ; {
			header, err := from.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(from)
			if err != nil {
				t.Fatal(err)
			}
			files[header.Name+" "+header.FileInfo().Mode().String()] = string(text)
		}
		const trusted = "etc/ssl/certs/ca-certificates.crt -rw-r--r--"
		checkAuthorities(t, []byte(files[trusted]))
		delete(files, trusted)
		want := map[string]string{
			"rollout-controller -rwxr-xr-x": "./cmd/controller v1.2.0 for " + arch, "rollout-web -rwxr-xr-x": "./cmd/rollout-web v1.2.0 for " + arch,
		}
		if diff := cmp.Diff(want, files); diff != "" {
			t.Errorf("other files (-want +got):\n%s", diff)
		}
	}
}

func checkAuthorities(t *testing.T, text []byte) {
	t.Helper()
	var found int
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
		found++
	}
	if found < 100 {
		t.Errorf("%d authorities", found)
	}
}

// Neither the time nor the registry is in the bytes.
func TestSameSourcesMakeTheSameImage(t *testing.T) {
	first, _ := pushed(t, "amd64")
	if second, _ := pushed(t, "amd64"); second != first {
		t.Errorf("%q, then %q", first, second)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	complete := []string{"-repository=example.com/controller", "-tag=v1", "-revision=abc", "-created=2026-01-02T15:04:05Z"}
	for _, missing := range complete {
		var args []string
		for _, arg := range complete {
			if arg != missing {
				args = append(args, arg)
			}
		}
		if _, err := parse(args); err == nil {
			t.Errorf("without %s: no error", missing)
		}
	}
}

// The Dockerfile stays, for whoever builds an image of their own.
func TestImageIsThatOfTheDockerfile(t *testing.T) {
	content, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(content), ""), "FROM scratch")
	_, image := pushed(t, "amd64")
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, label := range regexp.MustCompile(`(org\.[a-z.]+)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		labels[label[1]] = strings.NewReplacer("$VERSION", "v1.2.0", "$REVISION", "abc").Replace(label[2])
	}
	if diff := cmp.Diff(labels, config.Config.Labels); diff != "" {
		t.Errorf("labels (-Dockerfile +image):\n%s", diff)
	}
	for _, line := range []string{"\nUSER " + config.Config.User + "\n", "\nENTRYPOINT [\"" + strings.Join(config.Config.Entrypoint, "\", \"") + "\"]\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("the Dockerfile has no %q", line)
		}
	}
}

// Equal arguments and variables of the go command make equal bytes.
func TestProgramsAreThoseOfTheDockerfile(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("CALLS", filepath.Join(folder, "calls"))
	recorder := "#!/bin/bash\nenv | grep -E '^(CGO_ENABLED|GOOS|GOARCH|GOFLAGS)=.' | sort > $CALLS\nprintf '%s\\n' \"${@//*\\/rollout-*/OUT}\" >> $CALLS\n" +
		"while [[ $1 != -o ]]; do shift; done; touch \"$2\"\n"
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(recorder), 0o700); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?s)CGO_ENABLED=0 .*?-o (/rollout-\S+ \./cmd/\S+)`).FindAllStringSubmatch(string(content), -1)
	if len(commands) != len(programs) {
		t.Fatalf("the Dockerfile builds %d programs", len(commands))
	}
	for i, p := range programs {
		if got := "/" + p.name + " " + p.source; commands[i][1] != got {
			t.Errorf("the Dockerfile builds %s, the image has %s", commands[i][1], got)
		}
		command := strings.Replace(commands[i][0], " -o /", " -o "+folder+"/", 1)
		docker := exec.CommandContext(t.Context(), "bash", "-ec", command)
		docker.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH=arm64", "VERSION=v1.2.0", "GOFLAGS=")
		if printed, err := docker.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		want, _ := os.ReadFile(filepath.Join(folder, "calls"))
		if _, err := compile(t.Context(), p, "v1.2.0", "arm64"); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(filepath.Join(folder, "calls"))
		if diff := cmp.Diff(string(want), string(got)); diff != "" || !strings.Contains(string(got), "-trimpath") {
			t.Errorf("go builds %s (-Dockerfile +image):\n%s", p.name, diff)
		}
	}
}

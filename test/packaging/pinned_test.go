// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

var digest = "sha256:" + strings.Repeat("5c", 32)

// makes runs a target of the Makefile in a folder, and returns what it prints.
func makes(t *testing.T, folder string, args ...string) (printed string, err error) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "-f", filepath.Join(parts.Root(), "Makefile")}, args...)...)
	run.Dir = folder
	output, err := run.CombinedOutput()
	return string(output), err
}

// Whoever may move the tag of an image must not change what signed manifests install.
func TestPublishedManifestsNameTheImageByItsDigest(t *testing.T) {
	pinned := t.TempDir()
	if printed, err := makes(t, parts.Root(), "release-pin", "DIGEST="+digest, "PINNED="+pinned); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	folder, err := filepath.Rel(parts.Root(), pinned)
	if err != nil {
		t.Fatal(err)
	}
	installed, err := manifests.Kustomize(t.Context(), filepath.Join(folder, manifests.Default))
	if err != nil {
		t.Fatal(err)
	}
	rendered := map[string][]*unstructured.Unstructured{"manifests": installed}
	for name, chart := range map[string][]string{
		"rollout-controller":                {manifests.Chart},
		"kube-deployment-coordinator":       {"charts/kube-deployment-coordinator"},
		"with the values of containerinfra": {"charts/kube-deployment-coordinator", "--set=image.repository=ghcr.io/containerinfra/kube-deployment-coordinator,image.tag=v0.0.9"},
	} {
		rendered[name] = render(t, filepath.Join(folder, chart[0]), chart[1:]...)
	}
	for name, objects := range rendered {
		images := imagesIn(objects)
		if len(images) == 0 || slices.ContainsFunc(images, func(image string) bool { return !strings.HasSuffix(image, "@"+digest) }) {
			t.Errorf("%s: the images are %q", name, images)
		}
	}
	// Another version is not the one with this digest.
	for _, image := range imagesIn(render(t, filepath.Join(folder, manifests.Chart), "--set=image.tag=v9")) {
		if !strings.HasSuffix(image, ":v9") {
			t.Errorf("with another tag the image is %s", image)
		}
	}
}

func render(t *testing.T, chart string, args ...string) []*unstructured.Unstructured {
	t.Helper()
	printed, err := manifests.Rendered(t.Context(), chart, "r", manifests.Namespace, args...)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Decode(printed)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// imagesIn returns the images of all pods that objects have.
func imagesIn(objects []*unstructured.Unstructured) []string {
	var images []string
	for _, o := range objects {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, container := range containers {
			images = append(images, container.(map[string]any)["image"].(string))
		}
	}
	return images
}

func TestNothingIsPublishedWithoutADigest(t *testing.T) {
	for _, given := range []string{"", "latest", "sha256:5c", digest + "0"} {
		printed, err := makes(t, parts.Root(), "release-pin", "DIGEST="+given, "PINNED="+t.TempDir())
		if err == nil || !strings.Contains(printed, "DIGEST is no digest of an image") {
			t.Errorf("%q: %v, %s", given, err, printed)
		}
	}
	for _, job := range []string{"publish", "draft"} {
		for _, s := range workflows(t)["release"].Jobs[job].Steps {
			publishes := strings.Contains(s.Run, "push-artifact") || strings.Contains(s.Run, "push-chart") || strings.Contains(s.Run, "release-files")
			if publishes && (s.Env["FROM"] != "bin/pinned" || s.Env["DIGEST"] == "" || !strings.HasPrefix(s.Run, "make release-pin\n")) {
				t.Errorf("%s publishes what names its image by a tag: %v", job, s)
			}
		}
	}
}

// released returns the files that name the version of a release, and says that one file is
// another.
func released(path, content string) map[string]string {
	files := map[string]string{
		"Dockerfile":                        "FROM --platform=$BUILDPLATFORM golang:1.26@" + digest + " AS builder\nFROM scratch\n",
		"CHANGELOG.md":                      "# Changelog\n\n## v1.0.0\n\nThe first.\n",
		"charts/a/Chart.yaml":               "version: 1.0.0\nappVersion: v1.0.0\n",
		"config/manager/kustomization.yaml": "images:\n  newTag: v1.0.0\n",
		"README.md":                         "cosign verify ghcr.io/fluxrollouts/rollout-controller:v1.0.0\n",
	}
	if path != "" {
		files[path] = content
	}
	return files
}

func version(t *testing.T, folder, action, tag string) (printed string, err error) {
	t.Helper()
	run := exec.CommandContext(t.Context(), filepath.Join(parts.Root(), "hack", "version.sh"), action, tag)
	run.Dir = folder
	output, err := run.CombinedOutput()
	return string(output), err
}

// A tag of the image that builds can be moved, too.
func TestReleaseIsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ path, content, refused string }{
		"not":                      {"", "", ""},
		"for an image by its tag":  {"Dockerfile", "FROM golang:1.26 AS builder\nFROM scratch\n", "The Dockerfile names an image"},
		"for a syntax by its tag":  {"Dockerfile", "# syntax=docker/dockerfile:1\nFROM scratch\n", "The Dockerfile names an image"},
		"for a second image":       {"Dockerfile", "FROM golang:1.26@" + digest + "\nFROM alpine\n", "The Dockerfile names an image"},
		"for another appVersion":   {"charts/b/Chart.yaml", "version: 1.0.0\nappVersion: v1.0.1\n", "charts/b/Chart.yaml:2 is not of v1.0.0"},
		"for another chart":        {"charts/b/Chart.yaml", "version: 0.9.0\nappVersion: v1.0.0\n", "charts/b/Chart.yaml:1 is not of v1.0.0"},
		"for other manifests":      {"config/manager/kustomization.yaml", "  newTag: v0.9.0\n", "kustomization.yaml:1 is not of v1.0.0"},
		"for manifests without":    {"config/manager/kustomization.yaml", "images: []\n", "kustomization.yaml is not of the version v1.0.0"},
		"without its notes":        {"CHANGELOG.md", "## v0.9.0\n", "CHANGELOG.md has no section v1.0.0"},
		"with notes of no version": {"CHANGELOG.md", "## Unreleased\n\n## v1.0.0\n", "CHANGELOG.md:1 is not of v1.0.0"},
		"for a page":               {"docs/guides/a.md", "- https://github.com/fluxrollouts/rollout-controller/config/default?ref=v0.9.0\n", "docs/guides/a.md:1 is not of v1.0.0"},
		"for a chart in a page":    {"docs/a.md", "cosign verify ghcr.io/fluxrollouts/charts/rollout-controller:0.9.0\n", "docs/a.md:1 is not of v1.0.0"},
		"for a hook in a page":     {"docs/a.md", "  rev: v0.9.0\n", "docs/a.md:1 is not of v1.0.0"},
		"for a download in a page": {"docs/a.md", "version=0.9.0 platform=linux_amd64\n", "docs/a.md:1 is not of v1.0.0"},
		"for the action":           {".github/actions/lint/action.yaml", "# uses: fluxrollouts/rollout-controller/.github/actions/lint@v0.9.0\n", "action.yaml:1 is not of v1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := writeFiles(t, released(tt.path, tt.content))
			printed, err := version(t, folder, "check", "v1.0.0")
			if (err != nil) != (tt.refused != "") || !strings.Contains(printed, tt.refused) {
				t.Errorf("%v\n%s", err, printed)
			}
		})
	}
}

// The commit before the tag is made by a command.
func TestPreparedReleaseIsNotRefused(t *testing.T) {
	folder := writeFiles(t, released("CHANGELOG.md", "## Unreleased\n\nMore, see [the guide](docs/a.md).\n\n## v1.0.0\n\nThe first.\n"))
	for _, action := range []string{"set", "check"} {
		if printed, err := version(t, folder, action, "v1.1.0-rc.1"); err != nil {
			t.Errorf("%s: %v\n%s", action, err, printed)
		}
	}
	if _, err := version(t, folder, "set", "1.1.0"); err == nil {
		t.Error("a version without v is set")
	}
	notes, err := makes(t, folder, "release-notes", "TAG=v1.1.0-rc.1")
	if want := "More, see [the guide](https://github.com/fluxrollouts/rollout-controller/blob/v1.1.0-rc.1/docs/a.md).\n\n"; err != nil || !strings.HasSuffix(notes, want) {
		t.Errorf("the notes are %q, %v, want %q", notes, err, want)
	}
	if notes, err := makes(t, folder, "release-notes", "TAG=v2.0.0"); err == nil {
		t.Errorf("a version without a section has the notes %q", notes)
	}
}

// The job that signs gets its references from a job that runs code of the project and of
// all its modules.
func TestOnlyWhatThisProjectPublishesIsSigned(t *testing.T) {
	const charts = "ghcr.io/fluxrollouts/charts/"
	ours := []string{
		"ghcr.io/fluxrollouts/manifests/rollout-controller:v0.2.0@" + digest, charts + "rollout-controller@" + digest,
		charts + "kube-deployment-coordinator@" + digest, charts + "kube-deployment-coordinator-crds@" + digest,
	}
	another := func(i int, reference string) []string {
		return slices.Concat(ours[:i], []string{reference}, ours[i+1:])
	}
	for name, tt := range map[string]struct {
		image  string
		others []string
		signed int
	}{
		"all":                   {digest, ours, 5},
		"an image of others":    {digest, another(1, "ghcr.io/evil/app@"+digest), 0},
		"one by its tag":        {digest, another(1, charts+"rollout-controller:1.0.0"), 0},
		"an option":             {digest, another(3, "--key=evil"), 0},
		"one more":              {digest, append(slices.Clone(ours), ours[3]), 0},
		"one missing":           {digest, ours[:3], 0},
		"the same twice":        {digest, another(2, ours[1]), 0},
		"the tag of another":    {digest, another(0, "ghcr.io/fluxrollouts/manifests/rollout-controller:v0.3.0@"+digest), 0},
		"no digest of an image": {"latest", ours, 0},
	} {
		t.Run(name, func(t *testing.T) {
			folder := writeFiles(t, map[string]string{"cosign": "#!/bin/sh\necho \"$@\" >> calls\n"})
			if err := os.Chmod(filepath.Join(folder, "cosign"), 0o700); err != nil {
				t.Fatal(err)
			}
			release := workflows(t)["release"]
			steps := release.Jobs["sign"].Steps
			run := exec.CommandContext(t.Context(), "bash", "-e", "-c", steps[len(steps)-2].Run)
			run.Dir = folder
			run.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "GITHUB_REF_NAME=v0.2.0",
				"DIGEST="+tt.image, "OTHERS="+strings.Join(tt.others, "\n"))
			for name, value := range release.Env {
				run.Env = append(run.Env, name+"="+value)
			}
			printed, err := run.CombinedOutput()
			calls, _ := os.ReadFile(filepath.Join(folder, "calls"))
			if got := strings.Count(string(calls), "sign --yes -- "); got != tt.signed || (err == nil) != (tt.signed > 0) {
				t.Errorf("%d signed, want %d; %v\n%s%s", got, tt.signed, err, calls, printed)
			}
		})
	}
}

// GitHub lets a job with an environment begin once its reviewers have agreed.
func TestPersonAgreesBeforeARelease(t *testing.T) {
	for _, job := range []string{"sign", "release"} {
		if got := workflows(t)["release"].Jobs[job].Environment; got != "release" {
			t.Errorf("%s has the environment %q", job, got)
		}
	}
}

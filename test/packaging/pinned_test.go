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
	run := exec.CommandContext(t.Context(), "make", append([]string{"-f", filepath.Join(parts.Root(), "Makefile")}, args...)...)
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
			publishes := strings.Contains(s.Run, "push-") || strings.Contains(s.Run, "release-files")
			if publishes && (s.Env["FROM"] != "bin/pinned" || s.Env["DIGEST"] == "" || !strings.HasPrefix(s.Run, "make release-pin\n")) {
				t.Errorf("%s publishes what names its image by a tag: %v", job, s)
			}
		}
	}
}

// A tag of the image that builds can be moved, too.
func TestReleaseIsBuiltFromImagesWithADigest(t *testing.T) {
	for name, tt := range map[string]struct {
		dockerfile string
		released   bool
	}{
		"by digest":           {"FROM --platform=$BUILDPLATFORM golang:1.26@" + digest + " AS builder\nFROM scratch\n", true},
		"by tag":              {"FROM golang:1.26 AS builder\nFROM scratch\n", false},
		"the syntax by tag":   {"# syntax=docker/dockerfile:1\nFROM scratch\n", false},
		"a second one by tag": {"FROM golang:1.26@" + digest + "\nFROM alpine\n", false},
	} {
		folder := writeFiles(t, map[string]string{
			"Dockerfile": tt.dockerfile, "charts/a/Chart.yaml": "appVersion: v1.0.0\n", "config/manager/kustomization.yaml": "  newTag: v1.0.0\n",
		})
		printed, err := makes(t, folder, "release-check", "TAG=v1.0.0")
		if (err == nil) != tt.released {
			t.Errorf("%s: %v\n%s", name, err, printed)
		}
	}
	folder := writeFiles(t, map[string]string{
		"Dockerfile": "FROM scratch\n", "charts/a/Chart.yaml": "appVersion: v1.0.1\n", "config/manager/kustomization.yaml": "  newTag: v1.0.0\n",
	})
	if _, err := makes(t, folder, "release-check", "TAG=v1.0.0"); err == nil {
		t.Error("a chart of another version is released")
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

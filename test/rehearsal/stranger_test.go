// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"archive/tar"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// stranger has the addresses, the files of the release and the public key, and no login.
type stranger struct {
	*rehearsal
	// image and the others are references with a digest.
	image  string
	others []string
	// folder is what the stranger writes to.
	folder string
}

func newStranger(t *testing.T, r *rehearsal) *stranger {
	t.Helper()
	return &stranger{
		rehearsal: r, folder: t.TempDir(), image: r.known["env.IMAGE"] + "@" + r.known["needs.publish.outputs.image"],
		others: strings.Split(r.known["needs.publish.outputs.others"], "\n"),
	}
}

func (s *stranger) version() string { return strings.TrimPrefix(s.tag, "v") }

func (s *stranger) read(t *testing.T, asset string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.assets, asset))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var sum = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// looksAtTheFiles checks that the files of the release belong together.
func (s *stranger) looksAtTheFiles(t *testing.T) {
	t.Helper()
	printed := command(t, s.assets, nil, "sha256sum", "--check", "checksums.txt")
	sums := s.read(t, "checksums.txt")
	entries, err := os.ReadDir(s.assets)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "checksums.txt") && !strings.Contains(sums, "  "+e.Name()+"\n") {
			t.Errorf("%s has no checksum", e.Name())
		}
	}
	say("sha256sum: %d files are those of checksums.txt", strings.Count(printed, ": OK"))
	for _, manifest := range []string{"flux-rollouts.yaml", "rollout.yaml", "flux-rollout.rb"} {
		named := sum.FindAllString(s.read(t, manifest), -1)
		if len(named) == 0 || slices.ContainsFunc(named, func(n string) bool { return !strings.Contains(sums, n) }) {
			t.Errorf("%s names other archives than those of the release", manifest)
		}
	}
	say("krew, Flux and Homebrew download archives that are in the release")
	images := regexp.MustCompile(`(?m)^ *image: (.*)$`).FindAllStringSubmatch(s.read(t, "install.yaml"), -1)
	if len(images) != 1 || !strings.HasSuffix(images[0][1], "@"+s.digest()) {
		t.Errorf("install.yaml has the images %q, want one with %s", images, s.digest())
	}
	notes := s.read(t, "../notes.md")
	if strings.Contains(notes, "](docs/") || len(notes) < 100 {
		t.Errorf("the notes are %q", notes)
	}
	say("install.yaml names the image by digest, and the notes have %d words", len(strings.Fields(notes)))
}

func (s *stranger) digest() string {
	_, digest, _ := strings.Cut(s.image, "@")
	return digest
}

// verifiesSignatures runs the commands of the installation guide, with the key in place of
// the identity of the workflow.
func (s *stranger) verifiesSignatures(t *testing.T) {
	t.Helper()
	for _, reference := range append([]string{s.image}, s.others...) {
		s.cosign(t, "verify", "--insecure-ignore-tlog=true", reference)
		say("cosign verify: %s", strings.TrimPrefix(reference, s.registry.Host()+"/"))
	}
	nobody := filepath.Join(s.folder, "root.json") // cosign trusts nobody but the key
	if err := os.WriteFile(nobody, []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cosign(t, "verify-blob", "--insecure-ignore-tlog=true", "--new-bundle-format", "--trusted-root="+nobody,
		"--bundle", filepath.Join(s.assets, "checksums.txt.sigstore.json"), filepath.Join(s.assets, "checksums.txt"))
	say("cosign verify-blob: checksums.txt")
	unsigned := exec.CommandContext(t.Context(), os.Getenv("COSIGN"), "verify", "--key="+s.key, "--insecure-ignore-tlog=true", s.ofPlatform(t, runtime.GOARCH))
	if printed, err := unsigned.CombinedOutput(); err == nil {
		t.Errorf("cosign verifies what nobody has signed:\n%s", printed)
	}
}

func (s *stranger) cosign(t *testing.T, action string, args ...string) {
	t.Helper()
	command(t, s.folder, []string{"DOCKER_CONFIG=" + s.folder}, os.Getenv("COSIGN"), append([]string{action, "--key=" + s.key}, args...)...)
}

// ofPlatform returns the reference of the image for an architecture of Linux.
func (s *stranger) ofPlatform(t *testing.T, arch string) string {
	t.Helper()
	reference, err := name.NewDigest(s.image)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := s.pull(t, arch).Digest()
	if err != nil {
		t.Fatal(err)
	}
	return reference.Context().Digest(digest.String()).String()
}

func (s *stranger) pull(t *testing.T, arch string) v1.Image {
	t.Helper()
	reference, err := name.NewDigest(s.image)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(reference, remote.WithContext(t.Context()), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// pullsTheImage pulls the image for each architecture, and compares its program with the
// modules that the release says it is made of.
func (s *stranger) pullsTheImage(t *testing.T) {
	t.Helper()
	for _, arch := range strings.Split(os.Getenv("ARCHITECTURES"), ",") {
		built := s.compareModules(t, s.extract(t, arch), "rollout-controller")
		if !slices.Contains(built.Settings, debug.BuildSetting{Key: "GOARCH", Value: arch}) {
			t.Errorf("the image for %s has a program of %v", arch, built.Settings)
		}
		say("the image for %s has a program for it, made by %s", arch, built.GoVersion)
	}
}

// extract writes the program of the image to a file.
func (s *stranger) extract(t *testing.T, arch string) string {
	t.Helper()
	content := mutate.Extract(s.pull(t, arch))
	defer func() { _ = content.Close() }()
	path := filepath.Join(s.folder, "rollout-controller-"+arch)
	for from := tar.NewReader(content); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && header.Name == "rollout-controller" {
			err = write(path, from)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func write(path string, content io.Reader) error {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, content)
	return errors.Join(err, to.Close())
}

// compareModules checks that the SBOM has each module that is in a program.
func (s *stranger) compareModules(t *testing.T, program, sbom string) *debug.BuildInfo {
	t.Helper()
	var listed struct {
		Components []struct{ Name, Version string } `json:"components"`
	}
	if err := json.Unmarshal([]byte(s.read(t, fmt.Sprintf("%s_%s.cdx.json", sbom, s.version()))), &listed); err != nil {
		t.Fatal(err)
	}
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range built.Deps {
		if !slices.Contains(listed.Components, struct{ Name, Version string }{module.Path, module.Version}) {
			t.Errorf("%s is in the program %s and not in its SBOM", module.Path, sbom)
		}
	}
	say("the SBOM of %s has each of its %d modules", sbom, len(built.Deps))
	return built
}

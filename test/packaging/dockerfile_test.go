// SPDX-License-Identifier: Apache-2.0

// Package packaging tests the files that publish the project, the Dockerfile and the
// workflows that run elsewhere, against the contents of the project.
package packaging

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

func TestImageRunsTheProgramAsNobody(t *testing.T) {
	final := stages(t)[1]
	if final.of("FROM")[0] != "scratch" {
		t.Errorf("the image is made from %v", final.of("FROM"))
	}
	if user := final.of("USER"); !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(strings.Join(user, " ")) {
		t.Errorf("user %v: the kubelet can see only from a number that it is not root", user)
	}
	if got := final.of("ENTRYPOINT"); !slices.Equal(got, []string{`["/rollout-controller"]`}) {
		t.Errorf("entry point %v", got)
	}
	objects, err := manifests.Kustomize(t.Context(), manifests.Default)
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := manifests.As[appsv1.Deployment](objects, "Deployment")
	if err != nil {
		t.Fatal(err)
	}
	if command := deployments[0].Spec.Template.Spec.Containers[0].Command; command != nil {
		t.Errorf("the Deployment has a command of its own: %v", command)
	}
}

func TestBuildContextHasAllThatTheProgramsNeed(t *testing.T) {
	context := buildContext(t)
	builder, copied := stages(t)[0], stages(t)[1].of("COPY")
	for i, program := range []string{"rollout-controller", "rollout-web"} {
		if want := "--from=builder /" + program + " /" + program; !slices.Contains(copied, want) {
			t.Errorf("the image has no %s", program)
		}
		command := builder.of("RUN")[i+1]
		_, command, found := strings.Cut(command, "go build ")
		if !found || !strings.Contains(command, "-o /"+program+" ") {
			t.Fatalf("%q does not build %s", command, program)
		}
		builds(t, context, strings.ReplaceAll(command, "-o /"+program, "-o "+filepath.Join(t.TempDir(), program)))
	}
}

// builds checks that a program can be built, and knows its version.
func builds(t *testing.T, context, command string) {
	t.Helper()
	for _, architecture := range []string{"amd64", "arm64"} {
		// -n finds all packages, and prints the commands without running them.
		build := exec.CommandContext(t.Context(), "sh", "-ec", "go build -n "+command)
		build.Dir = context
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture, "VERSION=v1.2.0", "GOFLAGS=")
		printed, err := build.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", architecture, err, printed)
		}
		if !strings.Contains(string(printed), "main.version=v1.2.0") {
			t.Errorf("the program of %s does not know its version", architecture)
		}
	}
}

// instruction is one line of the Dockerfile. Continued lines are joined.
type instruction struct{ name, rest string }

// imageStage contains the instructions of a stage, which begins with FROM.
type imageStage []instruction

// of returns the arguments of each instruction of a name.
func (s imageStage) of(name string) []string {
	var all []string
	for _, i := range s {
		if i.name == name {
			all = append(all, i.rest)
		}
	}
	return all
}

// stages reads the Dockerfile.
func stages(t *testing.T) []imageStage {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts.Root(), "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(content), "")
	var all []imageStage
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "" || strings.HasPrefix(name, "#"):
			continue
		case name == "FROM":
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], instruction{name, rest})
	}
	if len(all) != 2 {
		t.Fatalf("the Dockerfile has %d stages, want a builder and an image", len(all))
	}
	return all
}

// buildContext copies the files that the builder copies. It checks that .dockerignore
// allows them.
func buildContext(t *testing.T) string {
	t.Helper()
	context := t.TempDir()
	for _, copied := range stages(t)[0].of("COPY") {
		words := strings.Fields(copied)
		for _, source := range words[:len(words)-1] {
			if !admitted(t, strings.TrimSuffix(source, "/")) {
				t.Errorf(".dockerignore leaves out %s, which the Dockerfile copies", source)
			}
			copyInto(t, context, source)
		}
	}
	return context
}

// admitted reports whether .dockerignore makes an exception for a path.
func admitted(t *testing.T, source string) bool {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts.Root(), ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(strings.Split(string(content), "\n"), "!"+source)
}

// copyInto copies a file or a folder, without tests, to the same relative path in another
// folder.
func copyInto(t *testing.T, folder, source string) {
	t.Helper()
	root := os.DirFS(parts.Root())
	err := fs.WalkDir(root, filepath.Clean(source), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(folder, path), 0o750)
		case strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, path), content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

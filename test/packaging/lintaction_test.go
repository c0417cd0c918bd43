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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// lintAction is the folder of the action that lints.
const lintAction = ".github/actions/lint"

// printing stands for the program. It prints where it runs and its arguments, and ends as
// lint does if there are findings.
const printing = "#!/bin/sh\nbasename \"$PWD\"\nprintf '%s\\n' \"$@\"\nexit 2\n"

// copying stands for curl: it copies the last part of each address from a folder.
const copying = `#!/bin/sh
for address; do
	case $address in
	https://github.com/fluxrollouts/rollout-controller/releases/download/v0.4.0/*) cp "$RELEASE/${address##*/}" . || exit 22 ;;
	esac
done
`

// verifying stands for cosign. It knows only the signature of the workflow of v0.4.0.
const verifying = `#!/bin/sh
[ "$(cat checksums.txt.sigstore.json)" = signed ] && case "$*" in
*"--certificate-identity=https://github.com/fluxrollouts/rollout-controller/.github/workflows/release.yaml@refs/tags/v0.4.0 checksums.txt") exit 0 ;;
esac
exit 1
`

// publish writes a release. Only the archive for Linux has its checksum in the list: that
// of Windows has another one, and that of macOS none.
func publish(t *testing.T, signature string) (folder string) {
	t.Helper()
	var tarred, zipped bytes.Buffer
	compressed := gzip.NewWriter(&tarred)
	archive := tar.NewWriter(compressed)
	header := tar.Header{Name: "flux-rollout", Mode: 0o755, Size: int64(len(printing))}
	if err := archive.WriteHeader(&header); err != nil {
		t.Fatal(err)
	}
	_, err := archive.Write([]byte(printing))
	if err := errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	other := zip.NewWriter(&zipped)
	if _, err := other.Create("flux-rollout.exe"); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	const ours, changed = "flux-rollout_0.4.0_linux_amd64.tar.gz", "flux-rollout_0.4.0_windows_amd64.zip"
	return writeFiles(t, map[string]string{
		ours: tarred.String(), changed: zipped.String(), "flux-rollout_0.4.0_darwin_arm64.tar.gz": tarred.String(),
		"checksums.txt.sigstore.json": signature,
		"checksums.txt":               fmt.Sprintf("%x  %s\n%x  %s\n", sha256.Sum256(tarred.Bytes()), ours, sha256.Sum256(nil), changed),
	})
}

func TestActionLintsWithTheRelease(t *testing.T) {
	for name, tt := range map[string]struct {
		version, system, processor string
		want                       string
		code                       int
	}{
		"linux":             {"v0.4.0", "Linux", "X64", "checkout\nlint\n-o\ngithub\nclusters/a\nclusters/b c\n--external=ImagePolicy/shop/shop\n", 2},
		"another checksum":  {"v0.4.0", "Windows", "X64", "", 1},
		"no checksum":       {"v0.4.0", "macOS", "ARM64", "::error::The release has no checksum of flux-rollout_0.4.0_darwin_arm64.tar.gz.\n", 1},
		"no archive":        {"v0.4.0", "Linux", "ARM64", "", 22},
		"a branch":          {"main", "Linux", "X64", "::error::The action is not used by the tag of a release. Name a release such as v0.4.0 with the input version.\n", 1},
		"lines in a tag":    {"v0.4.0\n::set", "Linux", "X64", "::error::The action is not used by the tag of a release. Name a release such as v0.4.0 with the input version.\n", 1},
		"another system":    {"v0.4.0", "Plan9", "X64", "::error::There is no release for this operating system. Use Linux, macOS or Windows.\n", 1},
		"another processor": {"v0.4.0", "Linux", "ARM", "::error::There is no release for this processor. Use amd64 or arm64.\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, code := runLintAction(t, publish(t, "signed"), "VERSION="+tt.version, "SYSTEM="+tt.system, "PROCESSOR="+tt.processor,
				"PATHS=clusters/a\nclusters/b c", "ARGS=--external=ImagePolicy/shop/shop\n")
			if got != tt.want || code != tt.code {
				t.Errorf("exit code %d, want %d; it prints %q, want %q", code, tt.code, got, tt.want)
			}
		})
	}
}

// A checksum from the same place as the archive proves nothing about who made both.
func TestActionRunsOnlyWhatTheWorkflowHasSigned(t *testing.T) {
	got, code := runLintAction(t, publish(t, "by somebody else"), "VERSION=v0.4.0", "SYSTEM=Linux", "PROCESSOR=X64", "PATHS=.", "ARGS=")
	if want := "::error::The checksums of the release are not signed by its workflow.\n"; got != want || code != 1 {
		t.Errorf("exit code %d; it prints %q, want %q", code, got, want)
	}
}

// runLintAction runs the script of the action in a folder named checkout, and returns what
// it prints.
func runLintAction(t *testing.T, release string, env ...string) (printed string, code int) {
	t.Helper()
	tools := writeFiles(t, map[string]string{"curl": copying, "cosign": verifying})
	for _, name := range []string{"curl", "cosign"} {
		if err := os.Chmod(filepath.Join(tools, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	checkout := filepath.Join(t.TempDir(), "checkout")
	if err := os.Mkdir(checkout, 0o700); err != nil {
		t.Fatal(err)
	}
	script := exec.CommandContext(t.Context(), "bash", filepath.Join(parts.Root(), lintAction, "lint.sh"))
	script.Dir = checkout
	script.Env = append(os.Environ(), append(env, "PATH="+tools+":"+os.Getenv("PATH"), "RELEASE="+release, "FOLDER="+t.TempDir())...)
	output, err := script.Output()
	exit := &exec.ExitError{}
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(output), script.ProcessState.ExitCode()
}

func TestActionGivesItsScriptWhatItNeeds(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(parts.Root(), lintAction, "action.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]any `json:"inputs"`
		Runs   struct {
			Using string `json:"using"`
			Steps []step `json:"steps"`
		} `json:"runs"`
	}
	if err := yaml.Unmarshal(content, &action); err != nil || action.Runs.Using != "composite" || len(action.Runs.Steps) != 2 {
		t.Fatalf("%+v, %v", action, err)
	}
	only := action.Runs.Steps[1]
	if only.Run != `bash "$GITHUB_ACTION_PATH/lint.sh"` {
		t.Errorf("it runs %s", only.Run)
	}
	script, err := os.ReadFile(filepath.Join(parts.Root(), lintAction, "lint.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"VERSION", "SYSTEM", "PROCESSOR", "FOLDER", "PATHS", "ARGS"} {
		if only.Env[name] == "" || !strings.Contains(string(script), "$"+name) && !strings.Contains(string(script), "${"+name) {
			t.Errorf("%s is %q, and the script may not use it", name, only.Env[name])
		}
	}
	for input := range action.Inputs {
		if !strings.Contains(string(content), "inputs."+input) {
			t.Errorf("the input %s has no effect", input)
		}
	}
}

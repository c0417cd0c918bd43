// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// published is where the files of a release are.
const published = "https://github.com/fluxrollouts/rollout-controller"

// installWithFlux runs the commands of the guide with the real flux, and then the plugin.
func installWithFlux(t *testing.T, files map[string][]byte) {
	t.Helper()
	guide, server := readFluxGuide(t), serveRelease(t, files)
	home := homeWithFlux(t)
	for _, tt := range []struct{ command, want string }{
		{guide, "✔ installed rollout v0.4.0\n"},
		{"flux plugin list", filepath.Join(home, ".fluxcd", "plugins", "flux-rollout")},
		{"flux plugin list | awk '{ print $1, $2 }'", "\nrollout 0.4.0\n"},
		{"flux rollout version --client", "flux-rollout v0.4.0\n"},
		{"flux rollout explain --help", "\n  flux rollout explain shop\n"},
		{strings.ReplaceAll(guide, "plugin install", "plugin update"), "✔ rollout already up to date (v0.4.0)\n"},
	} {
		run := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(tt.command, published, server))
		run.Env = []string{"HOME=" + home, "PATH=" + home + string(os.PathListSeparator) + os.Getenv("PATH")}
		if printed, err := run.CombinedOutput(); err != nil || !strings.Contains(string(printed), tt.want) {
			t.Errorf("%s: %v, want %q in\n%s", tt.command, err, tt.want, printed)
		}
	}
}

// readFluxGuide returns the commands by which the guide installs the plugin.
func readFluxGuide(t *testing.T) string {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "guides", "command-line.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n### As a plugin of flux\n")
	_, commands, _ := strings.Cut(section, "```sh\n")
	commands, _, found := strings.Cut(commands, "```\n")
	if !found || !strings.Contains(commands, published) {
		t.Fatalf("the guide does not install from %s: %q", published, commands)
	}
	return commands
}

// homeWithFlux returns a home folder that has the program flux.
func homeWithFlux(t *testing.T) string {
	t.Helper()
	built, err := parts.Build(t.Context(), os.Stderr, parts.FluxCLI)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.Symlink(built[parts.FluxCLI], filepath.Join(home, "flux")); err != nil {
		t.Fatal(err)
	}
	return home
}

// serveRelease serves the files of a release where GitHub does. The manifest names the
// server in place of GitHub.
func serveRelease(t *testing.T, files map[string][]byte) (url string) {
	t.Helper()
	answer := func(w http.ResponseWriter, r *http.Request) {
		content, exists := files[r.PathValue("name")]
		if !exists {
			http.NotFound(w, r)
			return
		}
		if r.PathValue("name") == "rollout.yaml" {
			content = bytes.ReplaceAll(content, []byte(published), []byte("http://"+r.Host))
		}
		if _, err := w.Write(content); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /releases/latest/download/{name}", answer)
	mux.HandleFunc("GET /releases/download/v0.4.0/{name}", answer)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

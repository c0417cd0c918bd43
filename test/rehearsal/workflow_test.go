// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// workflow has what is needed to run the scripts of .github/workflows/release.yaml.
type workflow struct {
	Env  map[string]string `json:"env"`
	Jobs map[string]struct {
		Outputs map[string]string `json:"outputs"`
		Steps   []step            `json:"steps"`
	} `json:"jobs"`
}

type step struct {
	ID   string            `json:"id"`
	Uses string            `json:"uses"`
	Run  string            `json:"run"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
}

func readWorkflow(t *testing.T) workflow {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts.Root(), ".github", "workflows", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(content, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// done are the actions whose work is done here by a case of runner.run, or because what they
// install is here.
var done = []string{"actions/checkout", "docker/login-action", "actions/setup-go", "sigstore/cosign-installer"}

// jobs are those that the rehearsal runs.
var jobs = []string{"draft", "publish", "release", "sign", "test"}

func TestRehearsalLeavesOutNothingOfTheWorkflow(t *testing.T) {
	w := readWorkflow(t)
	if got := slices.Sorted(maps.Keys(w.Jobs)); !slices.Equal(got, jobs) {
		t.Errorf("the workflow has the jobs %v, the rehearsal %v", got, jobs)
	}
	for name, job := range w.Jobs {
		for _, s := range job.Steps {
			if action, _, _ := strings.Cut(s.Uses, "@"); action != "" && !slices.Contains(done, action) {
				t.Errorf("the job %s uses %s, and the rehearsal does not know what that does", name, action)
			}
		}
	}
}

func TestOutputsAreReadAsGitHubReadsThem(t *testing.T) {
	want := map[string]string{"digest": "sha256:5c", "references": "a@1\nb@2", "bundle": `{"a=b":1}`}
	text := "digest=sha256:5c\nreferences<<END\na@1\nb@2\nEND\nbundle={\"a=b\":1}\n"
	if got := parseOutputs(text); !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// runner runs jobs as GitHub does. It does what the actions do, as far as it is needed here.
type runner struct {
	workflow
	// origin is the repository that is checked out.
	origin string
	// login is the folder in which `docker login` stores a login.
	login string
	// environment is that of all scripts.
	environment []string
	// known are the values of expressions.
	known map[string]string
}

// run runs the steps of a job that have no script, and the scripts that are wanted. It
// returns the error of a script, and what it printed.
func (r *runner) run(t *testing.T, job string, wanted func(script string) bool) error {
	t.Helper()
	folder := t.TempDir()
	for i, s := range r.Jobs[job].Steps {
		action, _, _ := strings.Cut(s.Uses, "@")
		switch {
		case action == "" && wanted(s.Run):
			if err := r.script(t, folder, s); err != nil {
				return fmt.Errorf("step %d of the job %s: %w", i+1, job, err)
			}
		case action == "actions/checkout":
			r.checkout(t, folder)
		case action == "docker/login-action":
			r.logIn(t, r.expand(t, fmt.Sprint(s.With["registry"])), r.expand(t, fmt.Sprint(s.With["username"])), r.expand(t, fmt.Sprint(s.With["password"])))
		}
	}
	for name, value := range r.Jobs[job].Outputs {
		r.known["needs."+job+".outputs."+name] = r.expand(t, value)
	}
	return nil
}

// checkout clones the repository. The tools that are built already are not built again.
func (r *runner) checkout(t *testing.T, folder string) {
	t.Helper()
	git(t, folder, "clone", "--quiet", r.origin, ".")
	for _, built := range []string{"helm", "tools", "sbom"} {
		if err := os.MkdirAll(filepath.Join(folder, "bin"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(parts.Root(), "bin", built), filepath.Join(folder, "bin", built)); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *runner) logIn(t *testing.T, registry, user, password string) {
	t.Helper()
	login := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, registry, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	if err := os.WriteFile(filepath.Join(r.login, "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *runner) script(t *testing.T, folder string, s step) error {
	t.Helper()
	outputs := filepath.Join(t.TempDir(), "outputs")
	run := exec.CommandContext(t.Context(), "bash", "-e", "-c", s.Run)
	run.Dir, run.Env = folder, append(slices.Clone(r.environment), "GITHUB_OUTPUT="+outputs)
	for name, value := range s.Env {
		run.Env = append(run.Env, name+"="+r.expand(t, value))
	}
	if printed, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, printed)
	}
	content, err := os.ReadFile(outputs)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for name, value := range parseOutputs(string(content)) {
		r.known["steps."+s.ID+".outputs."+name] = value
	}
	return nil
}

var output = regexp.MustCompile(`(?sm)^(\w+)<<(\w+)\n(.*?)\n?^END$|^(\w+)=([^\n]*)$`)

// parseOutputs reads the outputs of a step: name=value, or lines up to END.
func parseOutputs(text string) map[string]string {
	all := map[string]string{}
	for _, match := range output.FindAllStringSubmatch(text, -1) {
		all[match[1]+match[4]] = match[3] + match[5]
	}
	return all
}

var expression = regexp.MustCompile(`\$\{\{ ([^ ]+) \}\}`)

// expand replaces expressions by their values.
func (r *runner) expand(t *testing.T, text string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(found string) string {
		name := expression.FindStringSubmatch(found)[1]
		value, known := r.known[name]
		if !known {
			t.Fatalf("nothing has said what %s is", name)
		}
		return value
	})
}

func git(t *testing.T, folder string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(command(t, folder, nil, "git", args...))
}

// command runs a program, and returns what it prints.
func command(t *testing.T, folder string, environment []string, name string, args ...string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), name, args...)
	run.Dir, run.Env = folder, append(os.Environ(), environment...)
	printed, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, printed)
	}
	return string(printed)
}

// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// workflow contains the checked fields of a workflow.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Env         map[string]string `json:"env"`
	Jobs        map[string]job    `json:"jobs"`
}

type job struct {
	Environment    string            `json:"environment"`
	Needs          any               `json:"needs"`
	TimeoutMinutes int               `json:"timeout-minutes"`
	Permissions    map[string]string `json:"permissions"`
	Steps          []step            `json:"steps"`
}

type step struct {
	Uses string            `json:"uses"`
	Run  string            `json:"run"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
}

// The jobs of ci run the parts of make test and make test-all. None of the parts may be
// missing there.
func TestEachPartOfAllTestsIsAJob(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(parts.Root(), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	run := workflowTexts(t)["ci"]
	for _, rule := range []string{"test", "test-all"} {
		needs := regexp.MustCompile(`(?m)^` + rule + `: (.*) ##`).FindSubmatch(content)
		if needs == nil {
			t.Fatalf("the Makefile has no rule %s", rule)
		}
		for _, target := range strings.Fields(string(needs[1])) {
			if !regexp.MustCompile(`- run: make .*\b` + target + `\b`).MatchString(run) {
				t.Errorf("no job of ci makes %s, which belongs to make %s", target, rule)
			}
		}
	}
}

// Only the jobs that publish may write, and they may write only what they publish.
func TestWorkflowsMayDoNoMoreThanTheyMust(t *testing.T) {
	want := map[string]map[string]string{
		"ci/check":              {"contents": "read"},
		"ci/controlplane":       {"contents": "read"},
		"ci/test":               {"contents": "read"},
		"ci/site":               {"contents": "read"},
		"deflake/deflake":       {"contents": "read"},
		"ci/race":               {"contents": "read"},
		"ci/extended":           {"contents": "read"},
		"ci/image":              {"contents": "read"},
		"ci/kind":               {"contents": "read"},
		"release/test":          {"contents": "read"},
		"release/publish":       {"contents": "read", "packages": "write"},
		"release/draft":         {"contents": "write"},
		"release/sign":          {"packages": "write", "id-token": "write"},
		"release/release":       {"contents": "write"},
		"soak/soak":             {"contents": "read"},
		"vulnerabilities/check": {"contents": "read"},
	}
	got := map[string]map[string]string{}
	for name, w := range workflows(t) {
		if w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("%s gives all its jobs the permissions %v, want none", name, w.Permissions)
		}
		for jobName, j := range w.Jobs {
			got[name+"/"+jobName] = j.Permissions
			if j.TimeoutMinutes == 0 {
				t.Errorf("%s/%s may run for hours", name, jobName)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

func TestNothingIsPublishedThatWasNotTested(t *testing.T) {
	needs := map[string]any{}
	for name, j := range workflows(t)["release"].Jobs {
		needs[name] = j.Needs
	}
	want := map[string]any{"test": nil, "publish": "test", "draft": "publish", "sign": []any{"publish", "draft"}, "release": "sign"}
	if diff := cmp.Diff(want, needs); diff != "" {
		t.Errorf("what jobs wait for (-want +got):\n%s", diff)
	}
}

// Code of the project, or of a module that it uses, could sign anything in the project's
// name.
func TestSigningJobRunsNothingOfTheProject(t *testing.T) {
	signs := 0
	for name, w := range workflows(t) {
		for jobName, j := range w.Jobs {
			if j.Permissions["id-token"] == "" {
				continue
			}
			signs++
			for _, s := range j.Steps {
				if strings.Contains(s.Uses, "checkout") || regexp.MustCompile(`\b(make|go|npm) `).MatchString(s.Run) {
					t.Errorf("%s/%s signs, and runs %s%s", name, jobName, s.Uses, s.Run)
				}
			}
		}
	}
	if signs == 0 {
		t.Error("nothing signs")
	}
}

// A user who may push a tag must not be able to release code that nobody has reviewed.
func TestReleasesComeFromMainOnly(t *testing.T) {
	steps := workflows(t)["release"].Jobs["test"].Steps
	if steps[0].With["fetch-depth"] != 0.0 || steps[1].Run != `git merge-base --is-ancestor "$GITHUB_SHA" origin/main` {
		t.Errorf("the first steps are %v", steps[:2])
	}
}

// A skipped check must not look like a check that found nothing.
func TestRequiredLookIsNotSkipped(t *testing.T) {
	for _, path := range [][2]string{{"release", "test"}, {"vulnerabilities", "check"}} {
		looks := func(s step) bool {
			return strings.HasPrefix(s.Run, "make ") && s.Env["VULNCHECK_REQUIRED"] == "1"
		}
		if !slices.ContainsFunc(workflows(t)[path[0]].Jobs[path[1]].Steps, looks) {
			t.Errorf("%s/%s may skip the look for known vulnerabilities", path[0], path[1])
		}
	}
}

// Flux up to 2.7 cannot verify signatures of cosign 3. Therefore the workflow, and not
// the installer, sets the version of cosign. The rehearsal signs with the same.
func TestCosignIsPinned(t *testing.T) {
	for _, s := range workflows(t)["release"].Jobs["sign"].Steps {
		if strings.HasPrefix(s.Uses, "sigstore/cosign-installer@") {
			version := fmt.Sprint(s.With["cosign-release"])
			rehearsed, err := os.ReadFile(filepath.Join(parts.Root(), "hack", "cosign", "go.mod"))
			if err != nil || !strings.HasPrefix(version, "v2.") || !strings.Contains(string(rehearsed), "sigstore/cosign/v2 "+version+" ") {
				t.Errorf("cosign is %s, in the rehearsal another: %v", version, err)
			}
			return
		}
	}
	t.Error("nobody installs cosign")
}

// TestPrereleaseDoesNotBecomeTheLatest runs the script as a runner does, with a gh that
// records its arguments.
func TestPrereleaseDoesNotBecomeTheLatest(t *testing.T) {
	script := workflows(t)["release"].Jobs["release"].Steps[0].Run
	for tag, want := range map[string]string{
		"v0.2.0":      "release edit v0.2.0 --draft=false --latest --repo o/r",
		"v0.2.0-rc.1": "release edit v0.2.0-rc.1 --draft=false --prerelease --repo o/r",
	} {
		folder := writeFiles(t, map[string]string{"gh": "#!/bin/sh\necho \"$@\" >> calls\n"})
		if err := os.Chmod(filepath.Join(folder, "gh"), 0o700); err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(t.Context(), "bash", "-e", "-c", script)
		run.Dir = folder
		run.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "GITHUB_REF_NAME="+tag, "GITHUB_REPOSITORY=o/r", "BUNDLE={}")
		if printed, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		calls, err := os.ReadFile(filepath.Join(folder, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(strings.TrimSpace(string(calls)), "\n"); lines[len(lines)-1] != want {
			t.Errorf("%s: gh is called with %q, want %q", tag, lines, want)
		}
	}
}

// The image is run once, with the restrictions of the Deployment. The script is run as a
// runner does, with a docker that records its arguments and may fail.
func TestImageIsRunAsTheDeploymentRunsIt(t *testing.T) {
	steps := workflows(t)["ci"].Jobs["image"].Steps
	built, run := steps[len(steps)-2], steps[len(steps)-1]
	image := fmt.Sprint(built.With["tags"])
	if built.With["load"] != true || !strings.HasPrefix(built.Uses, "docker/build-push-action@") {
		t.Errorf("before it is run the image is not loaded: %v", built)
	}
	want := map[string]string{
		"readOnlyRootFilesystem: true":    "--read-only",
		"allowPrivilegeEscalation: false": "--security-opt no-new-privileges",
		"drop: [ALL]":                     "--cap-drop ALL",
	}
	deployment, err := os.ReadFile(filepath.Join(parts.Root(), "config", "manager", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for code := range 2 {
		folder := writeFiles(t, map[string]string{"docker": fmt.Sprintf("#!/bin/sh\necho \"$@\" >> calls\nexit %d\n", code)})
		if err := os.Chmod(filepath.Join(folder, "docker"), 0o700); err != nil {
			t.Fatal(err)
		}
		runner := exec.CommandContext(t.Context(), "bash", "-e", "-c", run.Run)
		runner.Dir = folder
		runner.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		if failed := runner.Run() != nil; failed != (code != 0) {
			t.Errorf("docker ends with %d, and it is %t that the step fails", code, failed)
		}
		calls, err := os.ReadFile(filepath.Join(folder, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(calls), "run ") || !strings.HasSuffix(string(calls), " "+image+" --help\n") || strings.Contains(string(calls), "--user") {
			t.Errorf("docker is called with %s", calls)
		}
		for means, flag := range want {
			if !strings.Contains(string(deployment), means) || !strings.Contains(string(calls), flag) {
				t.Errorf("the Deployment or docker has no %s: %s", means, calls)
			}
		}
	}
}

// Dependabot updates the digest of an image but adds none. Therefore Renovate manages the
// Dockerfile.
func TestBotPinsTheImagesOfTheDockerfile(t *testing.T) {
	var renovate struct {
		EnabledManagers []string `json:"enabledManagers"`
		PinDigests      bool     `json:"pinDigests"`
	}
	read := func(name string, into any) {
		content, err := os.ReadFile(filepath.Join(parts.Root(), ".github", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(content, into); err != nil {
			t.Fatal(err)
		}
	}
	read("renovate.json", &renovate)
	if !renovate.PinDigests || !slices.Equal(renovate.EnabledManagers, []string{"dockerfile"}) {
		t.Errorf("Renovate pins: %t, what %v names", renovate.PinDigests, renovate.EnabledManagers)
	}
	var dependabot struct {
		Updates []struct {
			Ecosystem string `json:"package-ecosystem"`
		} `json:"updates"`
	}
	read("dependabot.yml", &dependabot)
	for _, update := range dependabot.Updates {
		if update.Ecosystem == "docker" {
			t.Error("Dependabot has the Dockerfile as well")
		}
	}
	if len(dependabot.Updates) < 2 {
		t.Errorf("Dependabot has only %v", dependabot.Updates)
	}
}

// A tag of an action can be moved. A commit cannot.
func TestActionsArePinnedByCommit(t *testing.T) {
	pinned := regexp.MustCompile(`uses: [a-z0-9-]+/[a-z0-9-]+@[0-9a-f]{40} # v[0-9.]+$`)
	commits := map[string]string{}
	texts := workflowTexts(t)
	action, err := os.ReadFile(filepath.Join(parts.Root(), lintAction, "action.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	texts["lint"] = string(action)
	for name, text := range texts {
		for line := range strings.Lines(text) {
			_, use, found := strings.Cut(strings.TrimSpace(line), "uses: ")
			if !found || strings.HasPrefix(line, "#") {
				continue
			}
			if !pinned.MatchString(strings.TrimSpace(line)) {
				t.Errorf("%s: %s", name, strings.TrimSpace(line))
			}
			action, commit, _ := strings.Cut(use, "@")
			if known := commits[action]; known != "" && known != commit {
				t.Errorf("%s is used as %s and as %s", action, known, commit)
			}
			commits[action] = commit
		}
	}
	if len(commits) < 5 {
		t.Errorf("found only %v", commits)
	}
}

func TestWorkflowsNameOnlyWhatIsThere(t *testing.T) {
	targets := makeTargets(t)
	made := regexp.MustCompile(`make ((?:--?[a-z-]+ )*[a-z-]+(?: [a-z-]+)*)`)
	files := []string{"file", "context", "go-version-file"}
	found := map[string]bool{}
	for name, w := range workflows(t) {
		for jobName, j := range w.Jobs {
			for _, step := range j.Steps {
				for _, command := range made.FindAllStringSubmatch(step.Run, -1) {
					for target := range strings.FieldsSeq(command[1]) {
						if strings.HasPrefix(target, "-") {
							continue
						}
						found[target] = true
						if !slices.Contains(targets, target) {
							t.Errorf("%s/%s makes %s, which the Makefile does not have", name, jobName, target)
						}
					}
				}
				for _, input := range files {
					if path, given := step.With[input]; given && !exists(fmt.Sprint(path)) {
						t.Errorf("%s/%s names %v, which does not exist", name, jobName, path)
					}
				}
				// A value that others can choose, such as a branch name, must not be run
				// as a program.
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s/%s puts an expression into a script: %s", name, jobName, step.Run)
				}
			}
		}
	}
	for _, target := range []string{"check", "test-controlled", "test-race", "test-extended", "test", "test-all", "release-check", "release-notes", "release-pin", "push-image", "push-artifact", "push-chart", "release-files", "vulncheck", "kind"} {
		if !found[target] {
			t.Errorf("no workflow makes %s", target)
		}
	}
}

func TestImageIsPublishedUnderTheNameThatIsInstalled(t *testing.T) {
	image := workflows(t)["release"].Env["IMAGE"]
	for _, path := range []string{"config/manager/kustomization.yaml", "config/manager/deployment.yaml", "charts/rollout-controller/values.yaml"} {
		content, err := os.ReadFile(filepath.Join(parts.Root(), path))
		if err != nil {
			t.Fatal(err)
		}
		if image == "" || !strings.Contains(string(content), image) {
			t.Errorf("%s does not name %q", path, image)
		}
	}
}

// workflowTexts returns the workflows by name.
func workflowTexts(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(parts.Root(), ".github", "workflows", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(path), ".yaml")] = string(content)
	}
	return texts
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	all := map[string]workflow{}
	for name, text := range workflowTexts(t) {
		var w workflow
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = w
	}
	return all
}

// makeTargets returns the targets that make help shows.
func makeTargets(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts.Root(), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `).FindAllStringSubmatch(string(content), -1) {
		targets = append(targets, match[1])
	}
	return targets
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Join(parts.Root(), path))
	return err == nil
}

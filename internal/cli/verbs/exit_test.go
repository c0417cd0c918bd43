// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// TestExitCodesDependOnTheAnswerAlone asks the same questions in all formats, and for a
// terminal as well as for a pipe.
func TestExitCodesDependOnTheAnswerAlone(t *testing.T) {
	folder := unpacked(t, "explain.txtar", "get.txtar", "doctor.txtar", "lint.txtar", "quarantine.txtar")
	for question, want := range map[string]int{
		"explain shop -n shop -f explain/objects.yaml":                         0,
		"explain shop -n shop -f explain/objects.yaml --check":                 program.No,
		"explain shop -n shop -f explain/objects.yaml --check --version 1.3.2": 0,
		"explain shop -n shop -f explain/objects.yaml --check --version 1.5.0": program.No,
		"explain nobody -n shop -f explain/objects.yaml":                       program.Failed,
		"history shop -n shop -f explain/objects.yaml":                         0,
		"history shop 9 -n shop -f explain/objects.yaml":                       program.Failed,
		"status shop -n shop -f explain/objects.yaml":                          0,
		"simulate shop -n shop -f explain/objects.yaml --gate qa=open":         0,
		"simulate shop -n shop -f explain/objects.yaml --gate nobody=open":     program.Failed,
		"get -n shop --cluster-of get":                                         0,
		"get nobody -n shop --cluster-of get":                                  program.Failed,
		"diff -n shop -f get/open.yaml --cluster-of get":                       program.No,
		"diff -n shop -f get/other.yaml --cluster-of get":                      0,
		"freeze -A --cluster-of doctor/frozen.yaml":                            0,
		"freeze -A":                                      program.Failed,
		"quarantine -A --cluster-of quarantine":          0,
		"quarantine -A":                                  program.Failed,
		"doctor -n shop --cluster-of doctor":             0,
		"doctor -n edge --cluster-of doctor/shards.yaml": program.No,
		"lint lint/bad":                                  program.No,
		"lint lint/bad --external ImagePolicy/shop/shop --disable R207": 0,
		"lint lint/nothing": program.Failed,
		"trace Rollout/shop -n shop -f explain/objects.yaml --no-such-flag=twice": program.Failed,
	} {
		t.Run(question, func(t *testing.T) {
			got := map[string]int{}
			for _, format := range []string{"", "-o=json", "-o=yaml", "-o=jsonpath={.kind}", "-o=jsonpath-as-json={.kind}"} {
				for _, terminal := range []bool{true, false} {
					if code := exitCode(t, folder, question+" "+format, terminal); code != want {
						got[fmt.Sprintf("%q, terminal: %t", format, terminal)] = code
					}
				}
			}
			if diff := cmp.Diff(map[string]int{}, got); diff != "" {
				t.Errorf("exit codes that are not %d (-want +got):\n%s", want, diff)
			}
		})
	}
}

// endings are the exit codes of each verb, for what follows it on the cluster of
// change.txtar. 0 also if what a change asks for is so already; 1 for wrong use, for a name
// that no object has, and if nobody can be asked; 2 if the answer is no.
var endings = map[string]map[string]int{
	"adopt":           {"nobody": program.Failed, "shop": program.No},
	"approve":         {"nobody --gate qa --version 1.5.0": program.Failed, "shop --gate legal --version 1.5.0": program.Failed, "shop --gate qa --version 1.5.0": program.Failed, "shop --gate qa --version 1.5.0 -y": 0},
	"approvals":       {"nobody": program.Failed, "": 0},
	"bug-report":      {"nobody": program.Failed},
	"completion":      {"bash": 0, "tcsh": program.Failed},
	"create gate":     {"": program.Failed},
	"create rollout":  {"": program.Failed},
	"create schedule": {"": program.Failed},
	"diff":            {"": program.Failed},
	"doctor":          {"shop": program.Failed},
	"events":          {"nobody": program.Failed, "shop": 0},
	"explain":         {"nobody": program.Failed, "shop": 0, "shop --check": program.No},
	"freeze":          {"nobody -m why": program.Failed, "shop": program.Failed, "-l tier=db -m why": program.No, "shop -m why": 0},
	"freezes":         {"": 0},
	"get":             {"nobody": program.Failed, "": 0},
	"history":         {"nobody": program.Failed, "shop 9": program.Failed, "shop": 0},
	"keys create":     {"": program.Failed},
	"keys list":       {"": program.No},
	"keys public":     {"": program.Failed},
	"lift":            {"nobody": program.Failed},
	"lint":            {"": program.Failed},
	"options":         {"": 0},
	"override":        {"nobody -m because-of-this": program.Failed, "shop -m short": program.Failed, "shop -m because-of-this": program.No},
	"pin":             {"nobody 1.3.1": program.Failed, "shop 1.3.1": program.Failed, "shop 1.3.1 -y": 0},
	"pipeline":        {"nobody": program.Failed, "": 0},
	"promote":         {"nobody": program.Failed, "shop": program.No, "shop --version 1.0.0": program.No, "shop --past-gates": program.Failed, "shop --past-gates -y": 0},
	"quarantine":      {"nobody -m why": program.Failed, "shop -m why -y": 0},
	"reconcile":       {"nobody": program.Failed, "web": program.No},
	"reject":          {"nobody": program.Failed, "shop": program.No},
	"resume":          {"nobody": program.Failed, "web": 0, "shop": 0},
	"retry":           {"nobody": program.Failed, "shop": program.No},
	"rollback":        {"nobody -m why": program.Failed, "shop": program.Failed, "shop -m why --to #7": program.No, "shop -m why -y": 0},
	"simulate":        {"nobody": program.Failed, "shop": 0},
	"status":          {"nobody": program.Failed, "shop": 0},
	"suspend":         {"nobody": program.Failed, "web": 0, "shop": 0},
	"trace":           {"rollout/nobody": program.Failed, "rollout/shop": 0},
	"ui":              {"nobody": program.Failed, "--open=false --port 70000": program.Failed},
	"unblock":         {"nobody": program.Failed, "shop": program.No},
	"unfreeze":        {"nobody": program.Failed, "shop": 0, "--all": 0},
	"unpin":           {"nobody": program.Failed, "shop": 0},
	"version":         {"--client": 0},
	"wait":            {"shop --for=ready": program.Failed, "shop 1.5.0 --for=idle": program.Failed, "shop 1.5.0 --timeout 1d1": program.Failed},
	"watch":           {"nobody": program.Failed},
	"withdraw":        {"nobody bypass": program.Failed, "shop everything": program.Failed, "shop bypass": 0, "shop approval": 0},
}

func TestExitCodesOfEachVerb(t *testing.T) {
	folder := unpacked(t, "change.txtar")
	for _, verb := range NewRoot(program.New("kubectl rollouts", genericiooptions.NewTestIOStreamsDiscard())).Commands() {
		names := []string{verb.Name()}
		if verb.HasSubCommands() {
			names = nil
			for _, below := range verb.Commands() {
				names = append(names, verb.Name()+" "+below.Name())
			}
		}
		for _, name := range names {
			if len(endings[name]) == 0 && !verb.Hidden && verb.Name() != "help" {
				t.Errorf("%s has no line in the table", name)
			}
			cases := map[string]int{"--no-such-flag": program.Failed}
			maps.Copy(cases, endings[name])
			for rest, want := range cases {
				if got := exitCode(t, folder, name+" "+rest+" -n shop --cluster-of change", false); got != want {
					t.Errorf("%s %s: exit code %d, want %d", name, rest, got, want)
				}
			}
		}
	}
}

// unpacked writes the files of scripts to a folder for each.
func unpacked(t *testing.T, scripts ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, script := range scripts {
		archive, err := txtar.ParseFile(filepath.Join("testdata", "script", script))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			path := filepath.Join(folder, strings.TrimSuffix(script, ".txtar"), file.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, file.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// exitCode runs a command. A file of objects after --cluster-of, or cluster.yaml of a
// folder, is the cluster; without it, there is none.
func exitCode(t *testing.T, folder, command string, terminal bool) int {
	t.Helper()
	args := strings.Fields(command)
	var objects string
	if at := slices.Index(args, "--cluster-of"); at > 0 {
		objects = filepath.Join(folder, args[at+1])
		args = slices.Delete(args, at, at+2)
	}
	for i, arg := range args {
		if i > 0 && slices.Contains([]string{"-f", "lint"}, args[i-1]) {
			args[i] = filepath.Join(folder, arg)
		}
	}
	var out bytes.Buffer
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	p.Out.Style = show.StyleOf(terminal, 80, func(string) string { return "" })
	p.Err.Style, p.Now, p.Zone = p.Out.Style, func() time.Time { return noon }, time.UTC
	empty := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Kubeconfig.KubeConfig = &empty
	p.Connect = func(context.Context) (program.Cluster, error) {
		if filepath.Ext(objects) == "" {
			objects = filepath.Join(objects, "cluster.yaml")
		}
		c, _, err := openRecording(objects, filepath.Join(folder, "patch"))
		return c, err
	}
	code := run(t.Context(), p, args)
	if len(out.Bytes()) == 0 && code == program.Failed {
		t.Errorf("%s (terminal: %t) failed without a word", command, terminal)
	}
	return code
}

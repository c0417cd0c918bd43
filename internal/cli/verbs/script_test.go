// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

var update = flag.Bool("update", false, "write the expected outputs in testdata/script")

// noon is the time in all scripts, on a Saturday in Central Europe.
var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// TestScripts runs the files in testdata/script, each a case: objects, commands, and what
// they print. A script with a file cluster.yaml has a cluster of these objects, which
// stores the last patch in the file patch.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			if _, err := os.Stat(env.WorkDir + "/kubeconfig"); err == nil {
				return nil
			}
			return os.WriteFile(env.WorkDir+"/kubeconfig", nil, 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"rollouts": rollouts},
	})
}

// rollouts runs the program. "rollouts 2 explain shop" expects exit code 2; without a
// number it expects 0.
func rollouts(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("write the exit code in place of !")
	}
	want := 0
	if len(args) > 0 {
		if code, err := strconv.Atoi(args[0]); err == nil {
			want, args = code, args[1:]
		}
	}
	args = inFolder(ts, args)
	p := scripted(ts, "patch", ts.Stdout(), ts.Stderr())
	if code := run(context.Background(), p, args); code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
	if !slices.Contains(args, "bug-report") {
		checkCommands(ts, p, want, args)
	}
}

// checkCommands runs a command again in another context than the current one, and checks
// all other commands that it suggests then.
func checkCommands(ts *testscript.TestScript, first *program.Program, code int, args []string) {
	namespace, err := first.Namespace()
	ts.Check(err)
	var out bytes.Buffer
	p := scripted(ts, "other-patch", &out, &out)
	config := ts.MkAbs("other-kubeconfig")
	ts.Check(os.WriteFile(config, []byte(kubeconfigOf(elsewhere, namespace)), 0o600))
	p.Kubeconfig.KubeConfig = &config
	if got := run(context.Background(), p, append(args, "--context="+elsewhere)); got != code {
		ts.Fatalf("in another context, the exit code is %d: %s", got, out.String())
	}
	pasted{elsewhere, ""}.checkSuggestions(out.String(), ts.Fatalf)
}

// scripted returns the program for a script. Its patches go to a file.
func scripted(ts *testscript.TestScript, patch string, out, err io.Writer) *program.Program {
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(ts.Getenv("STDIN")), Out: shortened{out, ts.MkAbs("")}, ErrOut: shortened{err, ts.MkAbs("")}})
	p.Out.Style = show.StyleOf(ts.Getenv("COLUMNS") != "", atoi(ts.Getenv("COLUMNS")), ts.Getenv)
	p.Err.Style = p.Out.Style
	p.Now, p.Zone = func() time.Time { return noon }, time.FixedZone("CET", 3600)
	config := ts.MkAbs("kubeconfig")
	p.Kubeconfig.KubeConfig = &config
	p.Asks = ts.Getenv("STDIN") != ""
	p.Connect = func(context.Context) (program.Cluster, error) {
		if _, err := os.Stat(ts.MkAbs("cluster.yaml")); err != nil {
			return program.Cluster{}, errors.New("this script has no cluster")
		}
		c, fake, err := openRecording(ts.MkAbs("cluster.yaml"), ts.MkAbs(patch))
		if err != nil {
			return program.Cluster{}, err
		}
		if err := fake.withoutKinds(ts.Getenv("UNSERVED"), ts.Getenv("FORBIDDEN")); err != nil {
			return program.Cluster{}, err
		}
		if err := fake.withoutPolicies(ts.Getenv("POLICIES")); err != nil {
			return program.Cluster{}, err
		}
		fake.denied = strings.Split(ts.Getenv("DENIED"), ",")
		fake.before, fake.anonymous = changesMeanwhile(ts, fake), ts.Getenv("ANONYMOUS") != ""
		return c, nil
	}
	return p
}

// changesMeanwhile returns what happens before a patch: in a script with a file
// meanwhile.yaml, its objects replace those of the cluster once, which is a conflict.
func changesMeanwhile(ts *testscript.TestScript, fake *recording) func() error {
	done := false
	return func() error {
		content, err := os.ReadFile(ts.MkAbs("meanwhile.yaml"))
		if err != nil || done {
			return nil
		}
		done = true
		objects, err := snapshot.Decode(fake.scheme, content)
		if err != nil {
			return err
		}
		if fake.facts, err = fake.facts.With(objects...); err != nil {
			return err
		}
		return conflict
	}
}

// shortened leaves the folder of the script out of what is written.
type shortened struct {
	to     io.Writer
	folder string
}

func (s shortened) Write(text []byte) (int, error) {
	if _, err := s.to.Write(bytes.ReplaceAll(text, []byte(s.folder+"/"), nil)); err != nil {
		return 0, err
	}
	return len(text), nil
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text) // no number means no width
	return n
}

// inFolder makes the names of files absolute: all scripts run in one process, which has
// one working directory.
func inFolder(ts *testscript.TestScript, args []string) []string {
	all := make([]string, len(args))
	for i, arg := range args {
		all[i] = arg
		isFile := i > 0 && slices.Contains([]string{"-f", "-O", "lint"}, args[i-1])
		if isFile && !strings.HasPrefix(arg, "-") {
			all[i] = ts.MkAbs(arg)
		}
	}
	return all
}

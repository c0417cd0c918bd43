// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
)

// suggestion finds commands that a text suggests: behind a sign or a colon, to the end of
// the line.
var suggestion = regexp.MustCompile(`(?m)(?:► |: )((?:kubectl|flux) [a-z].*)$`)

// suggestedIn returns the commands that a text suggests.
func suggestedIn(text string) []string {
	var all []string
	for _, match := range suggestion.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// pasted is the connection of the shell that a command is pasted into, with the flags of the
// call that has suggested it.
type pasted struct{ context, namespace string }

// elsewhere is a context that is not the current one.
const elsewhere = "elsewhere"

// check returns what is wrong with a suggested command: that a shell does not take it as one
// command, that the program does not accept it, or that it is about another cluster.
func (p pasted) check(line string) error {
	args, err := inShell(line)
	if err != nil {
		return err
	}
	own, isOwn := strings.CutPrefix(strings.Join(args, "\x00"), "kubectl\x00rollouts\x00")
	if !isOwn {
		return p.repeated(args)
	}
	args = strings.Split(own, "\x00")
	if len(args) == 1 && isVerb(args[0]) {
		return nil // it may be the verb that is meant
	}
	if at := slices.Index(args, "-m"); at >= 0 {
		if args[at+1] != "" {
			return fmt.Errorf("it gives the reason %q", args[at+1])
		}
		if said := accepted(args); !strings.Contains(said, "say why, in your own words") {
			return fmt.Errorf("it is accepted without a reason: %q", said)
		}
		args[at+1] = "because of INC-4711"
	}
	if said := accepted(args); said != "" {
		return errors.New(said)
	}
	return p.repeated(args)
}

// inShell returns the words that a shell makes of a line.
func inShell(line string) ([]string, error) {
	raw, err := exec.Command("sh", "-euc", "set -- "+line+"\nprintf '%s\\0' \"$@\"").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("a shell: %w: %s", err, raw)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00"), nil
}

// errConnects ends a verb that has accepted its flags.
var errConnects = errors.New("it connects")

// accepted runs a verb until it connects, and returns what it says about its flags; empty if
// it accepts them.
func accepted(args []string) string {
	var out bytes.Buffer
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	p.Connect = func(context.Context) (program.Cluster, error) { return program.Cluster{}, errConnects }
	file, err := os.CreateTemp("", "kubeconfig")
	if err != nil {
		return err.Error()
	}
	defer os.Remove(file.Name())
	_ = os.WriteFile(file.Name(), []byte(kubeconfigOf(elsewhere, "default")), 0o600)
	name := file.Name()
	p.Kubeconfig.KubeConfig = &name
	if code := run(context.Background(), p, args); code == 0 || strings.Contains(out.String(), errConnects.Error()) {
		return ""
	}
	return out.String()
}

// kubeconfigOf returns a kubeconfig with one context.
func kubeconfigOf(context, namespace string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: %s, context: {cluster: a, namespace: %q}}]
`, context, namespace)
}

// inAnother is what is to be run where another cluster is, by its name.
var inAnother = []string{"keys", "public"}

// repeated reports a command that does not name the cluster and the namespace of the call.
func (p pasted) repeated(args []string) error {
	isHelp := slices.Contains(args, "--help")
	if p.context == "" || isHelp || len(args) >= 2 && slices.Equal(args[:2], inAnother) {
		return nil
	}
	if !slices.Contains(args, "--context="+p.context) {
		return errors.New("it does not name the context")
	}
	isGlobal := slices.Contains(args, "-A") || slices.Contains([]string{"doctor", "keys", "kubectl"}, args[0])
	at := slices.Index(args, "-n")
	switch {
	case isGlobal:
	case at < 0:
		return errors.New("it does not name the namespace")
	case args[at+1] != p.namespace && args[at+1] != "NAMESPACE" && p.namespace != "":
		return fmt.Errorf("it is about namespace %s, and not %s", args[at+1], p.namespace)
	}
	return nil
}

// checkedLines are those that were checked, with their connection.
var checkedLines sync.Map

// checkSuggestions checks each command that a text suggests.
func (p pasted) checkSuggestions(text string, report func(format string, args ...any)) {
	for _, line := range suggestedIn(text) {
		if _, was := checkedLines.LoadOrStore(p.context+" "+p.namespace+" "+line, true); was {
			continue
		}
		if err := p.check(line); err != nil {
			report("the suggested command %s: %v", line, err)
		}
	}
}

func TestSuggestedCommandsThatAreWrongAreFound(t *testing.T) {
	for line, want := range map[string]string{
		"kubectl rollouts promote shop --version 1.1.0 --force -n prod":          "say why",
		"kubectl rollouts promote shop --version 1.1.0 --force -m ... -n prod":   `it gives the reason "..."`,
		"kubectl rollouts promote shop --past-gates -n prod (past gates)":        "a shell",
		"kubectl rollouts keys list; until it is ready":                          "a shell",
		"kubectl rollouts unfold shop":                                           `there is no verb "unfold"`,
		"kubectl rollouts unfreeze shop --colour":                                "unknown flag",
		"kubectl rollouts status shop web":                                       "expected the name of a Rollout",
		"kubectl rollouts explain shop -n prod":                                  "the context",
		"kubectl rollouts explain shop --context=elsewhere":                      "the namespace",
		"kubectl rollouts explain shop --context=elsewhere -n test":              "namespace test",
		"flux trace rollout shop -n prod":                                        "the context",
		"kubectl rollouts explain shop --context=elsewhere -n prod   # a remark": "",
		"kubectl rollouts keys public":                                           "",
	} {
		err := pasted{elsewhere, "prod"}.check(line)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestEveryRequestIsACommand(t *testing.T) {
	p := program.New("kubectl rollouts", genericiooptions.NewTestIOStreamsDiscard())
	withdrawn, _ := request.Withdraw("bypass")
	for _, r := range []request.Request{
		request.Pin("1.0.0"), request.Unpin(), request.Promote("1.0.0"), request.PromoteProven("1.0.0"), request.PromotePastUpstreams("1.0.0", "why"),
		request.PromotePastGates("1.0.0"), request.Retry(), request.Unblock(), request.Adopt(), withdrawn, request.Suspend(noon), request.Resume(),
		request.Approve("qa", "1.0.0"), request.Revoke("qa", "1.0.0"), request.Lift("bad"),
		request.ApproveAs("alice", "security", v1alpha1.VersionInfo{Tag: "1.0.0"}, true), request.OverrideAs("alice", v1alpha1.VersionInfo{Tag: "1.0.0"}),
	} {
		line := p.CommandLine("", append([]string{r.Verb, "shop"}, r.Args...)...)
		if err := (pasted{}).check(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// Each command in a message is made by one function, which repeats the connection. Here are
// the arguments of its calls, as far as the source has them.
func TestEveryCommandInTheSourceIsMadeByOneFunction(t *testing.T) {
	found := 0
	for path, file := range sourcesIn(t, "..") {
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.KeyValueExpr:
				if key, ok := node.Key.(*ast.Ident); ok && slices.Contains([]string{"Example", "Long", "Short", "Use"}, key.Name) {
					return false // the help, which is about no cluster
				}
			case *ast.BasicLit:
				if literal, err := strconv.Unquote(node.Value); err == nil && spellsCommand(literal) {
					t.Errorf("%s: %q has a command: make it with CommandLine", path, literal)
				}
			case *ast.CallExpr:
				if args, ok := commandOf(node); ok {
					found++
					if err := parse(args); err != nil {
						t.Errorf("%s: %q: %v", path, args, err)
					}
				}
			}
			return true
		})
	}
	if found < 8 {
		t.Errorf("only %d commands were found", found)
	}
}

// printedElsewhere is the end of a command for a shell that is connected to another cluster.
const printedElsewhere = " keys public"

// spellsCommand reports whether a text has a verb behind the name of the program.
func spellsCommand(text string) bool {
	for _, match := range regexp.MustCompile(`^ ([a-z-]+) |(?:%s|%\[1\]s|kubectl rollouts) ([a-z-]+)`).FindAllStringSubmatch(text, -1) {
		verb := match[1] + match[2]
		if isVerb(verb) && verb != "options" && !strings.HasSuffix(text, "--help") && text != printedElsewhere {
			return true
		}
	}
	return false
}

func isVerb(name string) bool {
	verb, _, err := NewRoot(program.New("", genericiooptions.NewTestIOStreamsDiscard())).Find([]string{name})
	return err == nil && verb.HasParent()
}

// commandOf returns the arguments of a call of CommandLine. What is not in the source is x.
func commandOf(call *ast.CallExpr) ([]string, bool) {
	name, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil, false
	}
	skip, known := map[string]int{"CommandLine": 1, "CommandHere": 0}[name.Sel.Name]
	if !known {
		return nil, false
	}
	var args []string
	for _, arg := range call.Args[skip:] {
		if inner, ok := arg.(*ast.CallExpr); ok && call.Ellipsis.IsValid() { // append([]string{…}, …)
			if list, ok := inner.Args[0].(*ast.CompositeLit); ok {
				args = append(args, literals(list.Elts)...)
			}
			continue
		}
		args = append(args, literals([]ast.Expr{arg})...)
	}
	return args, len(args) > 1 && !slices.Contains(args[:2], unknownWord) || len(args) > 2
}

const unknownWord = "x"

func literals(all []ast.Expr) []string {
	var words []string
	for _, expression := range all {
		word := unknownWord
		if literal, ok := expression.(*ast.BasicLit); ok {
			word, _ = strconv.Unquote(literal.Value)
			word = cmp.Or(word, "because") // users write the reason
		}
		words = append(words, word)
	}
	return words
}

// sourcesIn returns the code of a directory without its tests.
func sourcesIn(t *testing.T, root string) map[string]*ast.File {
	t.Helper()
	all := map[string]*ast.File{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		all[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// documented finds commands in code of a page: after a name of the program, to the end of
// the code or a comment.
var documented = regexp.MustCompile("(?:kubectl rollouts|flux rollout|flux-rollout) ([a-z][^`\n]*)")

func TestEveryCommandInTheDocumentsExists(t *testing.T) {
	found := 0
	for page, text := range pages(t) {
		for _, match := range documented.FindAllStringSubmatch(code(text), -1) {
			line := alone(match[1])
			found++
			if err := parseToday(words(line)); err != nil {
				t.Errorf("%s: %s: %v", page, line, err)
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d commands were found", found)
	}
}

// What the demo prints is to be typed as it is: with the words of today, and not with the old
// words that the program still understands.
func TestEveryCommandOfTheDemoHasTheWordsOfToday(t *testing.T) {
	found := 0
	for path, file := range sourcesIn(t, "../../../test/demo") {
		ast.Inspect(file, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			for _, match := range documented.FindAllStringSubmatch(text, -1) {
				if found++; strings.HasSuffix(text, " ") {
					match[1] += unknownWord // what follows is not a literal
				}
				if err := parseToday(words(alone(match[1]))); err != nil {
					t.Errorf("%s: %s: %v", path, match[0], err)
				}
			}
			return true
		})
	}
	if found < 12 {
		t.Errorf("only %d commands were found", found)
	}
}

// parseToday parses a command, and takes no old word or other name of a verb.
func parseToday(args []string) error {
	verb, _, err := NewRoot(program.New("", genericiooptions.NewTestIOStreamsDiscard())).Find(args)
	for ; err == nil && verb.HasParent(); verb = verb.Parent() {
		if verb.Hidden || !slices.Contains(args, verb.Name()) {
			return fmt.Errorf("%s is an old word, or another name of %s", args[0], verb.Name())
		}
	}
	return parse(args)
}

func TestExamplesInTheHelpExist(t *testing.T) {
	p := program.New("kubectl rollouts", genericiooptions.NewTestIOStreamsDiscard())
	for _, verb := range NewRoot(p).Commands() {
		for _, verb := range append(verb.Commands(), verb) {
			for _, match := range documented.FindAllStringSubmatch(verb.Example, -1) {
				if err := parse(words(alone(match[1]))); err != nil {
					t.Errorf("%s: %s: %v", verb.Name(), match[1], err)
				}
			}
		}
	}
}

// The output on the page is what the script prints, for the schedules on the page.
func TestCalendarOnThePageIsThatOfTheScript(t *testing.T) {
	script, err := txtar.ParseFile("testdata/script/calendar.txtar")
	if err != nil {
		t.Fatal(err)
	}
	page := pages(t)["../../../docs/guides/schedules.md"]
	for _, file := range script.Files {
		switch content := string(file.Data); {
		case file.Name == "company.yaml" && strings.Count(content, "\n") > 40:
			t.Errorf("%s is longer than 40 lines", file.Name)
		case file.Name != "shop.yaml" && !strings.Contains(page, content):
			t.Errorf("the page does not show %s:\n%s", file.Name, content)
		}
	}
}

// alone returns a command without what follows it: a comment, or where its output goes.
func alone(line string) string {
	for _, end := range []string{" #", "   (", " > ", " | "} {
		line, _, _ = strings.Cut(line, end)
	}
	return strings.TrimSpace(strings.ReplaceAll(line, "-m ''", "-m why")) // a suggestion leaves the reason to the user
}

// parse parses a command as the program does, and does not run it.
func parse(args []string) error {
	root := NewRoot(program.New("kubectl rollouts", genericiooptions.NewTestIOStreamsDiscard()))
	verb, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return nil // a text that names a verb
	}
	verb.RunE = func(*cobra.Command, []string) error { return nil }
	if err := verb.ParseFlags(rest); err != nil {
		return err
	}
	return verb.ValidateArgs(verb.Flags().Args())
}

// pages returns the documents of the project.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, from := range []string{"../../../README.md", "../../../docs"} {
		err := filepath.WalkDir(from, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".md" {
				return err
			}
			content, err := os.ReadFile(path)
			all[path] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// code returns the code of a page, a line for each piece of it in the text.
func code(text string) string {
	var all []string
	for i, block := range strings.Split(text, "```") {
		if i%2 == 1 {
			all = append(all, block)
			continue
		}
		for j, piece := range strings.Split(block, "`") {
			if j%2 == 1 {
				all = append(all, piece)
			}
		}
	}
	return strings.Join(all, "\n")
}

// quoted is a word of a shell: in quotes, or without spaces.
var quoted = regexp.MustCompile(`'([^']*)'|"([^"]*)"|([^\s'"]+)`)

func words(line string) []string {
	var all []string
	for _, match := range quoted.FindAllStringSubmatch(line, -1) {
		all = append(all, match[1]+match[2]+match[3])
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // schedules name zones, and not every machine has them

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Findings is the answer of the verbs lint and doctor.
type Findings struct {
	metav1.TypeMeta `json:",inline"`
	lint.Result     `json:",inline"`
}

type linting struct {
	*program.Program
	out                     *program.Output
	external, vars, disable []string
	verbose                 bool
}

// NewLint returns the verb lint.
func NewLint(p *program.Program) *cobra.Command {
	l := &linting{Program: p}
	cmd := &cobra.Command{
		Use: "lint PATH...", Short: "Find mistakes in manifests, without a cluster",
		Long: `Find mistakes in manifests: fields that the API server would reject, and what no
schema can know: relations between objects, and time. It needs no cluster, no network
and no kubeconfig. The rules are in docs/cli/lint.md.

PATH is a file, a folder, or - for standard input. Exit code 2 if there are findings.`,
		Example: fmt.Sprintf(`  %[1]s lint .
  %[1]s lint clusters/prod --external ImagePolicy/shop/shop -o github`, p.Called),
		RunE: func(_ *cobra.Command, args []string) error { return l.run(args) },
	}
	l.out = program.NewOutput(cmd, "github")
	flags := cmd.Flags()
	flags.StringArrayVar(&l.external, "external", nil, "an object that exists elsewhere: KIND/NAMESPACE/NAME")
	flags.StringArrayVar(&l.vars, "var", nil, "the value of a variable that Flux substitutes: NAME=VALUE")
	flags.StringSliceVar(&l.disable, "disable", nil, "rules that report nothing: R305")
	flags.BoolVarP(&l.verbose, "verbose", "v", false, "say what could not be checked, and why")
	return cmd
}

func (l *linting) run(paths []string) error {
	if len(paths) == 0 {
		return fmt.Errorf("name the files to lint; see: %s lint --help", l.Called)
	}
	options, err := l.options()
	if err != nil {
		return err
	}
	files, notRead, err := l.manifests(paths)
	if err != nil {
		return err
	}
	result := lint.Files(files, options)
	result.NotChecked = append(notRead, result.NotChecked...)
	return l.report(result)
}

func (l *linting) options() (lint.Options, error) {
	options := lint.Options{Now: l.Now(), Vars: map[string]string{}, Disable: l.disable}
	for _, rule := range l.disable {
		if !lint.IsRule(rule) {
			return options, fmt.Errorf("--disable: there is no rule %q", rule)
		}
	}
	for _, text := range l.external {
		external, err := lint.ParseExternal(text)
		if err != nil {
			return options, fmt.Errorf("--external: %w", err)
		}
		options.External = append(options.External, external)
	}
	for _, text := range l.vars {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return options, fmt.Errorf("--var: %q: write NAME=VALUE", text)
		}
		options.Vars[name] = value
	}
	return options, nil
}

// manifests reads files, and the manifests below folders.
func (l *linting) manifests(paths []string) (files []lint.File, notRead []lint.NotChecked, err error) {
	for _, path := range paths {
		names := []string{path}
		if info, err := os.Stat(path); path != "-" && err != nil {
			return nil, nil, err
		} else if path != "-" && info.IsDir() {
			var linked []string
			if names, linked, err = manifestsBelow(path); err != nil {
				return nil, nil, err
			}
			for _, name := range linked {
				notRead = append(notRead, lint.NotChecked{File: filepath.ToSlash(filepath.Clean(name)), Reason: "it is a link to a folder, or to nothing"})
			}
		}
		for _, name := range names {
			content, err := l.ReadFile(name)
			if err != nil {
				return nil, nil, err
			}
			files = append(files, lint.File{Name: filepath.ToSlash(filepath.Clean(name)), Content: content})
		}
	}
	return files, notRead, nil
}

// manifestsBelow returns the YAML and JSON files below a folder, except in folders whose
// name begins with a dot, and the links that it does not follow: those to folders could
// lead back.
func manifestsBelow(folder string) (names, linked []string, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != folder && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.Type()&fs.ModeSymlink != 0 && !isFile(path):
			linked = append(linked, path)
		case !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) && isFile(path):
			names = append(names, path)
		}
		return nil
	})
	return names, linked, err
}

// isFile reports whether a path, or what it is a link to, is a file with content.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// report shows findings, and ends with 2 if there are any.
func (l *linting) report(result lint.Result) error {
	var err error
	switch {
	case l.out.Is("github"):
		for _, finding := range result.Findings {
			l.Program.Out.Line("%s", finding.GitHub())
		}
	case !l.out.IsText():
		err = l.out.Print(l.Program, Findings{program.AnswerKind("Findings"), result})
	default:
		l.text(result)
	}
	return errors.Join(err, l.verdict(result))
}

func (l *linting) verdict(result lint.Result) error {
	if len(result.Findings) > 0 {
		return program.Exit{Code: program.No}
	}
	return nil
}

func (l *linting) text(result lint.Result) {
	p := l.Program.Out
	for _, finding := range result.Findings {
		sign := show.Warns
		if finding.Severity == lint.SeverityError {
			sign = show.Bad
		}
		p.Prose("%s %s", p.Sign(sign), strings.Join(program.NonEmpty(place(finding), finding.Rule, sentence(finding)), "  "))
		l.remedy(finding.Remedy)
	}
	if l.verbose {
		for _, not := range result.NotChecked {
			p.Line("%s", strings.Join(program.NonEmpty("not checked:", not.File, not.Rule, not.Object, not.Reason), "  "))
		}
	}
	l.count(result)
}

// remedy says what to do. A line with a command is never broken.
func (l *linting) remedy(text string) {
	p := l.Program.Out
	switch {
	case text == "":
	case strings.Contains(text, l.Called):
		p.Line("    %s %s", p.Sign(show.Do), text)
	default:
		p.Prose("    %s %s", p.Sign(show.Do), text)
	}
}

// count says how much was read and found, and that not everything could be checked.
func (l *linting) count(result lint.Result) {
	read := verdict.Count(result.Objects, "object")
	if result.Files > 0 {
		read = verdict.Count(result.Files, "file") + ", " + read
	}
	line := fmt.Sprintf("%s: %s, %s", read,
		verdict.Count(result.Count(lint.SeverityError), "error"), verdict.Count(result.Count(lint.SeverityWarning), "warning"))
	if n := len(result.NotChecked); n > 0 && !l.verbose {
		line += fmt.Sprintf("; %s not checked, see -v", verdict.Count(n, "thing"))
	}
	l.Err.Line("%s", line)
}

// sentence names the object, unless the message does.
func sentence(f lint.Finding) string {
	if f.Object == "" || strings.Contains(f.Message, f.Object) {
		return f.Message
	}
	return f.Object + ": " + f.Message
}

func place(f lint.Finding) string {
	if f.File == "" {
		return ""
	}
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

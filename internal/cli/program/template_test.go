// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

var templated = &unstructured.Unstructured{Object: map[string]any{
	"kind": "Explanation", "count": 41.0, "share": 0.5, "held": true, "nothing": nil, "encoded": "c2hvcA==",
	"candidates": []any{
		map[string]any{"tag": "1.5.0", "holds": []any{map[string]any{"reason": "ScheduleClosed"}}},
		map[string]any{"tag": "1.4.2"},
	},
}}

// TestTemplateIsExecutedAsKubectlDoes compares with the printer of kubectl, which is too
// large for the program itself.
func TestTemplateIsExecutedAsKubectlDoes(t *testing.T) {
	for _, text := range []string{
		`{{.kind}} {{.count}} {{.share}} {{.held}} {{.nothing}}`,
		`{{range $i, $c := .candidates}}{{$i}}:{{.tag}}{{"\n"}}{{else}}none{{end}}`,
		`{{range .candidates}}{{.tag}}{{with .holds}} {{len .}} {{(index . 0).reason}}{{end}};{{end}}`,
		`{{if and .held (gt .count 40) (eq (index .candidates 0).tag "1.5.0")}}yes{{end}}`,
		`{{exists . "candidates" 0 "holds"}} {{exists . "candidates" 1 "holds"}} {{exists . "candidates" 7}} {{exists . "other"}}`,
		`{{exists . "nothing"}} {{exists . "kind" "more"}} {{exists . 3}} {{exists .candidates -1}} {{exists .}}`,
		`{{base64decode .encoded}} {{printf "%05d" .count}} {{print .candidates}}`,
		`{{define "c"}}<{{.tag}}>{{end}}{{range .candidates}}{{template "c" .}}{{end}}`,
		`{{.missing}}`,
		`{{.missing.deeper}}`,
		`{{index .candidates 7}}`,
		`{{base64decode .kind}}`,
		`{{.kind.more}}`,
		`{{.kind`,
		`{{unknown .kind}}`,
	} {
		for _, allowMissing := range []bool{true, false} {
			want, wantErr := printed(func() (printers.ResourcePrinter, error) {
				kubectl, err := printers.NewGoTemplatePrinter([]byte(text))
				if err == nil {
					kubectl.AllowMissingKeys(allowMissing)
				}
				return kubectl, err
			})
			got, err := printed(func() (printers.ResourcePrinter, error) { return parseTemplate(text, allowMissing) })
			if (err == nil) != (wantErr == nil) || err == nil && got != want {
				t.Errorf("%s with allowMissing %v: %q, error %v; kubectl prints %q, error %v", text, allowMissing, got, err, want, wantErr)
			}
		}
	}
}

func printed(printer func() (printers.ResourcePrinter, error)) (string, error) {
	p, err := printer()
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = p.PrintObj(templated, &text)
	return text.String(), err
}

// TestFlagsChooseTheFormatAsInKubectl gives the flags of a verb to both printers.
func TestFlagsChooseTheFormatAsInKubectl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "template")
	if err := os.WriteFile(file, []byte("{{.kind}} of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-o", "json"}, {"-o", "yaml"}, {"-o", "jsonpath={.kind}"}, {"-o", "jsonpath-as-json={.kind}"}, {"-o", "jsonpath={.missing}"},
		{"-o", "jsonpath={.missing}", "--allow-missing-template-keys=false"}, {"-o", "jsonpath", "--template", "{.kind}"},
		{"-o", "go-template={{.kind}}"}, {"-o", "template={{.kind}}"}, {"-o", "go-template", "--template", "{{.kind}}"}, {"--template", "{{.kind}}"},
		{"-o", "go-template={{.missing}}", "--allow-missing-template-keys=false"},
		{"-o", "go-template-file=" + file}, {"-o", "templatefile=" + file}, {"-o", "templatefile", "--template", file},
		{"-o", "go-template-file=" + file + "-missing"}, {"-o", "go-template"}, {"-o", "go-template="}, {"-o", "other"}, {"-o", "jsonpath"},
	} {
		kubectl := genericclioptions.NewPrintFlags("")
		want, wantErr := printedBy(t, args, func(cmd *cobra.Command) func() (printers.ResourcePrinter, error) {
			kubectl.AddFlags(cmd)
			return kubectl.ToPrinter
		})
		got, err := printedBy(t, args, func(cmd *cobra.Command) func() (printers.ResourcePrinter, error) { return NewOutput(cmd).printer })
		if (err == nil) != (wantErr == nil) || err == nil && got != want {
			t.Errorf("%q: %q, error %v; kubectl prints %q, error %v", args, got, err, want, wantErr)
		}
	}
}

// printedBy returns what is printed with arguments, by a printer whose flags add adds.
func printedBy(t *testing.T, args []string, add func(*cobra.Command) func() (printers.ResourcePrinter, error)) (string, error) {
	t.Helper()
	cmd := &cobra.Command{}
	printer := add(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return printed(printer)
}

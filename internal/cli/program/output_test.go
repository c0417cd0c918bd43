// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// TestFormatsAreThoseOfKubectl gives the flags of a verb to both printers.
func TestFormatsAreThoseOfKubectl(t *testing.T) {
	for _, args := range [][]string{
		{"-o", "json"}, {"-o", "yaml"}, {"-o", "kyaml"}, {"-o", "jsonpath={.kind}"}, {"-o", "jsonpath-as-json={.kind}"},
		{"-o", "jsonpath={.missing}"}, {"-o", "jsonpath={.missing}", "--allow-missing-template-keys=false"}, {"-o", "jsonpath"}, {"-o", "other"},
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

// An answer has no name.
func TestFormatThatDoesNotExistNamesThoseThatDo(t *testing.T) {
	for _, format := range []string{"name", "go-template={{.kind}}", "wide"} {
		_, err := printedBy(t, []string{"-o", format}, func(cmd *cobra.Command) func() (printers.ResourcePrinter, error) {
			return NewOutput(cmd, "github").printer
		})
		if err == nil || !strings.Contains(err.Error(), "choose github, json, yaml") {
			t.Errorf("-o %s: %v", format, err)
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
	p, err := printer()
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = p.PrintObj(&unstructured.Unstructured{Object: map[string]any{"kind": "Explanation", "count": int64(41)}}, &text)
	return text.String(), err
}

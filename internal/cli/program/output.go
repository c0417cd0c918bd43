// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// answers is the API version of what is computed: it is not stored in any cluster.
const answers = "cli.kuberik.com/v1alpha1"

// Output is the flag -o.
type Output struct {
	flags *genericclioptions.PrintFlags
	// own are the formats that a verb prints by itself, besides text.
	own []string
}

// NewOutput adds -o with the formats of kubectl, and with own ones.
func NewOutput(cmd *cobra.Command, own ...string) *Output {
	o := &Output{genericclioptions.NewPrintFlags(""), own}
	o.flags.AddFlags(cmd)
	if len(own) > 0 {
		cmd.Flag("output").Usage += " Also: " + strings.Join(own, ", ") + "."
	}
	return o
}

// format returns the chosen format. A template alone chooses go-template.
func (o *Output) format() string {
	if *o.flags.OutputFormat == "" && *o.flags.TemplatePrinterFlags.TemplateArgument != "" {
		return "go-template"
	}
	return *o.flags.OutputFormat
}

// Is reports whether a format was chosen.
func (o *Output) Is(format string) bool { return o.format() == format }

// IsText reports whether text for users is wanted.
func (o *Output) IsText() bool { return o.Is("") || slices.Contains(o.own, o.format()) }

// Print prints an object in the chosen format.
func (o *Output) Print(p *Program, object any) error {
	printer, err := o.printer()
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	generic, err := toUnstructured(object)
	if err != nil {
		return err
	}
	return printer.PrintObj(generic, p.Out.Out)
}

// printer does what ToPrinter of the flags does, with another printer for templates.
func (o *Output) printer() (printers.ResourcePrinter, error) {
	format := o.format()
	for _, printerFor := range []func(string) (printers.ResourcePrinter, error){
		o.flags.JSONYamlPrintFlags.ToPrinter, o.flags.NamePrintFlags.ToPrinter,
		o.flags.TemplatePrinterFlags.JSONPathPrintFlags.ToPrinter, o.templatePrinter,
	} {
		if printer, err := printerFor(format); !genericclioptions.IsNoCompatiblePrinterError(err) {
			return printer, err
		}
	}
	return nil, genericclioptions.NoCompatiblePrinterError{OutputFormat: &format, AllowedFormats: o.flags.AllowedFormats()}
}

// toUnstructured goes through JSON, so that all formats show the same fields.
func toUnstructured(object any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	generic := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &generic.Object); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return generic, nil
}

// AnswerKind returns the type of an answer.
func AnswerKind(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: answers, Kind: kind} }

// OrDash returns what a column shows for a text that may be missing.
func OrDash(text *string) string {
	if text == nil || *text == "" {
		return "-"
	}
	return *text
}

// NonEmpty returns the words that are not empty.
func NonEmpty(words ...string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return word == "" })
}

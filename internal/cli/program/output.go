// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
)

// answers is the API version of what is computed: it is not stored in any cluster.
const answers = "cli.kuberik.com/v1alpha1"

// Output is the flag -o.
type Output struct {
	format string
	// own are the formats that a verb prints by itself, besides text.
	own     []string
	objects genericclioptions.JSONYamlPrintFlags
	paths   genericclioptions.JSONPathPrintFlags
	// to gets the objects that a change prints, one after the other; nil before the first.
	to      io.Writer
	printed printers.ResourcePrinter
}

// NewOutput adds -o with the formats of kubectl that need no template of Go, and with own
// ones.
func NewOutput(cmd *cobra.Command, own ...string) *Output {
	o := &Output{own: own, paths: genericclioptions.JSONPathPrintFlags{AllowMissingKeys: new(true)}}
	o.objects.AddFlags(cmd)
	o.paths.AddFlags(cmd)
	cmd.Flag("allow-missing-template-keys").Usage = "ignore a field that is missing, in a jsonpath"
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "the format: "+strings.Join(o.formats(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.formats(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return o
}

func (o *Output) formats() []string {
	return slices.Concat(o.own, o.objects.AllowedFormats(), o.paths.AllowedFormats())
}

// Is reports whether a format was chosen.
func (o *Output) Is(format string) bool { return o.format == format }

// IsText reports whether the verb prints the answer by itself.
func (o *Output) IsText() bool { return o.Is("") || slices.Contains(o.own, o.format) }

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

// nameFormat is for the names of objects.
const nameFormat = "name"

// NewObjects adds -o to a verb that changes objects and can print them.
func NewObjects(cmd *cobra.Command) *Output {
	o := NewOutput(cmd, nameFormat)
	cmd.Flag("output").Usage = "print what is changed, and say the rest on stderr: " + strings.Join(o.formats(), ", ")
	return o
}

// Begin checks the format of the objects. If there is one, what is said goes to stderr.
func (o *Output) Begin(p *Program) error {
	if o.Is("") {
		return nil
	}
	o.printed = &printers.NamePrinter{ShortOutput: true}
	if !o.Is(nameFormat) {
		var err error
		if o.printed, err = o.printer(); err != nil {
			return fmt.Errorf("-o: %w", err)
		}
	}
	o.to, p.Out = p.Out.Out, p.Err
	return nil
}

// PrintObject prints an object as the API server has it, or would have it.
func (o *Output) PrintObject(object client.Object) error {
	if o.to == nil {
		return nil
	}
	generic, err := toUnstructured(object)
	if err != nil {
		return err
	}
	kind, _ := kinds.OfObject(object)
	generic.SetGroupVersionKind(kind.GroupVersionKind)
	return o.printed.PrintObj(generic, o.to)
}

func (o *Output) printer() (printers.ResourcePrinter, error) {
	printer, err := o.objects.ToPrinter(o.format)
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		printer, err = o.paths.ToPrinter(o.format)
	}
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("there is no format %q here; choose %s", o.format, strings.Join(o.formats(), ", "))
	}
	return printer, err
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

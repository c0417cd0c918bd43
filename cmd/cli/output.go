// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
)

// answers is the API version of what is computed: it is not stored in any cluster.
const answers = "cli.kuberik.com/v1alpha1"

// output is the flag -o.
type output struct {
	flags *genericclioptions.PrintFlags
	// own are the formats that a verb prints by itself, besides text.
	own []string
}

// newOutput adds -o with the formats of kubectl, and with own ones.
func newOutput(cmd *cobra.Command, own ...string) *output {
	o := &output{genericclioptions.NewPrintFlags(""), own}
	o.flags.OutputFlagSpecified = func() bool { return cmd.Flag("output").Changed }
	o.flags.AddFlags(cmd)
	if len(own) > 0 {
		cmd.Flag("output").Usage += " Also: " + strings.Join(own, ", ") + "."
	}
	return o
}

// is reports whether a format was chosen.
func (o *output) is(format string) bool { return ptr.Deref(o.flags.OutputFormat, "") == format }

// isText reports whether text for users is wanted.
func (o *output) isText() bool {
	return o.is("") || slices.Contains(o.own, ptr.Deref(o.flags.OutputFormat, ""))
}

// print prints an object in the chosen format.
func (o *output) print(p *program, object any) error {
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	generic, err := toUnstructured(object)
	if err != nil {
		return err
	}
	return printer.PrintObj(generic, p.out.Out) //nolint:wrapcheck // it names the template that is wrong
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

func answerKind(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: answers, Kind: kind} }

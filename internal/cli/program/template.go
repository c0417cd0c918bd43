// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// templatePrinter returns the printer for -o go-template and its other names.
//
// The one of kubectl executes text/template, which can call each method by its name. Then
// the linker keeps all methods of all types: ten megabytes. The data of a template is
// decoded JSON and has no methods, so a copy of that package that calls none is enough.
func (o *Output) templatePrinter(format string) (printers.ResourcePrinter, error) {
	flags := o.flags.TemplatePrinterFlags
	name, text, _ := strings.Cut(format, "=")
	if known := flags.GoTemplatePrintFlags.AllowedFormats(); !slices.Contains(known, name) {
		return nil, genericclioptions.NoCompatiblePrinterError{OutputFormat: &format, AllowedFormats: known}
	}
	if text == "" {
		text = *flags.TemplateArgument
	}
	if text == "" {
		return nil, fmt.Errorf("there is no template: write it as -o %s=TEMPLATE, or with --template", name)
	}
	if strings.HasSuffix(name, "file") {
		content, err := os.ReadFile(text)
		if err != nil {
			return nil, fmt.Errorf("read the template: %w", err)
		}
		text = string(content)
	}
	return parseTemplate(text, *flags.AllowMissingKeys)
}

// templatePrinter executes a template with an object as its data.
type templatePrinter struct{ template *template.Template }

func parseTemplate(text string, allowMissingKeys bool) (printers.ResourcePrinter, error) {
	missing := "missingkey=default"
	if !allowMissingKeys {
		missing = "missingkey=error"
	}
	parsed, err := template.New("output").Option(missing).Funcs(template.FuncMap{"exists": exists, "base64decode": decodeBase64}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse the template: %w", err)
	}
	return templatePrinter{parsed}, nil
}

// PrintObj gives a template integers, as kubectl does: encoding/json decodes each number
// as a float.
func (p templatePrinter) PrintObj(object runtime.Object, to io.Writer) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	data := map[string]any{}
	if err := json.Unmarshal(raw, &data); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return p.template.Execute(to, data)
}

// exists reports whether index, with the same arguments, finds something other than null.
func exists(in any, indices ...any) bool {
	for _, index := range indices {
		in = at(in, index)
	}
	return in != nil
}

// at returns nil if there is nothing.
func at(in, index any) any {
	switch in := in.(type) {
	case map[string]any:
		key, _ := index.(string)
		return in[key]
	case []any:
		if i, is := index.(int); is && i >= 0 && i < len(in) {
			return in[i]
		}
	}
	return nil
}

func decodeBase64(text string) (string, error) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", errors.New("it is no base64: " + text)
	}
	return string(decoded), nil
}

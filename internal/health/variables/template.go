// SPDX-License-Identifier: Apache-2.0

package variables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Template is a text with variables. The zero value is an empty text.
type Template struct {
	parts []part
}

// part is a piece of text, or a variable and how its value is written where it stands.
type part struct {
	text  string
	name  Name
	write func(value string) (string, error)
}

// Uses reports whether the text contains the variable.
func (t Template) Uses(name Name) bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.name == name })
}

// UsesRelease reports whether the text differs from one Rollout or release to another: it
// contains $(version), $(digest), $(revision) or $(rollout). Then Rollouts cannot share the
// HealthCheck.
func (t Template) UsesRelease() bool { return slices.ContainsFunc(ofRelease, t.Uses) }

// Resolve returns the text with the values of its variables. An error says which value is
// missing, or cannot be written where the variable stands: then nothing must be asked.
func (t Template) Resolve(values Values) (string, error) {
	var text strings.Builder
	for _, part := range t.parts {
		if part.name == "" {
			text.WriteString(part.text)
			continue
		}
		value, err := values.of(part.name)
		if err != nil {
			return "", err
		}
		if value, err = part.write(value); err != nil {
			return "", fmt.Errorf("%s %w", written(part.name), err)
		}
		text.WriteString(value)
	}
	return text.String(), nil
}

// Shown returns as much of a resolved text as a status has space for: 1,024 characters. Of a
// longer text it is the beginning and the end, with an ellipsis in between.
func Shown(resolved string) string {
	const longest = 1024
	return truncate.Text(strings.ToValidUTF8(resolved, "?"), longest)
}

// variable parses a variable at the beginning of a text. It returns its name, and how many
// bytes it takes: 0 if the text does not begin with a variable. $$( stands for the text $(.
func variable(text string) (Name, int, error) {
	if !strings.HasPrefix(text, "$(") {
		return "", 0, nil
	}
	name, _, closed := strings.Cut(text[len("$("):], ")")
	if !closed {
		return "", 0, fmt.Errorf("a variable is not closed: write $$( if you mean the text $(")
	}
	if !slices.Contains(names, Name(name)) {
		return "", 0, fmt.Errorf("unknown variable $(%s): use %s, or write $$( if you mean the text $(",
			truncate.Text(strings.ToValidUTF8(name, "?"), 64), known())
	}
	return Name(name), len("$()") + len(name), nil
}

// builder collects the parts of a template.
type builder struct {
	parts []part
	text  strings.Builder
}

func (b *builder) variable(name Name, write func(string) (string, error)) {
	b.flush()
	b.parts = append(b.parts, part{name: name, write: write})
}

func (b *builder) flush() {
	if b.text.Len() > 0 {
		b.parts = append(b.parts, part{text: b.text.String()})
		b.text.Reset()
	}
}

func (b *builder) template() Template {
	b.flush()
	return Template{parts: b.parts}
}

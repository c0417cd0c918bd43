// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

const (
	// MostBytes is how large a file may be. A larger one is a finding.
	MostBytes = 8 << 20
	// mostDocuments is how many documents a file may have.
	mostDocuments = 10_000
)

// reader reads files into a set. What cannot be read becomes a finding.
type reader struct {
	set      *set
	vars     map[string]string
	problems []Finding
}

// chunk is a part of a file between two lines that separate documents.
type chunk struct {
	content []byte
	// before is how many lines of the file are before it.
	before int
}

func (r *reader) file(file File) {
	if len(file.Content) > MostBytes {
		r.problem(file.Name, 0, fmt.Sprintf("the file has %d bytes, and may have %d", len(file.Content), MostBytes), "divide it into several files")
		return
	}
	r.set.texts = append(r.set.texts, file)
	chunks := split(file.Content)
	if len(chunks) > mostDocuments {
		r.problem(file.Name, 0, fmt.Sprintf("the file has %d documents, and may have %d", len(chunks), mostDocuments), "divide it into several files")
		return
	}
	values := &converter{vars: r.vars, nodes: mostNodes, bytes: mostText}
	for _, c := range chunks {
		r.chunk(file.Name, c, values)
	}
}

var separator = regexp.MustCompile(`(?m)^---(?:[ \t\r]|$)`)

// split divides a file before each line that separates documents. In YAML no such line
// can be a part of a document, so a document that is broken leaves the others alone.
func split(content []byte) []chunk {
	var all []chunk
	from, before := 0, 0
	for _, match := range append(separator.FindAllIndex(content, -1), []int{len(content)}) {
		part := content[from:match[0]]
		if len(bytes.TrimSpace(part)) > 0 {
			all = append(all, chunk{content: part, before: before})
		}
		before += bytes.Count(part, []byte("\n"))
		from = match[0]
	}
	return all
}

// chunk reads the document of a part. It reads on after it, because YAML allows nothing
// after the line that ends a document, "...".
func (r *reader) chunk(name string, c chunk, values *converter) {
	decoder := yaml.NewDecoder(bytes.NewReader(c.content))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.broken(name, c, err)
			return
		}
		r.document(name, c.before, &document, values)
	}
}

// broken reports a document that is not YAML, unless something else is to make YAML of it.
func (r *reader) broken(name string, c chunk, err error) {
	if bytes.Contains(c.content, []byte("{{")) {
		r.set.skipped = append(r.set.skipped, NotChecked{File: name, Reason: "it is a template: lint what is made of it"})
		return
	}
	line, reason := place(err, c.before)
	r.problem(name, line, "the file is not YAML: "+reason, "correct it, or do not lint this file")
}

var lineOfError = regexp.MustCompile(`line (\d+): `)

// place returns the line of a file at which YAML is wrong, and the reason without it. A
// line of zero is not known.
func place(err error, before int) (line int, reason string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	match := lineOfError.FindStringSubmatchIndex(text)
	if match == nil {
		return 0, text
	}
	if n, err := strconv.Atoi(text[match[2]:match[3]]); err == nil {
		line = n + before
	}
	return line, text[match[1]:]
}

// document adds the object of a document, or the objects of a list. Other content that is
// YAML, such as the values of a chart, is no mistake.
func (r *reader) document(name string, before int, document *yaml.Node, values *converter) {
	if len(document.Content) == 0 {
		return
	}
	root := document.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.ShortTag() != "!!null":
		r.problem(name, before+root.Line, "the file has a text where an object should be", "correct it, or do not lint this file")
	case root.Kind == yaml.MappingNode:
		r.object(&object{file: name, before: before, node: root}, values)
	}
}

func (r *reader) object(o *object, values *converter) {
	converted, err := values.of(o.node)
	if err != nil {
		r.problem(o.file, o.before+err.line, "the document cannot be read: "+err.reason, "correct it")
		return
	}
	o.content, _ = converted.value.(map[string]any)
	o.unknown = converted.unknown
	if items := fieldOf(o.node, "items"); o.isList() && items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			if item.Kind == yaml.MappingNode {
				r.object(&object{file: o.file, before: o.before, node: item}, values)
			}
		}
		return
	}
	r.set.add(o)
}

func (r *reader) problem(file string, line int, message, remedy string) {
	r.problems = append(r.problems, Finding{
		Rule: unreadable, Severity: SeverityError, File: file, Line: line,
		Message: truncate.Text(message, longestMessage), Remedy: remedy,
	})
}

// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

const (
	// mostNodes is how many values a file may have after its aliases are expanded.
	mostNodes = 500_000
	// mostText is how many bytes the texts of a file may have, with aliases expanded and
	// variables substituted.
	mostText = 4 * MostBytes
	// mostDepth is how deep values may be nested.
	mostDepth = 100
)

// converter turns nodes into values as in JSON. Its limits are for all documents of a
// file.
type converter struct {
	vars map[string]string
	// nodes and bytes are how many values, and bytes of text, may follow.
	nodes, bytes int
}

// converted is a value, with the paths of the parts whose values are not known.
type converted struct {
	value   any
	unknown [][]string
}

// unusable is why a document has no value, and at which line of it.
type unusable struct {
	line   int
	reason string
}

// of returns the value of a node.
func (c *converter) of(node *yaml.Node) (converted, *unusable) {
	w := walk{converter: c}
	value, err := w.value(node, nil)
	return converted{value: value, unknown: w.unknown}, err
}

// walk is one walk through a document.
type walk struct {
	*converter
	unknown [][]string
}

func (w *walk) value(node *yaml.Node, path []string) (any, *unusable) {
	w.nodes--
	switch {
	case w.nodes < 0:
		return nil, &unusable{node.Line, fmt.Sprintf("with its aliases expanded the file has more than %d values", mostNodes)}
	case len(path) > mostDepth:
		return nil, &unusable{node.Line, fmt.Sprintf("values are nested more than %d deep", mostDepth)}
	}
	switch node.Kind {
	case yaml.AliasNode: // one that contains itself ends at the limit of the depth
		return w.value(node.Alias, path)
	case yaml.MappingNode:
		return w.mapping(node, path)
	case yaml.SequenceNode:
		return w.sequence(node, path)
	default:
		return w.scalar(node, path)
	}
}

func (w *walk) sequence(node *yaml.Node, path []string) (any, *unusable) {
	all := make([]any, 0, len(node.Content))
	for i, each := range node.Content {
		value, err := w.value(each, child(path, strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}

func (w *walk) mapping(node *yaml.Node, path []string) (any, *unusable) {
	values := map[string]any{}
	var merged []map[string]any
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		value, err := w.value(node.Content[i+1], child(path, key.Value))
		if err != nil {
			return nil, err
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, mergedValues(value)...)
			continue
		}
		if _, twice := values[key.Value]; twice {
			return nil, &unusable{key.Line, fmt.Sprintf("the field %q is set twice", key.Value)}
		}
		values[key.Value] = value
	}
	for _, each := range merged {
		addMissing(values, each)
	}
	return values, nil
}

// mergedValues returns the mappings that a merge key adds.
func mergedValues(value any) []map[string]any {
	var all []map[string]any
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, each := range list {
		if values, ok := each.(map[string]any); ok {
			all = append(all, values)
		}
	}
	return all
}

func addMissing(to, from map[string]any) {
	for key, value := range from {
		if _, ok := to[key]; !ok {
			to[key] = value
		}
	}
}

// scalar returns the value of a text with its variables substituted. As in Flux, the
// substituted text decides the type: a variable with the value 5 gives a number, even if
// it is in quotes.
func (w *walk) scalar(node *yaml.Node, path []string) (any, *unusable) {
	if w.bytes -= len(node.Value); w.bytes < 0 {
		return nil, &unusable{node.Line, fmt.Sprintf("with aliases and variables replaced the file has more than %d bytes", mostText)}
	}
	text, known := substitute(node.Value, w.vars, w.bytes)
	switch {
	case !known:
		w.unknown = append(w.unknown, path)
		return node.Value, nil
	case text == node.Value:
		return plain(node), nil
	}
	w.bytes -= len(text)
	return plain(&yaml.Node{Kind: yaml.ScalarNode, Value: text}), nil
}

// plain returns the value of a scalar as in JSON, which has no dates.
func plain(node *yaml.Node) any {
	switch node.ShortTag() {
	case "!!str":
		return textOrFlag(node)
	case "!!timestamp":
		return node.Value
	}
	var value any
	if node.Decode(&value) != nil {
		return node.Value
	}
	return jsonValue(value, node.Value)
}

// textOrFlag returns a text. Like an API server, it reads yes and no as true and false,
// although YAML 1.2 does not.
func textOrFlag(node *yaml.Node) any {
	if node.Style == 0 {
		switch node.Value {
		case "yes", "on":
			return true
		case "no", "off":
			return false
		}
	}
	return node.Value
}

// jsonValue returns a scalar as JSON has it, or its text if JSON has no such value.
func jsonValue(value any, text string) any {
	switch v := value.(type) {
	case nil, bool, string, int64:
		return v
	case int:
		return int64(v)
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
	}
	return text
}

// child returns a path with one more step. It does not share memory with others.
func child(path []string, step string) []string {
	return append(path[:len(path):len(path)], step)
}

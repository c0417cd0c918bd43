// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is an object from a file or from a cluster.
type object struct {
	// content is its JSON. If not all variables are known, it has their text.
	content map[string]any
	// unknown are the paths of the fields whose values are not known.
	unknown [][]string
	// file is empty for an object from a cluster. before is how many lines of the file are
	// before its document.
	file   string
	before int
	node   *yaml.Node
	// overlay is the namespace that a kustomization.yaml gives it.
	overlay string
	// selectors are those that were compiled, by their field.
	selectors map[string]compiledSelector
	// problems are what its schema does not allow. They are found before any rule runs.
	problems []schemaProblem
}

func (o *object) apiVersion() string { return o.text("apiVersion") }

func (o *object) kind() string { return o.text("kind") }

func (o *object) name() string { return o.text("metadata", "name") }

// namespace returns the namespace. It is empty for an object without one, which may get
// it later.
func (o *object) namespace() string {
	if o.overlay != "" {
		return o.overlay
	}
	return o.text("metadata", "namespace")
}

func (o *object) groupKind() schema.GroupKind {
	version, _ := schema.ParseGroupVersion(o.apiVersion())
	return schema.GroupKind{Group: version.Group, Kind: o.kind()}
}

// String returns the kind and the name of the object, for messages.
func (o *object) String() string { return strings.TrimSpace(o.kind() + " " + o.key()) }

func (o *object) key() string { return keyOf(o.namespace(), o.name()) }

func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func (o *object) isList() bool {
	return strings.HasSuffix(o.kind(), "List") && o.apiVersion() != ""
}

// value returns the value of a field. It is nil if there is none.
func (o *object) value(path ...string) any {
	var value any = o.content
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// has reports whether a field is set, even if to nothing.
func (o *object) has(path ...string) bool {
	parent, ok := o.value(path[:len(path)-1]...).(map[string]any)
	if !ok {
		return false
	}
	_, ok = parent[path[len(path)-1]]
	return ok
}

// text returns the text in a field. A number is a text as well: a tag may look like one.
func (o *object) text(path ...string) string {
	switch v := o.value(path...).(type) {
	case string:
		return v
	case int64, float64:
		return fmt.Sprint(v)
	}
	return ""
}

func (o *object) isTrue(path ...string) bool {
	set, _ := o.value(path...).(bool)
	return set
}

// fields returns the values of a field that is a map. Others are an empty map.
func (o *object) fields(path ...string) map[string]any {
	values, _ := o.value(path...).(map[string]any)
	return values
}

func (o *object) items(path ...string) []any {
	values, _ := o.value(path...).([]any)
	return values
}

// texts returns the values of a field that is a map of texts, as labels are.
func (o *object) texts(path ...string) map[string]string {
	all := map[string]string{}
	for key := range o.fields(path...) {
		all[key] = o.text(child(path, key)...)
	}
	return all
}

func (o *object) labels() labels.Set { return o.texts("metadata", "labels") }

func (o *object) annotation(key string) string { return o.text("metadata", "annotations", key) }

// isUnknown reports whether the value of a field, or of a part of it, is not known.
func (o *object) isUnknown(path ...string) bool {
	return slices.ContainsFunc(o.unknown, func(unknown []string) bool {
		n := min(len(unknown), len(path))
		return slices.Equal(unknown[:n], path[:n])
	})
}

// compiledSelector is a selector that was compiled, or why it cannot be.
type compiledSelector struct {
	selector labels.Selector
	err      error
}

// compiled returns the selector in a field. It selects nothing if there is none, or if the
// schema has a finding about it.
func (o *object) compiled(path []string) (labels.Selector, error) {
	key := strings.Join(path, ".")
	known, ok := o.selectors[key]
	if !ok {
		spec := &metav1.LabelSelector{}
		if values := o.fields(path...); values == nil || o.decode(values, spec) != nil {
			spec = nil
		}
		known.selector, known.err = metav1.LabelSelectorAsSelector(spec)
		if o.selectors == nil {
			o.selectors = map[string]compiledSelector{}
		}
		o.selectors[key] = known
	}
	return known.selector, known.err
}

func (*object) decode(values map[string]any, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(values, into)
}

// line returns the line of a field, or of the nearest field around it. It is zero if the
// object is from a cluster.
func (o *object) line(path ...string) int {
	if o.node == nil {
		return 0
	}
	node, line := o.node, o.node.Line
	for _, step := range path {
		key, value := descend(node, step)
		if value == nil {
			break
		}
		node, line = value, key.Line
	}
	return o.before + line
}

// nodeAt returns the node of a field, or nil.
func (o *object) nodeAt(path ...string) *yaml.Node {
	node := o.node
	for _, step := range path {
		if node == nil {
			return nil
		}
		_, node = descend(node, step)
	}
	return node
}

// fieldOf returns the value of a field of a mapping, or nil.
func fieldOf(node *yaml.Node, field string) *yaml.Node {
	_, value := descend(node, field)
	return value
}

// descend returns the nodes of the key and of the value of a field or an item. For an item,
// both are the same.
func descend(node *yaml.Node, step string) (key, value *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode: // has no fields
	}
	return nil, nil
}

// eachScalar visits the scalars below a node, without those behind aliases.
func eachScalar(node *yaml.Node, path []string, visit func(node *yaml.Node, path []string)) {
	switch node.Kind {
	case yaml.ScalarNode:
		visit(node, path)
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			eachScalar(node.Content[i+1], child(path, node.Content[i].Value), visit)
		}
	case yaml.SequenceNode:
		for i, each := range node.Content {
			eachScalar(each, child(path, strconv.Itoa(i)), visit)
		}
	case yaml.DocumentNode, yaml.AliasNode: // its scalars are elsewhere
	}
}

// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/pattern"
)

var (
	tagPath    = []string{"spec", "ref", "tag"}
	digestPath = []string{"spec", "ref", "digest"}
)

// written is a field that a Rollout writes.
type written struct {
	at
	rollout string
	digest  bool // it gets the digest of a release, and not the tag
}

// fieldsOfRollouts returns the fields that annotations assign to Rollouts, whether or not
// they are set. It leaves out those that the controller would not write.
func (s *set) fieldsOfRollouts() []written {
	var all []written
	for _, kind := range writtenKinds {
		for _, o := range s.byKind[kind] {
			for _, a := range o.assignments() {
				if a.rollout != "" && a.path != nil && (kind != helmReleaseKind || o.obstacleTo(a.path) == nil) {
					all = append(all, written{at{o, a.path}, a.rollout, a.isDigest()})
				}
			}
		}
	}
	return all
}

func checkOwnership(r *report) {
	ignored := r.ignoreRules()
	for _, field := range r.fieldsOfRollouts() {
		o := field.object
		if !o.has(field.path...) || o.appliedOnce() || isIgnored(field.at, ignored) {
			continue
		}
		r.find(field.at, fmt.Sprintf("%s sets %s, which Rollout %s writes: Flux would take it back at each interval",
			o, fieldName(field.path), field.rollout),
			remedyOfSet(field))
	}
}

// remedyOfSet returns how a field that Git sets stays with its Rollout. A repository
// needs a tag: without one, Flux pulls latest, or a branch.
func remedyOfSet(field written) string {
	ignore := fmt.Sprintf("name %s in spec.ignore of the Kustomization that applies it (Flux 2.9)", pointer(field.path))
	if field.object.isRepository() {
		return "annotate it with kustomize.toolkit.fluxcd.io/ssa: IfNotPresent, or " + ignore
	}
	return "remove the field, or " + ignore
}

// appliedOnce reports whether Flux does not set the fields of the object again.
func (o *object) appliedOnce() bool {
	switch o.annotation("kustomize.toolkit.fluxcd.io/ssa") {
	case "IfNotPresent", "Ignore":
		return true
	}
	return o.annotation("kustomize.toolkit.fluxcd.io/reconcile") == "disabled"
}

// pointer returns a path as a JSON pointer.
func pointer(path []string) string { return "/" + strings.Join(path, "/") }

// ignoreRules returns the rules in spec.ignore of all Kustomizations. Which of them
// applies an object is not known.
func (s *set) ignoreRules() []map[string]any {
	var all []map[string]any
	for _, k := range s.byKind[kustomizationKind] {
		for _, each := range k.items("spec", "ignore") {
			if rule, ok := each.(map[string]any); ok {
				all = append(all, rule)
			}
		}
	}
	return all
}

func isIgnored(field at, rules []map[string]any) bool {
	return slices.ContainsFunc(rules, func(rule map[string]any) bool {
		return ignoresPath(rule, pointer(field.path)) && isAbout(rule, field.object)
	})
}

func ignoresPath(rule map[string]any, pointer string) bool {
	paths, _ := rule["paths"].([]any)
	for _, each := range paths {
		if path, ok := each.(string); ok && (path == pointer || strings.HasPrefix(pointer, path+"/")) {
			return true
		}
	}
	return false
}

// isAbout reports whether a rule is about the object. Selectors of labels and annotations
// count as if they matched.
func isAbout(rule map[string]any, o *object) bool {
	target, ok := rule["target"].(map[string]any)
	if !ok {
		return true
	}
	kind := o.groupKind()
	return matches(target["group"], kind.Group) && matches(target["kind"], kind.Kind) &&
		matches(target["name"], o.name()) && (o.namespace() == "" || matches(target["namespace"], o.namespace()))
}

// matches reports whether an expression matches a whole text. None matches every text.
func matches(expression any, text string) bool {
	written, ok := expression.(string)
	if !ok || written == "" {
		return true
	}
	compiled, err := pattern.Compile("^(?:" + written + ")$")
	return err == nil && compiled.MatchString(text)
}

func checkPrecedence(r *report) {
	r.checkReferences()
	r.checkTargetPaths()
}

// preferred are the fields of spec.ref that Flux prefers to the tag.
var preferred = map[schema.GroupKind][]string{repositoryKind: {"digest", "semver"}, gitRepositoryKind: {"commit", "name", "semver"}}

// checkReferences finds fields of repositories that Flux prefers to the tag.
func (r *report) checkReferences() {
	for _, o := range slices.Concat(r.byKind[repositoryKind], r.byKind[gitRepositoryKind]) {
		if o.annotation(rolloutAnnotation) == "" {
			continue
		}
		for _, name := range preferred[o.groupKind()] {
			where := at{o, []string{"spec", "ref", name}}
			if o.text(where.path...) != "" && (name != "digest" || o.annotation(v1alpha1.DigestRefAnnotation) == "") {
				r.find(where, fmt.Sprintf("spec.ref.%s takes precedence over spec.ref.tag, which Rollout %s writes: its releases have no effect",
					name, o.annotation(rolloutAnnotation)), "remove spec.ref."+name)
			}
		}
	}
}

// marker is what image automation looks for in the comment of a field.
const marker = `{"$imagepolicy":`

func checkMarkers(r *report) {
	variables := map[string]string{} // and the Rollouts that write them
	for _, field := range r.fieldsOfRollouts() {
		if node := field.object.nodeAt(field.path...); node != nil && hasMarker(node) {
			r.findMarker(field.at, field.rollout)
		}
		if field.object.groupKind() == kustomizationKind {
			variables[field.path[len(field.path)-1]] = field.rollout
		}
	}
	for _, o := range r.all {
		eachScalar(o.node, nil, func(node *yaml.Node, path []string) {
			if rollout := writerOf(node, variables); rollout != "" {
				r.findMarker(at{o, path}, rollout)
			}
		})
	}
}

// writerOf returns the Rollout that writes a variable in a text with a marker, if any.
func writerOf(node *yaml.Node, variables map[string]string) string {
	if !hasMarker(node) {
		return ""
	}
	for _, u := range usesIn(node.Value) {
		if rollout := variables[u.name]; rollout != "" {
			return rollout
		}
	}
	return ""
}

func hasMarker(node *yaml.Node) bool {
	return strings.Contains(strings.ReplaceAll(node.LineComment, " ", ""), marker)
}

func (r *report) findMarker(where at, rollout string) {
	r.find(where, fmt.Sprintf("image automation would write a version here, and Rollout %s writes it as well", rollout),
		"remove the comment with $imagepolicy")
}

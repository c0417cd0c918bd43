// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// automation is what writes new versions to Git today.
type automation struct {
	// what is the ImageUpdateAutomation, or the place of its comment in a file; empty if
	// nothing was found.
	what string
	// version is the one that it has written last, as far as it is known.
	version string
}

// automationOf looks for image automation that uses an ImagePolicy: for a comment in the
// files, or for an ImageUpdateAutomation beside the policy.
func (w *world) automationOf(ctx context.Context, policy string) automation {
	if w.files != nil {
		return w.marked(policy)
	}
	list, found := &unstructured.UnstructuredList{}, &imagev1.ImagePolicy{}
	kind, err := apiutil.GVKForObject(found, w.scheme) // in the version that is served
	list.SetGroupVersionKind(kind.GroupVersion().WithKind("ImageUpdateAutomationList"))
	if err != nil || w.List(ctx, list, client.InNamespace(w.namespace), client.Limit(1)) != nil || len(list.Items) == 0 ||
		w.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: policy}, found) != nil {
		return automation{}
	}
	a := automation{what: "for ImageUpdateAutomation " + list.Items[0].GetName()}
	if found.Status.LatestRef != nil {
		a.version = found.Status.LatestRef.Tag
	}
	return a
}

// versionBefore finds the version in a line with a comment of image automation.
var versionBefore = regexp.MustCompile(`([A-Za-z0-9_][A-Za-z0-9_.+-]*)["']?\s*#`)

// marked looks for the comment in the files.
func (w *world) marked(policy string) automation {
	marker := regexp.MustCompile(`#.*"\$imagepolicy":\s*"[^":]*:` + regexp.QuoteMeta(policy) + `[":]`)
	for _, file := range slices.Sorted(maps.Keys(w.files)) {
		number := 0
		for line := range strings.Lines(string(w.files[file])) {
			number++
			if !marker.MatchString(line) {
				continue
			}
			a := automation{what: fmt.Sprintf("in %s:%d", file, number)}
			if found := versionBefore.FindStringSubmatch(line); found != nil {
				a.version = found[1]
			}
			return a
		}
	}
	return automation{}
}

// handover returns the steps of docs/guides/image-automation.md after the first one, which
// this verb does itself: a Rollout that pins the running version, and writes nothing.
func (t *target) handover(a automation, rollout, version, unpin, status string) []string {
	steps := []string{fmt.Sprintf("Git sets the version of %s today. The Rollout pins %s and writes nothing until you hand it over (docs/guides/image-automation.md):",
		t, version)}
	add := func(format string, args ...any) {
		steps = append(steps, fmt.Sprintf("%d. ", len(steps))+fmt.Sprintf(format, args...))
	}
	if a.what != "" {
		add("in Git, delete the comment with $imagepolicy %s, and keep the version", a.what)
	}
	add("take the field over, with the same value:\n%s", t.takeOver(version))
	add("in Git, in one commit: %s; add the %s to %s", t.replaced(version), inWords(t.annotations(rollout)), t)
	if t.isRepository() {
		add("in Git, in the next commit, for new clusters: set %s to %s, and add the annotation %s: %s", t.fieldName(), placeholder, applyOnce, applyOnceValue)
	}
	add("wait until each target is applied: %s", status)
	add("let releases go: %s", unpin)
	return steps
}

// inWords returns annotations for a sentence.
func inWords(annotations map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		all = append(all, key+": "+annotations[key])
	}
	return "annotation" + strings.Repeat("s", len(all)-1) + " " + strings.Join(all, " and ")
}

// replaced says what the commit does with the version.
func (t *target) replaced(version string) string {
	switch {
	case t.current() == "":
		return fmt.Sprintf("write ${%s:=%s} in place of the version", t.field[len(t.field)-1], version)
	case t.GetKind() == sourcev1.OCIRepositoryKind:
		return "remove spec.ref"
	}
	return "remove " + t.fieldName()
}

// takeOver returns the command that makes the controller an owner of the field.
func (t *target) takeOver(version string) string {
	m := t.only(map[string]any{}, nil)
	_ = unstructured.SetNestedField(m.Object, version, t.field...) // into an empty map
	text, _ := yamlOf([]manifest{m})
	return fmt.Sprintf("kubectl apply --server-side --field-manager=%s -f - <<'END'\n%sEND", write.FieldManager, strings.TrimPrefix(string(text), "---\n"))
}

// running returns the version that runs, as far as it is known.
func (t *target) running(a automation) string { return cmp.Or(t.current(), a.version, "VERSION") }

// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

const (
	// placeholder is a tag that does not exist, so that Flux pulls nothing before the first
	// promotion.
	placeholder = "none-yet"
	// applyOnce is the annotation with which Flux leaves an object alone that exists.
	applyOnce      = kustomizeGroup + "/ssa"
	applyOnceValue = "IfNotPresent"

	kustomizeGroup = "kustomize.toolkit.fluxcd.io"
)

// target is a field of a Flux object, which the Rollout writes.
type target struct {
	manifest
	// annotation gives the field to a Rollout.
	annotation string
	field      []string
	// digest is true if the Rollout writes the digest of its release as well.
	digest bool
	// object is as it was read; nil if there is none.
	object client.Object
}

// target returns what the flags choose.
func (r *creatingRollout) target(ctx context.Context, w *world) (*target, error) {
	t := &target{digest: r.digest}
	var object client.Object
	var name string
	switch {
	case r.repository != "":
		name, object, t.annotation, t.field = r.repository, &sourcev1.OCIRepository{}, v1alpha1.RolloutAnnotation, []string{"spec", "ref", "tag"}
	case r.gitRepository != "":
		name, object, t.annotation, t.field = r.gitRepository, &sourcev1.GitRepository{}, v1alpha1.RolloutAnnotation, []string{"spec", "ref", "tag"}
	case r.kustomization != "":
		name, object = r.kustomization, &kustomizev1.Kustomization{}
		t.annotation = v1alpha1.SubstituteAnnotationPrefix + r.variable + v1alpha1.SubstituteAnnotationSuffix
		t.field = []string{"spec", "postBuild", "substitute", r.variable}
	default:
		name, object = r.release, &helmv2.HelmRelease{}
		t.annotation = v1alpha1.ValuesAnnotationPrefix + r.value + v1alpha1.ValuesAnnotationSuffix
		t.field = append([]string{"spec", "values"}, strings.Split(r.value, ".")...)
	}
	object.SetNamespace(w.namespace)
	object.SetName(name)
	switch err := w.Get(ctx, client.ObjectKeyFromObject(object), object); {
	case apierrors.IsNotFound(err) && r.repository != "" && r.image != "":
		return t, nil // it is created
	case apierrors.IsNotFound(err):
		return nil, w.noSuch(ctx, object)
	case err != nil:
		return nil, fmt.Errorf("read the target %s: %w", name, err)
	}
	t.object = object
	var err error
	t.manifest, err = w.manifestOf(object)
	return t, err
}

// noSuch says that an object does not exist, and which ones do.
func (w *world) noSuch(ctx context.Context, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, w.scheme)
	if err != nil {
		return fmt.Errorf("find the kind of a %T: %w", object, err)
	}
	text := fmt.Sprintf("there is no %s %s in namespace %s", kind.Kind, object.GetName(), w.namespace)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if w.List(ctx, list) != nil && w.List(ctx, list, client.InNamespace(w.namespace)) != nil {
		return errors.New(text)
	}
	var here []string
	for _, item := range list.Items {
		switch {
		case item.GetNamespace() == w.namespace:
			here = append(here, item.GetName())
		case item.GetName() == object.GetName():
			return fmt.Errorf("%s, but in namespace %s; a Rollout is in the namespace of what it names and writes: create it there, with -n %s",
				text, item.GetNamespace(), item.GetNamespace())
		}
	}
	if len(here) > 0 {
		text += "; there is " + truncate.List(here)
	}
	return errors.New(text)
}

// current returns the version that the field has; empty if it has none.
func (t *target) current() string {
	if t.object == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(t.Object, t.field...)
	if value == placeholder {
		return ""
	}
	return value
}

// isSetByGit reports whether Git sets the field, or will do so once the manifest is exported:
// another one than the controller has written its value.
func (t *target) isSetByGit(w *world, export bool) bool {
	switch {
	case t.current() == "":
		return false
	case export && w.files == nil && program.ParentOf(t.object) == "" && t.isRepository():
		return false // its manifest tells Flux to leave alone what exists
	case export:
		return program.ManagerOf(t.object, t.field, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == write.FieldManager }) == ""
	}
	return program.ManagerOf(t.object, t.field, func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation == metav1.ManagedFieldsOperationApply && e.Manager != write.FieldManager && e.Manager != program.FieldManager
	}) != ""
}

// isSetBelow reports whether image automation writes the version into what a Kustomization from
// Git applies, and not into the field.
func (t *target) isSetBelow(w *world, a automation) bool {
	return a.what != "" && t.GetKind() == kustomizev1.KustomizationKind && t.current() == "" && (w.files != nil || program.ParentOf(t.object) != "")
}

// isRepository reports whether Flux pulls something even if Git leaves out the field: latest, or a
// branch.
func (t *target) isRepository() bool {
	return t.GetKind() == sourcev1.OCIRepositoryKind || t.GetKind() == sourcev1.GitRepositoryKind
}

// writer returns the Rollout that writes the field today; empty if there is none.
func (t *target) writer() string { return t.object.GetAnnotations()[t.annotation] }

// fieldName returns the field as messages have it.
func (t *target) fieldName() string { return strings.Join(t.field, ".") }

// annotations returns those that give the field to a Rollout.
func (t *target) annotations(rollout string) map[string]string {
	all := map[string]string{t.annotation: rollout}
	if t.digest {
		all[v1alpha1.DigestRefAnnotation] = rollout
	}
	return all
}

// annotated returns the object with these annotations.
func (t *target) annotated(rollout string) client.Object {
	object := t.object.DeepCopyObject().(client.Object)
	object.SetAnnotations(merged(object.GetAnnotations(), t.annotations(rollout)))
	return object
}

func merged(all, more map[string]string) map[string]string {
	both := map[string]string{}
	maps.Copy(both, all)
	maps.Copy(both, more)
	return both
}

// only returns the name of the object, with some fields and annotations.
func (t *target) only(content map[string]any, annotations map[string]string) manifest {
	m := manifest{&unstructured.Unstructured{Object: content}}
	m.SetGroupVersionKind(t.GroupVersionKind())
	m.SetNamespace(t.GetNamespace())
	m.SetName(t.GetName())
	m.SetAnnotations(annotations)
	return m
}

// forGit returns the manifest that Git may have: with the annotation, and without the field.
// A repository needs a tag.
func (t *target) forGit(rollout string) manifest {
	m := manifest{t.DeepCopy()}
	labels, annotations := m.GetLabels(), merged(m.GetAnnotations(), t.annotations(rollout))
	maps.DeleteFunc(labels, func(key, _ string) bool { return isFluxes(key) })
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key != applyOnce && isFluxes(key) || strings.HasPrefix(key, v1alpha1.PromotionAnnotationPrefix) || strings.HasPrefix(key, "kubectl.kubernetes.io/")
	})
	unstructured.RemoveNestedField(m.Object, t.field...)
	if t.isRepository() {
		annotations[applyOnce] = applyOnceValue
		if annotations[v1alpha1.DigestRefAnnotation] != "" {
			unstructured.RemoveNestedField(m.Object, "spec", "ref", "digest")
		}
		_ = unstructured.SetNestedField(m.Object, placeholder, t.field...) // its spec is a map
	}
	m.SetLabels(labels)
	m.SetAnnotations(annotations)
	return m
}

// isFluxes reports whether Flux sets a label or an annotation.
func isFluxes(key string) bool {
	group, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix(group, ".fluxcd.io")
}

// gitLeavesOut says what Git must not set.
func (t *target) gitLeavesOut(kind, name string) string {
	const page = "; see docs/guides/git-ownership.md"
	switch kind {
	case sourcev1.OCIRepositoryKind, sourcev1.GitRepositoryKind:
		return fmt.Sprintf("in Git, %s of %s %s stays %s, with the annotation %s: %s%s",
			t.fieldName(), kind, name, placeholder, applyOnce, applyOnceValue, page)
	case kustomizev1.KustomizationKind:
		variable := t.field[len(t.field)-1]
		return fmt.Sprintf("Git must leave out %s of %s %s; write ${%s:=%s} where its manifests have the version, and give it another variable, so that Flux substitutes%s",
			t.fieldName(), kind, name, variable, cmp.Or(t.current(), "1.0.0"), page)
	}
	return fmt.Sprintf("Git must leave out %s of %s %s%s", t.fieldName(), kind, name, page)
}

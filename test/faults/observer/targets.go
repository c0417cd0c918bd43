// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
)

// manager is the field manager of the controller.
const manager = "rollout-controller"

// target is an OCIRepository or a Kustomization.
type target struct {
	object client.Object
	// written contains, for each field, the id of the promotion for which the controller
	// last wrote it.
	written map[string]int64
}

// field is a field that a Rollout writes.
type field struct {
	// path in the form of managedFields.
	path []string
	// rollout that writes it.
	rollout client.ObjectKey
	value   string
}

func (f field) String() string { return strings.ReplaceAll(strings.Join(f.path, "."), "f:", "") }

// fields returns the fields that Rollouts write, by the annotations of the target.
func (t *target) fields() []field {
	namespace := t.object.GetNamespace()
	switch o := t.object.(type) {
	case *sourcev1.OCIRepository:
		name := o.Annotations[v1alpha1.RolloutAnnotation]
		if name == "" {
			return nil
		}
		f := field{path: []string{"f:spec", "f:ref", "f:tag"}, rollout: client.ObjectKey{Namespace: namespace, Name: name}}
		if o.Spec.Reference != nil {
			f.value = o.Spec.Reference.Tag
		}
		return []field{f}
	case *kustomizev1.Kustomization:
		return substitutes(o)
	}
	return nil
}

func substitutes(k *kustomizev1.Kustomization) []field {
	var all []field
	for _, annotation := range slices.Sorted(maps.Keys(k.Annotations)) {
		variable, ours := strings.CutPrefix(annotation, v1alpha1.SubstituteAnnotationPrefix)
		variable, complete := strings.CutSuffix(variable, v1alpha1.SubstituteAnnotationSuffix)
		if !ours || !complete {
			continue
		}
		f := field{
			path:    []string{"f:spec", "f:postBuild", "f:substitute", "f:" + variable},
			rollout: client.ObjectKey{Namespace: k.Namespace, Name: k.Annotations[annotation]},
		}
		if k.Spec.PostBuild != nil {
			f.value = k.Spec.PostBuild.Substitute[variable]
		}
		all = append(all, f)
	}
	return all
}

func (t *target) drivenBy(rollout client.ObjectKey) bool {
	return slices.ContainsFunc(t.fields(), func(f field) bool { return f.rollout == rollout })
}

func (s *Findings) seeTarget(object client.Object, sight record.Sight) {
	was := s.targets[object.GetUID()]
	is := &target{object: object, written: map[string]int64{}}
	if was != nil {
		is.written = was.written
	}
	s.targets[object.GetUID()] = is
	if sight.Gone {
		delete(s.targets, object.GetUID())
	} else if was != nil && !sight.Gap {
		s.checkWrite(was, is)
	}
	for _, r := range s.rollouts {
		if r.object.Namespace == object.GetNamespace() {
			s.weigh(r)
		}
	}
}

// checkWrite checks a change if the controller made it. The controller must write a
// version that the history names, not an older one than it wrote before, and no other
// field.
func (s *Findings) checkWrite(was, is *target) {
	before := was.fields()
	wrote := false
	for _, f := range is.fields() {
		changed := slices.ContainsFunc(before, func(b field) bool { return b.String() == f.String() && b.value != f.value })
		if changed && owns(is.object, f.path) {
			wrote = true
			s.checkVersion(is, f)
		}
	}
	if wrote && !equality.Semantic.DeepEqual(withoutFields(was.object), withoutFields(is.object)) {
		s.complain("%s: the controller wrote more than its own fields", named(is.object))
	}
}

func (s *Findings) checkVersion(t *target, f field) {
	r := s.rolloutOf(f.rollout)
	if r == nil {
		s.complain("%s: %s became %s, for a Rollout that is not there", named(t.object), f, f.value)
		return
	}
	promotion, known := newest(r, f.value)
	if !known {
		s.complain("%s: %s became %s, which the history does not name", named(t.object), f, f.value)
		return
	}
	if before := t.written[f.String()]; promotion < before {
		s.complain("%s: %s went back to %s of promotion %d, after %d", named(t.object), f, f.value, promotion, before)
	}
	if promotion != idOf(r.object.Current()) {
		s.Late++
	}
	t.written[f.String()] = promotion
	key := named(t.object)
	if s.Writes[key] == nil {
		s.Writes[key] = map[int64]int{}
	}
	s.Writes[key][promotion]++
}

// newest returns the newest promotion of a version.
func newest(r *rollout, tag string) (id int64, known bool) {
	for candidate, e := range r.ever {
		if e.Version.Tag == tag && (!known || candidate > id) {
			id, known = candidate, true
		}
	}
	return id, known
}

// owns reports whether the controller was the last to write a field.
func owns(object client.Object, path []string) bool {
	for _, managed := range object.GetManagedFields() {
		if managed.Manager != manager || managed.Subresource != "" || managed.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(managed.FieldsV1.GetRawBytes(), &fields) == nil && has(fields, path) {
			return true
		}
	}
	return false
}

func has(fields map[string]any, path []string) bool {
	inner, ok := fields[path[0]].(map[string]any)
	return ok && (len(path) == 1 || has(inner, path[1:]))
}

// withoutFields returns the spec of a target without the fields that Rollouts write.
func withoutFields(object client.Object) any {
	switch o := object.DeepCopyObject().(type) {
	case *sourcev1.OCIRepository:
		if o.Spec.Reference == nil {
			o.Spec.Reference = &sourcev1.OCIRepositoryRef{}
		}
		o.Spec.Reference.Tag = ""
		return o.Spec
	case *kustomizev1.Kustomization:
		if o.Spec.PostBuild == nil {
			o.Spec.PostBuild = &kustomizev1.PostBuild{}
		}
		for _, f := range substitutes(o) {
			delete(o.Spec.PostBuild.Substitute, strings.TrimPrefix(f.path[3], "f:"))
		}
		return o.Spec
	}
	return nil
}

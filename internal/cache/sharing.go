// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// words are the values that thousands of cached objects have in common: reasons and many
// messages of conditions, the conditions of ready objects, keys of annotations, and the
// sets of fields that the controller owns. Decoding allocates each of them again. An
// object in a cache is never modified, so its parts can be shared.
type words struct {
	mu     sync.Mutex
	known  map[string]string
	fields map[string]*metav1.FieldsV1
	well   map[metav1.Condition][]metav1.Condition
	packed map[string]string // memory that packers reuse
	rows   rows
}

// Other clients may write any value. Therefore the number of known words, sets and
// conditions is limited, and so is their length in bytes. A full map is emptied.
const (
	mostWords   = 4096
	longestWord = 128
	mostSets    = 256
	longestSet  = 1024
	mostWell    = 256
)

// remember adds a value to the known ones. It first drops all of them if the maximum is
// reached.
func remember[K comparable, V any](known *map[K]V, most int, key K, value V) {
	if *known == nil || len(*known) >= most {
		*known = map[K]V{}
	}
	(*known)[key] = value
}

// one returns the known string that equals s.
func one[S ~string](w *words, s S) S {
	if s == "" || len(s) > longestWord {
		return s
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.known[string(s)]; ok {
		return S(known)
	}
	word := strings.Clone(string(s)) // without the string that it is a part of
	remember(&w.known, mostWords, word, word)
	return S(word)
}

// share makes the object share the values that it has in common with others, and its
// parts with each other.
func (w *words) share(o client.Object) {
	switch o := o.(type) {
	case *sourcev1.OCIRepository:
		w.shareFlux(&o.Status.Conditions)
	case *sourcev1.GitRepository:
		w.shareFlux(&o.Status.Conditions)
	case *kustomizev1.Kustomization:
		w.shareFlux(&o.Status.Conditions)
		w.shareSource(&o.Spec.SourceRef)
	case *helmv2.HelmRelease:
		w.shareFlux(&o.Status.Conditions)
		w.shareChart(o.Spec.ChartRef)
	case *imagev1.ImagePolicy:
		w.shareFlux(&o.Status.Conditions)
	case *imagev1.ImageRepository:
		w.shareFlux(&o.Status.Conditions)
	case *v1alpha1.Rollout:
		w.shareRollout(o)
	case *environmentsv1.Environment:
		w.shareEnvironment(o)
	}
	w.shareMetadata(o)
}

// shareMetadata makes the object share its namespace, the keys of its labels and
// annotations, and its managedFields.
func (w *words) shareMetadata(o client.Object) {
	o.SetNamespace(one(w, o.GetNamespace()))
	w.shareKeys(o.GetLabels())
	w.shareKeys(o.GetAnnotations())
	fields := o.GetManagedFields()
	for i := range fields {
		f := &fields[i]
		f.Manager, f.Operation, f.Subresource = one(w, f.Manager), one(w, f.Operation), one(w, f.Subresource)
		f.APIVersion, f.FieldsType = one(w, f.APIVersion), one(w, f.FieldsType)
		f.FieldsV1, f.Time = w.oneSet(f.FieldsV1), nil
	}
}

// oneSet returns the known set of fields that equals the given one.
func (w *words) oneSet(fields *metav1.FieldsV1) *metav1.FieldsV1 {
	if fields == nil {
		return nil
	}
	text := fields.GetRawString()
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.fields[text]; ok {
		return known
	}
	if len(text) <= longestSet {
		remember(&w.fields, mostSets, text, fields)
	}
	return fields
}

// shareKeys assigns every value again, because the assignment also replaces the stored
// key. A key with the name of a Rollout is in its targets alone, and would take the place
// of one that thousands have.
func (w *words) shareKeys(m map[string]string) {
	for key, value := range m {
		if !targets.IsPromotion(key) {
			m[one(w, key)] = value
		}
	}
}

// shareFlux makes an object of Flux share its conditions with all others that are only
// Ready.
func (w *words) shareFlux(conditions *[]metav1.Condition) {
	w.shareConditions(*conditions)
	if len(*conditions) != 1 || !isWell((*conditions)[0]) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ready := (*conditions)[0]
	if _, ok := w.well[ready]; !ok {
		remember(&w.well, mostWell, ready, *conditions)
	}
	*conditions = w.well[ready]
}

func (w *words) shareConditions(conditions []metav1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Status, c.Reason, c.Message = one(w, c.Type), one(w, c.Status), one(w, c.Reason), one(w, c.Message)
	}
}

func (w *words) shareSource(ref *kustomizev1.CrossNamespaceSourceReference) {
	ref.APIVersion, ref.Kind, ref.Namespace = one(w, ref.APIVersion), one(w, ref.Kind), one(w, ref.Namespace)
}

func (w *words) shareChart(ref *helmv2.CrossNamespaceSourceReference) {
	if ref != nil {
		ref.APIVersion, ref.Kind, ref.Namespace = one(w, ref.APIVersion), one(w, ref.Kind), one(w, ref.Namespace)
	}
}

// shareRollout makes the releases of the history share with the same ones in the known
// releases, from which they were taken.
func (w *words) shareRollout(r *v1alpha1.Rollout) {
	s := &r.Status
	w.shareConditions(s.Conditions)
	known := releases{}
	for i := range s.AvailableReleases {
		known.share(&s.AvailableReleases[i])
	}
	for i := range s.History {
		known.share(&s.History[i].Version)
		w.shareEntry(&s.History[i])
	}
	for i := range s.ReleaseCandidates {
		known.share(&s.ReleaseCandidates[i].VersionInfo)
	}
	for i := range s.GatedReleaseCandidates {
		known.share(&s.GatedReleaseCandidates[i])
	}
	for i := range s.Targets {
		t := &s.Targets[i]
		t.Kind, t.Namespace, t.State = one(w, t.Kind), one(w, t.Namespace), one(w, t.State)
	}
	shareText(w, s.ArtifactType)
}

func (w *words) shareEntry(e *v1alpha1.DeploymentHistoryEntry) {
	shareText(w, e.BakeStatus)
	shareText(w, e.BakeStatusMessage)
	if by := e.TriggeredBy; by != nil {
		by.Kind, by.Name = one(w, by.Kind), one(w, by.Name)
	}
}

// shareEnvironment makes an Environment share the names that many have in common, and its
// releases share a time that is in it twice.
func (w *words) shareEnvironment(e *environmentsv1.Environment) {
	e.Spec.Environment, e.Spec.Backend.Type = one(w, e.Spec.Environment), one(w, e.Spec.Backend.Type)
	for i := range e.Spec.Upstreams {
		u := &e.Spec.Upstreams[i]
		u.Environment, u.Type = one(w, u.Environment), one(w, u.Type)
	}
	s := &e.Status
	w.shareConditions(s.Conditions)
	for i := range s.Releases {
		r := &s.Releases[i]
		r.State, r.Evidence = one(w, r.State), one(w, r.Evidence)
		if r.HealthySince.Equal(r.Since) {
			r.HealthySince = r.Since
		}
	}
	if len(s.Releases) > 0 && s.LastStatusChangeTime.Equal(s.Releases[0].Since) {
		s.LastStatusChangeTime = s.Releases[0].Since
	}
}

func shareText[S ~string](w *words, text *S) {
	if text != nil {
		*text = one(w, *text)
	}
}

// releases are the releases of one Rollout, by tag.
type releases map[string]*v1alpha1.VersionInfo

func (r releases) share(v *v1alpha1.VersionInfo) {
	if first, ok := r[v.Tag]; !ok {
		r[v.Tag] = v
	} else if equality.Semantic.DeepEqual(v, first) {
		*v = *first
	}
}

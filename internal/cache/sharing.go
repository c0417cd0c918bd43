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

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// words are what thousands of cached objects have in common: the reasons and many
// messages of conditions, that all is well, keys of annotations, and the sets of
// fields that the controller owns. Decoding makes each of them anew. What goes into
// a cache is no longer changed, so that it can be shared.
type words struct {
	mu     sync.Mutex
	known  map[string]string
	fields map[string]*metav1.FieldsV1
	well   map[metav1.Condition][]metav1.Condition
	packed map[string]string // what a packer works with
	rows   rows
}

// What others write can be anything: so many words, sets and conditions are known
// at most, and none longer than so many bytes. Then they are learned anew.
const (
	mostWords   = 4096
	longestWord = 128
	mostSets    = 256
	longestSet  = 1024
	mostWell    = 256
)

// learn adds to what is known, of which there are to be so many at most.
func learn[K comparable, V any](known *map[K]V, most int, key K, value V) {
	if *known == nil || len(*known) >= most {
		*known = map[K]V{}
	}
	(*known)[key] = value
}

// one returns the string that equals s and is known already.
func one[S ~string](w *words, s S) S {
	if s == "" || len(s) > longestWord {
		return s
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.known[string(s)]; ok {
		return S(known)
	}
	word := strings.Clone(string(s)) // without what it is a part of
	learn(&w.known, mostWords, word, word)
	return S(word)
}

// share has the object share what it has in common with others, and its parts with
// each other.
func (w *words) share(o client.Object) {
	switch o := o.(type) {
	case *sourcev1.OCIRepository:
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
	}
	w.shareMetadata(o)
}

// shareMetadata has the object share what says of what kind, where and whose it is.
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

// oneSet returns the set of fields that equals the given one and is known already.
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
		learn(&w.fields, mostSets, text, fields)
	}
	return fields
}

// shareKeys assigns every value again, for with it a map stores the key that is
// given, too.
func (w *words) shareKeys(m map[string]string) {
	for key, value := range m {
		m[one(w, key)] = value
	}
}

// shareFlux has an object of Flux's share its conditions with all others for which
// they say nothing but that it is Ready.
func (w *words) shareFlux(conditions *[]metav1.Condition) {
	w.shareConditions(*conditions)
	if len(*conditions) != 1 || !isWell((*conditions)[0]) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ready := (*conditions)[0]
	if _, ok := w.well[ready]; !ok {
		learn(&w.well, mostWell, ready, *conditions)
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

// shareRollout has the releases of the history share with the same ones in the
// ledger, which is where they were taken from.
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

func shareText[S ~string](w *words, text *S) {
	if text != nil {
		*text = one(w, *text)
	}
}

// releases are those of one Rollout, by tag.
type releases map[string]*v1alpha1.VersionInfo

func (r releases) share(v *v1alpha1.VersionInfo) {
	if first, ok := r[v.Tag]; !ok {
		r[v.Tag] = v
	} else if equality.Semantic.DeepEqual(v, first) {
		*v = *first
	}
}

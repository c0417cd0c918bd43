// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// words are what thousands of cached objects have in common: the reasons and many
// messages of conditions, keys of annotations, and the sets of fields that the
// controller owns. Decoding makes each of them anew. What goes into a cache is no
// longer changed, so that it can be shared.
type words struct {
	mu     sync.Mutex
	known  map[string]string
	fields map[string]*metav1.FieldsV1
}

// What others write can be anything, and is kept for ever: so many words and sets
// at most, and none longer than so many bytes.
const (
	mostWords   = 4096
	longestWord = 128
	mostSets    = 256
	longestSet  = 1024
)

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
	if len(w.known) < mostWords {
		if w.known == nil {
			w.known = map[string]string{}
		}
		w.known[string(s)] = string(s)
	}
	return s
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
	if len(w.fields) < mostSets && len(text) <= longestSet {
		if w.fields == nil {
			w.fields = map[string]*metav1.FieldsV1{}
		}
		w.fields[text] = fields
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

func (w *words) shareConditions(conditions []metav1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Status, c.Reason, c.Message = one(w, c.Type), one(w, c.Status), one(w, c.Reason), one(w, c.Message)
	}
}

func (w *words) shareKustomization(k *kustomizev1.Kustomization) {
	k.Spec.SourceRef.APIVersion, k.Spec.SourceRef.Kind = one(w, k.Spec.SourceRef.APIVersion), one(w, k.Spec.SourceRef.Kind)
	k.Spec.SourceRef.Namespace = one(w, k.Spec.SourceRef.Namespace)
	if k.Status.LastAttemptedRevision == k.Status.LastAppliedRevision {
		k.Status.LastAttemptedRevision = k.Status.LastAppliedRevision
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
		if release := known[t.Version]; release != nil {
			t.Version = release.Tag
		}
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
		if v.Version != nil && *v.Version == v.Tag {
			*v.Version = v.Tag
		}
		r[v.Tag] = v
	} else if equality.Semantic.DeepEqual(v, first) {
		*v = *first
	}
}

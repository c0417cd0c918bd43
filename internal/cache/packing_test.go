// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"
	"testing"
	"time"
	"unsafe"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// TestPackingChangesNoObject checks this for any content, no matter how much earlier
// objects had in common with it.
func TestPackingChangesNoObject(t *testing.T) {
	var w words
	for seed := range int64(20) {
		fill := randfill.NewWithSeed(seed).NilChance(.2).NumElements(0, 3).Funcs(
			func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(c.Int63n(1<<31), 0) },
			func(owner *metav1.ManagedFieldsEntry, c randfill.Continue) { // nothing reads its time
				*owner = metav1.ManagedFieldsEntry{Manager: c.String(10), FieldsV1: metav1.NewFieldsV1(c.String(10))}
			},
		)
		for _, o := range []client.Object{
			&sourcev1.OCIRepository{}, &kustomizev1.Kustomization{}, &helmv2.HelmRelease{}, &imagev1.ImagePolicy{}, &imagev1.ImageRepository{},
			&v1alpha1.Rollout{}, &v1alpha1.HealthCheck{}, &v1alpha1.RolloutGate{}, &environmentsv1.Environment{}, &corev1.Namespace{},
		} {
			t.Run(fmt.Sprintf("%T %d", o, seed), func(t *testing.T) {
				g := NewWithT(t)
				fill.Fill(o)
				before := o.DeepCopyObject()
				for range 2 {
					w.pack(o)
					g.Expect(o).To(Equal(before))
					w.share(o)
					g.Expect(o).To(Equal(before))
					w.packPointers(o)
					g.Expect(o).To(Equal(before))
				}
			})
		}
	}
}

// TestPackedStringsAreOnePiece checks that a text that an object contains twice is stored
// once, that a known text is not stored, and that the name, which is kept for longer,
// stays separate.
func TestPackedStringsAreOnePiece(t *testing.T) {
	g := NewWithT(t)
	var w words
	known := one(&w, "Succeeded")
	o := &kustomizev1.Kustomization{}
	o.Name, o.ResourceVersion = text("shop"), text("17")
	o.Spec.SourceRef.Name = text("shop")
	o.Annotations = map[string]string{text("note"): text("1.0.0@sha256:1")}
	o.Status.LastAppliedRevision, o.Status.LastAttemptedRevision = text("1.0.0@sha256:1"), text("1.0.0@sha256:1")
	o.Status.Conditions = []metav1.Condition{{Reason: text("Succeeded")}}
	w.pack(o)

	at := func(s string) int { return int(uintptr(unsafe.Pointer(unsafe.StringData(s)))) }
	var key, value string
	for key, value = range o.Annotations {
		g.Expect(key).To(Equal("note"))
	}
	first, size := at(o.ResourceVersion), len("17"+"shop"+"note"+"1.0.0@sha256:1")
	for _, packed := range []string{o.Spec.SourceRef.Name, key, value, o.Status.LastAppliedRevision, o.Status.LastAttemptedRevision} {
		g.Expect(at(packed)-first).To(And(BeNumerically(">", 0), BeNumerically("<", size)), packed)
	}
	g.Expect(at(value)).To(Equal(at(o.Status.LastAppliedRevision)))
	g.Expect(at(value)).To(Equal(at(o.Status.LastAttemptedRevision)))
	g.Expect(at(o.Status.Conditions[0].Reason)).To(Equal(at(known)))
	g.Expect(at(o.Name)-first).To(Or(BeNumerically("<", 0), BeNumerically(">=", size)), "the name stays alone")
}

// TestPointersOfARolloutAreInRows checks that the digests of its releases are next to
// each other, and that the digest of a release that is also in the history is stored
// once.
func TestPointersOfARolloutAreInRows(t *testing.T) {
	g := NewWithT(t)
	var w words
	for range 2 { // the memory of the first pass is reused, and the contents do not mix
		pointer := func(s string) *string { return &s }
		old := v1alpha1.VersionInfo{Tag: "1.0.0", Digest: pointer("sha256:1")}
		shared := v1alpha1.VersionInfo{Tag: "1.1.0", Digest: pointer("sha256:2")}
		r := &v1alpha1.Rollout{}
		r.Status.AvailableReleases = []v1alpha1.VersionInfo{old, shared}
		r.Status.History = []v1alpha1.DeploymentHistoryEntry{{Version: shared, Message: pointer("why")}}
		before := r.DeepCopy()
		w.packPointers(r)

		g.Expect(r).To(Equal(before))
		s, at := r.Status, func(p *string) int { return int(uintptr(unsafe.Pointer(p))) }
		first, size := at(s.History[0].Version.Digest), int(unsafe.Sizeof(""))
		g.Expect(at(s.History[0].Message)).To(Equal(first + size))
		g.Expect(at(s.AvailableReleases[0].Digest)).To(Equal(first + 2*size))
		g.Expect(at(s.AvailableReleases[1].Digest)).To(Equal(first), "shared with the history")
		for kind, fields := range w.rows.fields {
			g.Expect(fields[:cap(fields)]).To(HaveEach(reflect.Value{}), "nothing keeps a %s", kind)
		}
		g.Expect(w.rows.moved).To(BeEmpty())
	}
}

// TestAnEnvironmentTakesLittleMemory checks that its lists have no spare capacity, that the
// times of its releases are next to each other and not stored twice, and that its conditions
// share their texts with those of others.
func TestAnEnvironmentTakesLittleMemory(t *testing.T) {
	g := NewWithT(t)
	decoded := func() *environmentsv1.Environment {
		at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
		e := &environmentsv1.Environment{}
		e.Spec.Upstreams = append(make([]environmentsv1.Upstream, 0, 4), environmentsv1.Upstream{Environment: "staging"})
		e.Status.Upstreams = append(make([]environmentsv1.UpstreamStatus, 0, 4), environmentsv1.UpstreamStatus{
			Environment: "staging", Releases: append(make([]environmentsv1.Release, 0, 4), environmentsv1.Release{Tag: "1.0.0"}),
		})
		e.Status.Releases = append(make([]environmentsv1.Release, 0, 4),
			environmentsv1.Release{Tag: "1.1.0", Since: at(2)}, environmentsv1.Release{Tag: "1.0.0", Since: at(1)})
		e.Status.Releases[0].HealthySince, e.Status.LastStatusChangeTime = at(2), at(2)
		e.Status.Conditions = []metav1.Condition{{Message: text("1.1.0 succeeded")}}
		return e
	}
	var w trimmer
	first, second := decoded(), decoded()
	for _, e := range []*environmentsv1.Environment{first, second} {
		before := e.DeepCopy()
		_, err := w.trim(e)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e).To(Equal(before))
		g.Expect([]int{cap(e.Spec.Upstreams), cap(e.Status.Upstreams), cap(e.Status.Upstreams[0].Releases), cap(e.Status.Releases)}).
			To(Equal([]int{1, 1, 1, 2}))
		newest, oldest := &e.Status.Releases[0], &e.Status.Releases[1]
		at := func(t *metav1.Time) int { return int(uintptr(unsafe.Pointer(t))) }
		g.Expect(at(oldest.Since)).To(Equal(at(newest.Since) + int(unsafe.Sizeof(metav1.Time{}))))
		g.Expect([]int{at(newest.HealthySince), at(e.Status.LastStatusChangeTime)}).To(HaveEach(at(newest.Since)))
	}
	g.Expect(unsafe.StringData(second.Status.Conditions[0].Message)).To(BeIdenticalTo(unsafe.StringData(first.Status.Conditions[0].Message)))
}

// text returns a string in its own piece of memory, like a decoded one.
func text(s string) string { return string([]byte(s)) }

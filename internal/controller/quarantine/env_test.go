// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const digest = "sha256:3f2a9c1d5b7e8f60a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e"

// noon is the time at which each test begins.
var noon = fixture.Noon

// testEnv is an env with one quarantine, and a Reconciler of its kind that runs one step
// whenever the test requests it.
type testEnv struct {
	*env.Env
	reconciler *Reconciler
	object     client.Object
}

// open creates the quarantine.
func open(t *testing.T, o client.Object) *testEnv {
	t.Helper()
	t.Parallel()
	e := env.Open(t, testClient, &v1alpha1.ReleaseQuarantine{})
	_, cluster := o.(*v1alpha1.ClusterReleaseQuarantine)
	if cluster {
		o.SetName(o.GetName() + "-" + e.Namespace)
		t.Cleanup(func() { _ = client.IgnoreNotFound(e.Delete(context.WithoutCancel(e.Ctx), o)) })
	}
	e.Add(o)
	s := &testEnv{Env: e, object: o}
	s.reconciler = &Reconciler{Client: e.Wire.Through(env.Indexes{}.Cached(e.WithWatch)), Now: e.Clock.Now, Cluster: cluster}
	return s
}

// bad returns a quarantine as a user creates it.
func bad(edits ...func(*v1alpha1.ReleaseQuarantine)) *v1alpha1.ReleaseQuarantine {
	q := &v1alpha1.ReleaseQuarantine{
		ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: fixture.Namespace},
		Spec:       v1alpha1.ReleaseQuarantineSpec{Digest: digest},
	}
	for _, edit := range edits {
		edit(q)
	}
	return q
}

// cluster returns the same as a ClusterReleaseQuarantine.
func cluster(q *v1alpha1.ReleaseQuarantine) *v1alpha1.ClusterReleaseQuarantine {
	return &v1alpha1.ClusterReleaseQuarantine{
		ObjectMeta: metav1.ObjectMeta{Name: q.Name, Labels: q.Labels},
		Spec:       v1alpha1.ClusterReleaseQuarantineSpec{ReleaseQuarantineSpec: q.Spec}, Status: q.Status,
	}
}

// ours makes it one that the controller has created.
func ours(q *v1alpha1.ReleaseQuarantine) {
	q.Name, _ = quarantine.Name(q.Spec.Digest)
	q.Labels = quarantine.Labels(q.Name)
}

// failed makes it list a failure, and end a day after.
func failed(q *v1alpha1.ReleaseQuarantine) {
	q.Status, _ = quarantine.Report(q.Status, v1alpha1.ReleaseFailure{
		Rollout: v1alpha1.ReportingRollout{Name: "shop", UID: "a"}, EntryID: 1, Time: metav1.NewTime(noon),
	}, nil)
}

func until(d time.Duration) func(*v1alpha1.ReleaseQuarantine) {
	return func(q *v1alpha1.ReleaseQuarantine) { q.Spec.Until = &metav1.Time{Time: noon.Add(d)} }
}

func lifted(q *v1alpha1.ReleaseQuarantine) { q.Spec.Lifted = true }

// tick runs one step.
func (s *testEnv) tick() ctrl.Result {
	result, err := s.try()
	s.Expect(err).NotTo(HaveOccurred())
	kind := v1alpha1.ReleaseQuarantineKind
	if s.reconciler.Cluster {
		kind = v1alpha1.ClusterReleaseQuarantineKind
	}
	if stored, err := s.Stored(kind, client.ObjectKeyFromObject(s.object)); err == nil && stored.GetDeletionTimestamp() == nil {
		s.Expect(s.Kstatus(stored)).To(Equal(status.CurrentStatus))
	}
	return result
}

func (s *testEnv) try() (ctrl.Result, error) {
	return s.reconciler.Reconcile(s.Ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.object)})
}

// status returns the status as it is now, with times in UTC; nil if the quarantine is gone.
func (s *testEnv) status() *v1alpha1.ReleaseQuarantineStatus {
	now := s.object.DeepCopyObject().(client.Object)
	err := s.Get(s.Ctx, client.ObjectKeyFromObject(now), now)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.Expect(err).NotTo(HaveOccurred())
	_, status := quarantine.Parts(now)
	for _, at := range []*metav1.Time{status.Until, status.EndedAt} {
		if at != nil {
			at.Time = at.UTC()
		}
	}
	return status
}

// phase returns the phase as it is now, or "deleted".
func (s *testEnv) phase() v1alpha1.QuarantinePhase {
	status := s.status()
	if status == nil {
		return "deleted"
	}
	return status.Phase
}

// edit changes the spec as a user does.
func (s *testEnv) edit(patch string) {
	s.Expect(s.Patch(s.Ctx, s.object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// writeStatus changes the status as another client does.
func (s *testEnv) writeStatus(patch string) { s.Expect(s.patchStatus(patch)).To(Succeed()) }

func (s *testEnv) patchStatus(patch string) error {
	return s.Status().Patch(s.Ctx, s.object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// oddTime is a valid time for the schema of a custom resource, but not for metav1.Time.
const oddTime = "2026-03-02t12:00:00z"

// oddly gives an object a status with a time that cannot be decoded.
func (s *testEnv) oddly(o client.Object) { s.patchStatus(o, statusOf(o, oddTime)) }

// statusOf returns a status that contains a time.
func statusOf(o client.Object, time string) map[string]any {
	switch o.(type) {
	case *v1alpha1.HealthCheck:
		return map[string]any{"lastErrorTime": time}
	case *v1alpha1.RolloutSchedule, *v1alpha1.ClusterRolloutSchedule:
		return map[string]any{"nextTransition": time}
	case *v1alpha1.ReleaseQuarantine:
		return map[string]any{"until": time}
	}
	return map[string]any{"conditions": []any{map[string]any{
		"type": "Odd", "status": "True", "reason": "Odd", "message": "", "lastTransitionTime": time,
	}}}
}

// patchStatus writes a status that no typed client can write.
func (s *testEnv) patchStatus(o client.Object, status map[string]any) {
	patch, err := json.Marshal(map[string]any{"status": status})
	s.Expect(err).NotTo(HaveOccurred())
	is := &metav1.PartialObjectMetadata{}
	kind, err := s.GroupVersionKindFor(o)
	s.Expect(err).NotTo(HaveOccurred())
	is.SetGroupVersionKind(kind)
	is.SetName(o.GetName())
	is.SetNamespace(o.GetNamespace())
	s.Expect(s.Status().Patch(s.Ctx, is, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

func TestObjectThatCannotBeReadStopsNothingElse(t *testing.T) {
	for kind, named := range map[string]func(name string) client.Object{
		"Rollout":         func(name string) client.Object { return fixture.MakeRollout(name).Obj() },
		"HealthCheck":     func(name string) client.Object { return fixture.MakeHealthCheck(name).Obj() },
		"RolloutSchedule": func(name string) client.Object { return fixture.MakeSchedule(name).Selecting(team).Obj() },
		"ImagePolicy":     func(name string) client.Object { return fixture.MakePolicy(name).Obj() },
		"ImageRepository": func(name string) client.Object { return fixture.MakeScan(name).Obj() },
		"OCIRepository":   func(name string) client.Object { return fixture.MakeRepository(name).Obj() },
		"Kustomization":   func(name string) client.Object { return fixture.MakeKustomization(name).Obj() },
		"HelmRelease":     func(name string) client.Object { return fixture.MakeHelmRelease(name).Obj() },
		"ReleaseQuarantine": func(name string) client.Object {
			return &v1alpha1.ReleaseQuarantine{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace},
				Spec:       v1alpha1.ReleaseQuarantineSpec{Digest: digestOf("9.9.9")},
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			s := openAlone(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.quarantines = kind == v1alpha1.ReleaseQuarantineKind
			listed, watched := named("listed"), named("watched")
			s.Add(listed)
			s.oddly(listed)
			s.play(t, testPlane.RESTConfig())
			s.Eventually(func() string { return s.carried("shop")["tag"] }).Should(Equal("1.0.0"), "what stands in a list stops it")
			watched.SetNamespace(s.Namespace)
			s.Expect(s.Create(s.Ctx, watched)).To(Succeed())
			s.isReported(watched)
			s.oddly(watched)
			s.release("shop", "1.1.0")
			s.Eventually(func() string { return s.carried("shop")["tag"] }).Should(Equal("1.1.0"), "what a watch brings stops it")

			for _, odd := range []client.Object{listed, watched} {
				s.Eventually(s.Events.All).Should(ContainElement(fixture.Event{
					On: odd.GetName(), Type: corev1.EventTypeWarning, Reason: v1alpha1.UnreadableReason,
					Message: kind + " " + s.Namespace + "/" + odd.GetName() + ` cannot be read: parsing time "` + oddTime +
						`" as "2006-01-02T15:04:05Z07:00": cannot parse "t12:00:00z" as "T": correct that field; ` +
						"what depends on the object waits until then",
				}))
			}
			s.Expect(s.unread.Count()).To(Equal(map[string]int{kind: 2}))
			s.patchStatus(listed, statusOf(listed, "2026-03-02T12:00:00Z"))
			s.Expect(s.Delete(s.Ctx, watched)).To(Succeed())
			s.Eventually(s.unread.Count).Should(BeEmpty())
		})
	}
}

// isReported waits for the status of objects on which the controller reports: it would
// replace an earlier change.
func (s *testEnv) isReported(o client.Object) {
	s.Eventually(func() bool {
		s.Expect(s.Get(s.Ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		switch o := o.(type) {
		case *v1alpha1.Rollout:
			return len(o.Status.Conditions) > 0
		case *v1alpha1.ReleaseQuarantine:
			return o.Status.Phase != ""
		case *v1alpha1.RolloutSchedule:
			return len(o.Status.Conditions) > 0
		}
		return true
	}).Should(BeTrue())
}

// Everything that depends on an object that cannot be read waits and reports why. It
// continues by itself once the object is corrected.
func TestUnreadableObjectHoldsWhatDependsOnIt(t *testing.T) {
	const cause = `cannot be read: parsing time "` + oddTime + `"`
	ran := func(state v1alpha1.BakeStatus) []promoted { return []promoted{{ID: 1, Tag: "1.0.0", State: state}} }
	for name, test := range map[string]struct {
		odd  client.Object
		says string // part of a condition's message
		// waiting and then are the history before and after.
		waiting, then []promoted
	}{
		"its ImagePolicy":     {&imagev1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, "could not be read: parsing time", nil, ran(v1alpha1.BakeDeploying)},
		"its OCIRepository":   {&sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, "the targets could not be read: OCIRepository", nil, ran(v1alpha1.BakeDeploying)},
		"its Kustomization":   {&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, "the targets could not be read: Kustomization", nil, ran(v1alpha1.BakeDeploying)},
		"its RolloutSchedule": {fixture.MakeSchedule("days").Selecting(team).Obj(), "gates or schedules could not be read: RolloutSchedule", nil, ran(v1alpha1.BakeDeploying)},
		"its HealthCheck":     {fixture.MakeHealthCheck("web").Obj(), "the HealthChecks could not be read: HealthCheck", ran(v1alpha1.BakeDeploying), ran(v1alpha1.BakeDeploying)},
	} {
		t.Run(name, func(t *testing.T) {
			objects := shopWith(fixture.MakeRollout("shop").SelectAllChecks(), "1.0.0",
				fixture.MakeHealthCheck("web").Healthy().Obj(), fixture.MakeSchedule("days").Selecting(team).Obj())
			objects[4].SetLabels(team)
			s := openAlone(t, objects...)
			test.odd.SetNamespace(s.Namespace)
			s.oddly(test.odd)
			s.play(t, testPlane.RESTConfig())
			s.Eventually(func() []string { return s.messages("shop") }).Should(ContainElement(ContainSubstring(test.says)))
			s.Expect(s.messages("shop")).To(Or(ContainElement(ContainSubstring(cause)), ContainElement(ContainSubstring("could not be read: parsing time"))))
			s.Expect(s.history("shop")).To(Equal(test.waiting))

			s.patchStatus(test.odd, statusOf(test.odd, "2026-03-02T12:00:00Z"))
			s.Eventually(func() []string { return s.messages("shop") }).ShouldNot(ContainElement(ContainSubstring(test.says)))
			s.Eventually(func() []promoted { return s.history("shop") }).Should(Equal(test.then))
			for _, line := range s.Log.All() {
				s.Expect(line.Message).NotTo(Equal("Reconciler error"), "it is tried again and again")
			}
		})
	}
}

// messages returns the messages of all conditions.
func (s *testEnv) messages(name string) []string {
	var all []string
	for _, c := range s.rollout(name).Status.Conditions {
		all = append(all, c.Message)
	}
	return all
}

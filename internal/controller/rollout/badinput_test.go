// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// mistake is an error of a user, and what must be reported about it. NS stands for the
// env's namespace.
type mistake struct {
	make func(*testEnv)
	fix  func(*testEnv)
	// condition reports the mistake; want and recovered are its states before and after
	// the fix.
	condition string
	want      condition
	recovered condition
	// kstatus while the mistake lasts.
	kstatus status.Status
}

// The conditions after all problems are fixed.
var (
	released  = condition{metav1.ConditionTrue, v1alpha1.ReleasesUpdatedReason, "2 releases known from ImagePolicy shop"}
	applied   = condition{metav1.ConditionTrue, v1alpha1.TargetsAppliedReason, "applied 1.1.0 to 3 targets; OCIRepository spare: " + nothingApplies}
	unblocked = condition{metav1.ConditionFalse, v1alpha1.HealthChecksHealthyReason, "no selected HealthCheck is Unhealthy"}
	gone      = condition{}
)

var mistakes = map[string]mistake{
	"an ImagePolicy that does not exist": {
		make:      func(s *testEnv) { s.Remove(&imagev1.ImagePolicy{}, "shop") },
		fix:       func(s *testEnv) { s.Add(fixture.MakePolicy("shop").Obj()) },
		condition: v1alpha1.ReleasesUpdatedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.ImagePolicyNotFoundReason,
			"ImagePolicy NS/shop does not exist: create it in this namespace, or correct spec.releasesImagePolicy.name"},
		recovered: released,
		kstatus:   status.InProgressStatus,
	},
	"an ImagePolicy that is not ready": {
		make: func(s *testEnv) { s.policySays("no tags in database") },
		fix:  func(*testEnv) {},

		condition: v1alpha1.ReleasesUpdatedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.ImagePolicyNotReadyReason,
			"ImagePolicy shop is not ready: no tags in database"},
		recovered: released,
		kstatus:   status.CurrentStatus,
	},
	"a tag that is no semver under a semver policy": {
		make:      func(s *testEnv) { s.release("shop", "latest") },
		fix:       func(*testEnv) {},
		condition: v1alpha1.ReleasesUpdatedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.InvalidReleaseTagReason,
			`ImagePolicy shop orders by semver but names tag "latest", which is not a semantic version: correct its range or filterTags`},
		recovered: released,
		kstatus:   status.CurrentStatus,
	},
	"a semver range that cannot be parsed": {
		make:      func(s *testEnv) { s.setRange("newest") },
		fix:       func(s *testEnv) { s.setRange("*") },
		condition: v1alpha1.ReleasesUpdatedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.InvalidImagePolicyReason,
			`ImagePolicy NS/shop cannot be used: semver range "newest": improper constraint: "newest"`},
		recovered: released,
		kstatus:   status.FailedStatus,
	},
	"an ImageRepository that does not exist": {
		make:      func(s *testEnv) { s.Remove(&imagev1.ImageRepository{}, "shop") },
		fix:       func(s *testEnv) { s.Add(fixture.MakeScan("shop").Found("1.0.0").Obj()) },
		condition: v1alpha1.ReleasesUpdatedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.ImagePolicyNotReadyReason,
			"ImageRepository NS/shop does not exist: create it, or correct spec.imageRepositoryRef of ImagePolicy shop"},
		recovered: released,
		kstatus:   status.CurrentStatus,
	},
	"an ImageRepository of another namespace that lets nobody in": {
		make:      func(s *testEnv) { s.setRepository("elsewhere") },
		fix:       func(s *testEnv) { s.setRepository("") },
		condition: v1alpha1.ReleasesUpdatedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.AccessDeniedReason,
			"ImagePolicy NS/shop may not use ImageRepository elsewhere/shop: it does not exist, or its spec.accessFrom " +
				"does not let in namespace NS; correct spec.imageRepositoryRef, or have the namespace added to spec.accessFrom"},
		recovered: released,
		kstatus:   status.FailedStatus,
	},
	"a registry that cannot be reached": {
		make:      func(s *testEnv) { s.scanSays(metav1.ConditionFalse, "dial tcp: no route to host") },
		fix:       func(s *testEnv) { s.scanSays(metav1.ConditionTrue, "scanned") },
		condition: v1alpha1.ReleasesUpdatedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.ImagePolicyNotReadyReason,
			"ImageRepository NS/shop cannot scan the registry: dial tcp: no route to host; check its spec.image, the registry and its credentials"},
		recovered: released,
		kstatus:   status.CurrentStatus,
	},
	"an ImageRepository that is suspended": {
		make:      func(s *testEnv) { s.suspendScan(true) },
		fix:       func(s *testEnv) { s.suspendScan(false) },
		condition: v1alpha1.ReleasesUpdatedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.SuspendedReason,
			"ImageRepository shop is suspended: new releases are not seen; resume it"},
		recovered: released,
		kstatus:   status.CurrentStatus,
	},
	"an ImagePolicy that is suspended": {
		make:      func(s *testEnv) { s.suspendPolicy(true) },
		fix:       func(s *testEnv) { s.suspendPolicy(false) },
		condition: v1alpha1.ReleasesUpdatedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.SuspendedReason,
			"ImagePolicy shop is suspended: new releases are not seen; resume it"},
		recovered: released,
		kstatus:   status.CurrentStatus,
	},
	"a variable that Flux does not accept": {
		make:      func(s *testEnv) { s.Add(fixture.MakeKustomization("bad").DrivenBy("shop", "MY-VAR").Obj()) },
		fix:       func(s *testEnv) { s.Remove(&kustomizev1.Kustomization{}, "bad") },
		condition: v1alpha1.TargetsAppliedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.TargetConflictReason,
			`Kustomization bad: Flux does not accept "MY-VAR" as the name of a variable: ` +
				`rename the annotation rollout.kuberik.com/substitute.MY-VAR.from`},
		recovered: applied,
		kstatus:   status.FailedStatus,
	},
	"a digest next to the tag": {
		make: func(s *testEnv) {
			s.setRef(func(r *sourcev1.OCIRepositoryRef) { r.Digest = "sha256:" + strings.Repeat("a", 64) })
		},
		fix:       func(s *testEnv) { s.setRef(func(r *sourcev1.OCIRepositoryRef) { r.Digest = "" }) },
		condition: v1alpha1.TargetsAppliedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.TargetConflictReason,
			"OCIRepository shop: spec.ref.digest outranks spec.ref.tag in Flux: remove it"},
		recovered: applied,
		kstatus:   status.FailedStatus,
	},
	"a semver range next to the tag": {
		make:      func(s *testEnv) { s.setRef(func(r *sourcev1.OCIRepositoryRef) { r.SemVer = "1.x" }) },
		fix:       func(s *testEnv) { s.setRef(func(r *sourcev1.OCIRepositoryRef) { r.SemVer = "" }) },
		condition: v1alpha1.TargetsAppliedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.TargetConflictReason,
			"OCIRepository shop: spec.ref.semver outranks spec.ref.tag in Flux: remove it"},
		recovered: applied,
		kstatus:   status.FailedStatus,
	},
	"a selector that cannot be parsed": {
		make: func(s *testEnv) {
			s.selectChecks(&v1alpha1.HealthCheckSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}},
			})
		},
		fix:       func(s *testEnv) { s.selectChecks(nil) },
		condition: v1alpha1.DeploymentBlockedCondition,
		want: condition{metav1.ConditionTrue, v1alpha1.InvalidSelectorReason,
			`spec.healthCheckSelector cannot be used: "Resembles" is not a valid label selector operator`},
		recovered: unblocked,
		kstatus:   status.FailedStatus,
	},
	"HealthChecks of other namespaces where that is not allowed": {
		make: func(s *testEnv) {
			s.reconciler.NoCrossNamespaceRefs = true
			s.selectChecks(&v1alpha1.HealthCheckSelector{
				Selector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{},
			})
		},
		fix:       func(s *testEnv) { s.selectChecks(nil) },
		condition: v1alpha1.StalledCondition,
		want: condition{metav1.ConditionTrue, v1alpha1.AccessDeniedReason,
			"spec.healthCheckSelector.namespaceSelector selects HealthChecks of other namespaces, " +
				"but references across namespaces are not allowed: remove it, and select HealthChecks of this namespace"},
		recovered: gone,
		kstatus:   status.FailedStatus,
	},
	"an ImageRepository of another namespace where that is not allowed": {
		make: func(s *testEnv) {
			s.reconciler.NoCrossNamespaceRefs = true
			s.setRepository("elsewhere")
		},
		fix:       func(s *testEnv) { s.setRepository("") },
		condition: v1alpha1.StalledCondition,
		want: condition{metav1.ConditionTrue, v1alpha1.AccessDeniedReason,
			"ImagePolicy NS/shop refers to ImageRepository elsewhere/shop, but references across namespaces are not allowed: " +
				"create an ImageRepository in the namespace of the policy"},
		recovered: gone,
		kstatus:   status.FailedStatus,
	},
	"a source of another namespace where that is not allowed": {
		make: func(s *testEnv) {
			s.reconciler.NoCrossNamespaceRefs = true
			s.setSource("elsewhere")
		},
		fix:       func(s *testEnv) { s.setSource("") },
		condition: v1alpha1.TargetsAppliedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.TargetConflictReason,
			"Kustomization shop: its source is OCIRepository elsewhere/shop, but references across namespaces are not allowed: " +
				"use an OCIRepository of this namespace"},
		recovered: applied,
		kstatus:   status.FailedStatus,
	},
	"a pin that cannot be a tag": {
		make:      func(s *testEnv) { s.pinTo("the newest") },
		fix:       func(s *testEnv) { s.pin("shop", nil) },
		condition: v1alpha1.StalledCondition,
		want: condition{metav1.ConditionTrue, v1alpha1.InvalidWantedVersionReason,
			`spec.wantedVersion "the newest" cannot be a tag in an OCI registry: correct or remove it`},
		recovered: gone,
		kstatus:   status.FailedStatus,
	},
	"a Kustomization that waits for the Rollout that it applies": {
		make:      func(s *testEnv) { s.waitForRollout(true) },
		fix:       func(s *testEnv) { s.waitForRollout(false) },
		condition: v1alpha1.TargetsAppliedCondition,
		want: condition{metav1.ConditionFalse, v1alpha1.TargetConflictReason,
			"Kustomization shop: applies this Rollout and waits for it, while the Rollout waits for what it applies: " +
				"apply the Rollout from another Kustomization, or set spec.wait to false"},
		recovered: applied,
		kstatus:   status.FailedStatus,
	},
}

func TestMistakeIsReportedOnceAndBlocksNothingElseAndRecovers(t *testing.T) {
	t.Parallel()
	for name, tt := range mistakes {
		t.Run("the mistake is "+name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeRepository("spare").DrivenBy("shop").Obj())...)
			s.deploy("shop")
			s.Events.Take()

			tt.make(s)
			s.staysTold(tt)
			s.putsBackTheSpare()

			tt.fix(s)
			s.release("shop", "1.1.0")
			s.deploy("shop")
			s.Expect(s.condition("shop", tt.condition)).To(Equal(tt.recovered))
			s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
			s.Expect(s.kstatus("shop")).To(Equal(status.CurrentStatus))
			for _, event := range s.Events.Take() {
				s.Expect(event.Type).To(Equal(corev1.EventTypeNormal), "%v", event)
			}
		})
	}
}

// staysTold checks that a condition and exactly one event report the mistake, also after
// twenty more steps.
func (s *testEnv) staysTold(m mistake) {
	want := m.want
	want.Message = strings.ReplaceAll(want.Message, "NS", s.Namespace)
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.Wire.Forget()
	for range 20 {
		s.reconcile("shop")
	}
	s.Expect(s.condition("shop", m.condition)).To(Equal(want))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{
		{On: "shop", Type: corev1.EventTypeWarning, Reason: want.Reason, Message: want.Message},
	}))
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.kstatus("shop")).To(Equal(m.kstatus))
}

// putsBackTheSpare checks that work unrelated to the mistake continues.
func (s *testEnv) putsBackTheSpare() {
	s.Change(fixture.MakeRepository("spare").Obj(), func(o client.Object) { o.(*sourcev1.OCIRepository).Spec.Reference.Tag = "0.0.9" })
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.carried("spare")).To(Equal(map[string]string{"tag": "1.0.0"}))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
		On: "shop", Type: corev1.EventTypeNormal, Reason: v1alpha1.TargetRestoredReason,
		Message: "OCIRepository " + s.Namespace + "/spare had drifted and was set to 1.0.0 again",
	}}))
}

func (s *testEnv) policySays(complaint string) {
	s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		policy := o.(*imagev1.ImagePolicy)
		fluxSays(&policy.Status.Conditions, policy.Generation, metav1.ConditionFalse, complaint)
	})
}

func (s *testEnv) scanSays(ready metav1.ConditionStatus, message string) {
	s.ChangeStatus(fixture.MakeScan("shop").Obj(), func(o client.Object) {
		scan := o.(*imagev1.ImageRepository)
		fluxSays(&scan.Status.Conditions, scan.Generation, ready, message)
	})
}

func (s *testEnv) setRange(admitted string) {
	s.Change(fixture.MakePolicy("shop").Obj(), func(o client.Object) { o.(*imagev1.ImagePolicy).Spec.Policy.SemVer.Range = admitted })
}

func (s *testEnv) setRepository(namespace string) {
	s.Change(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		o.(*imagev1.ImagePolicy).Spec.ImageRepositoryRef.Namespace = namespace
	})
}

func (s *testEnv) setSource(namespace string) {
	s.Change(fixture.MakeKustomization("shop").Obj(), func(o client.Object) {
		o.(*kustomizev1.Kustomization).Spec.SourceRef.Namespace = namespace
	})
}

func (s *testEnv) setRef(edit func(*sourcev1.OCIRepositoryRef)) {
	s.Change(fixture.MakeRepository("shop").Obj(), func(o client.Object) { edit(o.(*sourcev1.OCIRepository).Spec.Reference) })
}

func (s *testEnv) selectChecks(selector *v1alpha1.HealthCheckSelector) {
	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.(*v1alpha1.Rollout).Spec.HealthCheckSelector = selector })
}

func (s *testEnv) waitForRollout(wait bool) {
	s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
		o.SetLabels(map[string]string{
			kustomizev1.GroupVersion.Group + "/name": "shop", kustomizev1.GroupVersion.Group + "/namespace": s.Namespace,
		})
	})
	s.Change(fixture.MakeKustomization("shop").Obj(), func(o client.Object) { o.(*kustomizev1.Kustomization).Spec.Wait = wait })
	s.fluxApplies()
}

func TestAnnotationThatNamesNoRolloutIsReportedOnceOnTheObject(t *testing.T) {
	s := open(t,
		fixture.MakeRepository("shop").DrivenBy("shpo").Tag("1.0.0").Obj(),
		fixture.MakeKustomization("shop").DrivenBy("shpo", "VERSION").Obj(),
		fixture.MakeKustomization("consumer").From(sourcev1.OCIRepositoryKind, "shop").Obj(),
	)
	result := s.reconcile("shpo")
	s.Expect(result.RequeueAfter).To(Equal(orphanGrace), "what is applied together comes one by one")
	s.Expect(s.Events.Take()).To(BeEmpty())
	s.Pass(orphanGrace)
	for range 20 {
		s.reconcile("shpo")
	}
	message := "an annotation names Rollout " + s.Namespace + "/shpo, which does not exist: create it, or correct the annotation"
	reported := []fixture.Event{
		{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.RolloutNotFoundReason, Message: message},
		{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.RolloutNotFoundReason, Message: message},
	}
	s.Expect(s.Events.Take()).To(Equal(reported))
	s.Expect(s.Wire.Writes()).To(BeEmpty())

	s.Add(fixture.MakeScan("shpo").Obj(), fixture.MakePolicy("shpo").Latest("1.1.0").Obj(), fixture.MakeRollout("shpo").Obj())
	s.deploy("shpo")
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "1.1.0", "VERSION": "1.1.0"}))
	s.Events.Take()

	s.Remove(&v1alpha1.Rollout{}, "shpo")
	s.reconcile("shpo")
	s.Pass(orphanGrace)
	s.reconcile("shpo")
	s.reconcile("shpo")
	s.Expect(s.Events.Take()).To(Equal(reported))
}

func TestTargetThatRefusesTheWriteIsShownAndRecovers(t *testing.T) {
	t.Parallel()
	kustomizations := schema.GroupResource{Group: kustomizev1.GroupVersion.Group, Resource: "kustomizations"}
	for name, rejected := range map[string]error{
		"permission is missing":      apierrors.NewForbidden(kustomizations, "shop", nil),
		"the object is invalid":      apierrors.NewInvalid(kustomizev1.GroupVersion.WithKind("Kustomization").GroupKind(), "shop", nil),
		"the request is not allowed": apierrors.NewBadRequest("admission webhook says no"),
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			refuse := true
			s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
				if refuse && write == "patch Kustomization shop" {
					return fixture.Fault{Err: rejected}
				}
				return fixture.Fault{}
			}
			var seen []fixture.Event
			for range 5 { // retried by the queue, with back-off
				_, err := s.try("shop")
				s.Expect(err).To(HaveOccurred())
				s.fluxApplies()
				seen = append(seen, s.Events.Take()...)
			}
			message := "patch Kustomization " + s.Namespace + "/shop: " + rejected.Error()
			s.Expect(s.rollout("shop").Status.Targets).To(Equal([]v1alpha1.TargetStatus{
				{Kind: "Kustomization", Namespace: s.Namespace, Name: "shop", Version: "1.0.0", State: v1alpha1.TargetFailed, Reason: v1alpha1.TargetRejected,
					Message: message},
				{Kind: "OCIRepository", Namespace: s.Namespace, Name: "shop", Version: "1.0.0", State: v1alpha1.TargetPending},
			}))
			s.Expect(s.Wire.Writes()).To(Equal([]string{
				"patch Rollout/status shop", "patch Kustomization shop", "patch OCIRepository shop", "patch Rollout/status shop",
				"patch Kustomization shop", "patch Kustomization shop", "patch Kustomization shop", "patch Kustomization shop",
			}))
			s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
				metav1.ConditionFalse, v1alpha1.TargetFailedReason, "Kustomization shop: " + message}))
			s.Expect(seen).To(HaveLen(2))
			s.Expect(seen[1]).To(Equal(fixture.Event{
				On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.TargetFailedReason, Message: "Kustomization shop: " + message}))

			refuse = false
			s.rest("shop")
			s.Expect(s.rollout("shop").Status.Targets[0].State).To(Equal(v1alpha1.TargetPending), "what was refused is written now")
			s.deploy("shop")
			s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
			s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{
				metav1.ConditionTrue, v1alpha1.TargetsAppliedReason, "applied 1.0.0 to 2 targets"}))
		})
	}
}

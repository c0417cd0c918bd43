// SPDX-License-Identifier: Apache-2.0

package adversary

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// move is something that the adversary may do.
type move struct {
	name string
	do   func(*victim)
}

// moves are made at any time.
var moves = []move{
	{"a release", (*victim).release},
	{"another release", (*victim).release},
	{"one more release", (*victim).release},
	{"health flapped", (*victim).flapHealth},
	{"health flapped again", (*victim).flapHealth},
	{"mark removed", (*victim).removeMarks},
	{"release pushed again", (*victim).pushAgain},
	{"policy moved back", (*victim).movePolicyBack},
	{"OCIRepository recreated", func(v *victim) { v.recreate(v.OCIRepository(v.Plane.Registry.Host())) }},
	{"Kustomization recreated", (*victim).recreateKustomization},
	{"HealthCheck recreated", (*victim).recreateCheck},
	{"ImagePolicy recreated", func(v *victim) { v.recreate(v.ImagePolicy(">=1.0.0")) }},
	{"gate closed", (*victim).closeGate},
	{"gates removed", (*victim).openGates},
	{"gates removed again", (*victim).openGates},
	{"annotations replaced", (*victim).replaceAnnotations},
	{"failure unblocked", (*victim).unblock},
}

// contests are made only at the beginning: the longer a written value has stayed before
// it is overwritten, the longer the controller waits until it trusts a target again.
var contests = []move{
	{"tag reverted", (*victim).revertTag},
	{"substitute changed", (*victim).changeSubstitute},
}

func (v *victim) revertTag() {
	repository := v.OCIRepository("")
	v.Change(repository, func() {
		if repository.Spec.Reference != nil {
			repository.Spec.Reference.Tag = v.any()
		}
	})
}

func (v *victim) changeSubstitute() {
	kustomization := v.Kustomization()
	v.Change(kustomization, func() {
		if kustomization.Spec.PostBuild != nil {
			kustomization.Spec.PostBuild.Substitute["VERSION"] = v.any()
		}
	})
}

func (v *victim) flapHealth() {
	states := []v1alpha1.HealthStatus{v1alpha1.HealthStatusHealthy, v1alpha1.HealthStatusHealthy, v1alpha1.HealthStatusPending, v1alpha1.HealthStatusUnhealthy}
	v.saysOf(states[v.random.IntN(len(states))])
}

// saysOf writes the status of the HealthCheck in the place of its controller, which
// writes only changes.
func (v *victim) saysOf(status v1alpha1.HealthStatus) {
	check := v.HealthCheck()
	v.Read(check)
	if check.Status.Status == status {
		return
	}
	v.ChangeStatus(check, func() {
		check.Status.Status = status
		if status == v1alpha1.HealthStatusUnhealthy {
			check.Status.LastErrorTime = &metav1.Time{Time: time.Now()}
		}
	})
}

// removeMarks removes all annotations of the HealthCheck.
func (v *victim) removeMarks() {
	check := v.HealthCheck()
	v.Change(check, func() { check.Annotations = nil })
}

// pushAgain pushes other content under a tag.
func (v *victim) pushAgain() {
	again := v.ConfigRelease(v.any())
	again.Annotations = map[string]string{"org.opencontainers.image.title": fmt.Sprint(v.random.Int64())}
	v.Push(again)
	v.Scan()
}

// movePolicyBack sets the ImagePolicy to an older release, until the next scan that finds
// something.
func (v *victim) movePolicyBack() {
	policy := v.ImagePolicy("")
	v.Read(policy)
	if policy.Status.LatestRef == nil {
		return
	}
	v.ChangeStatus(policy, func() {
		if policy.Status.LatestRef != nil {
			policy.Status.LatestRef.Tag, policy.Status.LatestRef.Digest = v.any(), ""
		}
	})
}

// recreate deletes an object, and creates it again after it is deleted.
func (v *victim) recreate(object client.Object) {
	v.T.Helper()
	v.Delete(object.DeepCopyObject().(client.Object))
	env.Eventually(v.T, fmt.Sprintf("%T created anew", object), func() (bool, string) {
		err := v.Plane.Client().Create(v.T.Context(), object.DeepCopyObject().(client.Object))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			v.T.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}

func (v *victim) recreateKustomization() {
	kustomization := v.Kustomization()
	kustomization.Annotations = map[string]string{
		v1alpha1.SubstituteAnnotationPrefix + "VERSION" + v1alpha1.SubstituteAnnotationSuffix: v.Name,
	}
	v.recreate(kustomization)
}

func (v *victim) recreateCheck() {
	check, class := v.HealthCheck(), "example"
	check.Spec.Class, check.Annotations = &class, nil
	v.recreate(check)
}

func (v *victim) closeGate() {
	passing := false
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, GenerateName: "gate-"}}
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: v.Name}, &passing
	v.Create(gate)
}

func (v *victim) openGates() {
	gates := &v1alpha1.RolloutGate{}
	if err := v.Plane.Client().DeleteAllOf(v.T.Context(), gates, client.InNamespace(v.Namespace)); err != nil {
		v.T.Fatal(err)
	}
}

// replaceAnnotations replaces all requests of users with odd requests.
func (v *victim) replaceAnnotations() {
	odd := []map[string]string{
		nil,
		{v1alpha1.ForceDeployAnnotation: "9.9.9"},
		{v1alpha1.BypassGatesAnnotation: v.any()},
		{v1alpha1.UnblockFailedAnnotation: "perhaps"},
		{v1alpha1.RetryAnnotation: "now"},
	}
	rollout := v.Rollout()
	v.Change(rollout, func() { rollout.Annotations = odd[v.random.IntN(len(odd))] })
}

func (v *victim) unblock() { v.Ask(v1alpha1.UnblockFailedAnnotation, "true") }

// SPDX-License-Identifier: Apache-2.0

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

func narrateDeployment(before, after *appsv1.Deployment) []line {
	if isMember(after) {
		return narrateMember(before, after)
	}
	var lines []line
	switch was, is := imageOf(before), imageOf(after); {
	case was == "":
		lines = append(lines, says(deployment, plain, "is created, to run %s", is))
	case was != is:
		lines = append(lines, says(deployment, plain, "begins to replace its pods by those of %s", is))
	}
	if ready := updatedAndReady(after); ready > updatedAndReady(before) {
		lines = append(lines, says(deployment, plain, "runs %s in all its pods, and %d of %d are ready", imageOf(after), ready, wanted(after)))
	}
	if message := givenUp(after); message != "" && givenUp(before) == "" {
		lines = append(lines, says(deployment, bad, "gives up: %s", message))
	}
	return lines
}

func imageOf(d *appsv1.Deployment) string {
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		return containers[0].Image
	}
	return ""
}

// updatedAndReady returns the number of pods of the newest version, once there are no
// others and all of them are ready. It returns 0 before.
func updatedAndReady(d *appsv1.Deployment) int32 {
	s := d.Status
	done := s.ObservedGeneration == d.Generation && s.UpdatedReplicas == wanted(d) &&
		s.Replicas == s.UpdatedReplicas && s.ReadyReplicas == s.UpdatedReplicas
	if !done {
		return 0
	}
	return s.UpdatedReplicas
}

func wanted(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func givenUp(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// narrateEvent describes the warnings about an object. The objects themselves show normal
// changes and failed bakes.
func narrateEvent(before client.Object, after *corev1.Event) []line {
	if before != nil || after.Type != corev1.EventTypeWarning || after.Reason == v1alpha1.BakeTimeFailedReason {
		return nil
	}
	return []line{says(actor(after.InvolvedObject.Kind), bad, "warns, %s: %s", after.Reason, after.Message)}
}

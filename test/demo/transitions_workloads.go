// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// isMember reports whether a Deployment is one of several that roll out in turn.
func isMember(d *appsv1.Deployment) bool { return d.Labels[scenario.MemberLabel] != "" }

// narrateMember describes a Deployment's new image, whether it has to wait, and when it
// is done.
func narrateMember(before, after *appsv1.Deployment) []line {
	var lines []line
	was, is := imageIn(before.Spec.Template), imageIn(after.Spec.Template)
	switch {
	case was != is && after.Spec.Paused:
		lines = append(lines, says(deployment, plain, "%s is to run %s, and held until its turn", after.Name, is))
	case was != is:
		lines = append(lines, says(deployment, plain, "%s is to run %s", after.Name, is))
	case before.Spec.Paused && !after.Spec.Paused:
		lines = append(lines, says(deployment, plain, "%s is unpaused", after.Name))
	}
	return append(lines, narrateState(deployment, after.Name, is, workload.Deployment(before), workload.Deployment(after))...)
}

// narrateZone describes a StatefulSet's new image and how many of its pods are replaced.
func narrateZone(before, after *appsv1.StatefulSet) []line {
	var lines []line
	was, is := imageIn(before.Spec.Template), imageIn(after.Spec.Template)
	switch was {
	case is:
	case "":
		lines = append(lines, says(statefulSet, plain, "%s is created, to run %s", after.Name, is))
	default:
		lines = append(lines, says(statefulSet, plain, "%s is to run %s; its pods stay until they are replaced", after.Name, is))
	}
	if count := after.Status.UpdatedReplicas; was != "" && count > before.Status.UpdatedReplicas && count < *after.Spec.Replicas {
		lines = append(lines, says(statefulSet, plain, "%s has %d of %d pods of the new revision", after.Name, count, *after.Spec.Replicas))
	}
	return append(lines, narrateState(statefulSet, after.Name, is, workload.StatefulSet(before), workload.StatefulSet(after))...)
}

// narrateState reports when a workload is done and when it has failed.
func narrateState(who actor, name, image string, was, is workload.State) []line {
	switch {
	case was.Phase == is.Phase:
		return nil
	case is.Phase == workload.Current:
		return []line{says(who, good, "%s runs %s in all its pods", name, image)}
	case is.Phase == workload.Failed:
		return []line{says(who, bad, "%s gives up: %s", name, is.Message)}
	}
	return nil
}

func imageIn(template corev1.PodTemplateSpec) string {
	if len(template.Spec.Containers) == 0 {
		return ""
	}
	return template.Spec.Containers[0].Image
}

// narrateCoordination reports which Deployments get a turn.
func narrateCoordination(before, after *coordinationv1.DeploymentCoordination) []line {
	var lines []line
	if len(after.Status.Active()) == 0 && len(before.Status.Active()) > 0 {
		lines = append(lines, says(coordination, good, "has had everybody rolled out"))
	}
	for _, active := range after.Status.Active() {
		if !before.Status.HasTurn(active) {
			lines = append(lines, says(coordination, plain, "gives the turn to %s", nameIn(active)))
		}
	}
	if stalled := stalledBy(after); stalled != "" && stalledBy(before) == "" {
		lines = append(lines, says(coordination, bad, "stops: %s", stalled))
	}
	return lines
}

func nameIn(key string) string {
	_, name, _ := strings.Cut(key, "/")
	return name
}

func stalledBy(c *coordinationv1.DeploymentCoordination) string {
	if s := apimeta.FindStatusCondition(c.Status.Conditions, coordinationv1.StalledCondition); s != nil {
		return s.Message
	}
	return ""
}

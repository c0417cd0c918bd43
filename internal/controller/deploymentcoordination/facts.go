// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"cmp"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// Reasons that Kubernetes sets in the condition Progressing. Kubernetes exports none of
// them.
const (
	newReplicaSetAvailable   = "NewReplicaSetAvailable"
	deploymentPaused         = "DeploymentPaused"
	deploymentResumed        = "DeploymentResumed"
	progressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// factsOf returns the facts about a Deployment and its ReplicaSets that the plan needs.
// The Deployment must be trimmed.
func factsOf(d *appsv1.Deployment, sets []replicaSet) deployments.Deployment {
	facts := deployments.Deployment{
		Key:    client.ObjectKeyFromObject(d).String(),
		UID:    d.UID,
		Labels: d.Labels,

		Generation:         d.Generation,
		ObservedGeneration: d.Status.ObservedGeneration,

		Paused:     d.Spec.Paused,
		HeldBy:     d.Annotations[coordinationv1.HeldByAnnotation],
		UserPaused: d.Annotations[coordinationv1.RolloutPausedAnnotation] == coordinationv1.RolloutPausedValue,
		Order:      d.Annotations[coordinationv1.OrderAnnotation],
		AppliedBy:  appliedBy(d),
		PausedBy:   pausedBy(d),

		Template: d.Spec.Template.Name,
		Replicas: ptr.Deref(d.Spec.Replicas, 1),

		Unfinished:        unfinished(d),
		RolledOut:         rolledOut(d),
		Available:         isTrue(conditionOf(d, appsv1.DeploymentAvailable)),
		UpdatedReplicas:   d.Status.UpdatedReplicas,
		AvailableReplicas: d.Status.AvailableReplicas,

		Failure:          failureOf(d),
		ProgressDeadline: progressDeadline(d),
	}
	facts.TemplateHasSet, facts.OthersUp = compare(facts.Template, sets)
	return facts
}

// compare looks for a template among the ReplicaSets of its Deployment. If several have
// the template, the oldest is the Deployment's, as in Kubernetes; the rest are others.
func compare(template string, sets []replicaSet) (has, othersUp bool) {
	slices.SortFunc(sets, func(a, b replicaSet) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	for _, set := range sets {
		switch {
		case !has && set.template == template:
			has = true
		case set.replicas > 0:
			othersUp = true
		}
	}
	return has, othersUp
}

func conditionOf(d *appsv1.Deployment, of appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == of {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

func isTrue(c *appsv1.DeploymentCondition) bool {
	return c != nil && c.Status == corev1.ConditionTrue
}

// unfinished reports whether Kubernetes has begun to roll out the Deployment and has not
// reported it as complete. The reason does not change when a Pod fails later, or when
// replicas are added or removed.
func unfinished(d *appsv1.Deployment) bool {
	progressing := conditionOf(d, appsv1.DeploymentProgressing)
	if d.Spec.Paused || progressing == nil {
		return false
	}
	switch progressing.Reason {
	case newReplicaSetAvailable, deploymentPaused, deploymentResumed:
		return false
	}
	return true
}

// rolledOut reports whether all wanted replicas have the template and are available, and
// there are no others. A paused Deployment is never rolled out, even if it looks so:
// Kubernetes has not been asked yet.
func rolledOut(d *appsv1.Deployment) bool {
	return !d.Spec.Paused && workload.Deployment(d).Phase == workload.Current
}

func failureOf(d *appsv1.Deployment) *deployments.Failure {
	progressing := conditionOf(d, appsv1.DeploymentProgressing)
	if progressing == nil || progressing.Reason != progressDeadlineExceeded {
		return nil
	}
	return &deployments.Failure{Message: progressing.Message, At: progressing.LastUpdateTime.Time}
}

// progressDeadline returns zero if Kubernetes never gives a rollout up.
func progressDeadline(d *appsv1.Deployment) time.Duration {
	seconds := d.Spec.ProgressDeadlineSeconds
	if seconds == nil || *seconds == math.MaxInt32 {
		return 0
	}
	return time.Duration(*seconds) * time.Second
}

// Labels that Flux sets on the objects that it applies.
const (
	kustomizationName      = "kustomize.toolkit.fluxcd.io/name"
	kustomizationNamespace = "kustomize.toolkit.fluxcd.io/namespace"
	helmReleaseName        = "helm.toolkit.fluxcd.io/name"
	helmReleaseNamespace   = "helm.toolkit.fluxcd.io/namespace"
)

func appliedBy(d *appsv1.Deployment) string {
	switch {
	case d.Labels[kustomizationName] != "":
		return "Kustomization " + d.Labels[kustomizationNamespace] + "/" + d.Labels[kustomizationName]
	case d.Labels[helmReleaseName] != "":
		return "HelmRelease " + d.Labels[helmReleaseNamespace] + "/" + d.Labels[helmReleaseName]
	}
	return ""
}

// pausedBy returns the field manager that owns spec.paused, if it is not this controller.
// The managedFields of a trimmed Deployment contain only owners of spec.paused.
func pausedBy(d *appsv1.Deployment) string {
	for _, entry := range d.ManagedFields {
		if entry.Manager != write.FieldManager {
			return entry.Manager
		}
	}
	return ""
}

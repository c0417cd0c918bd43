// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const digest = "@sha256:0123456789abcdef0123456789abcdef"

func TestNarrate(t *testing.T) {
	tests := map[string]struct {
		before, after client.Object
		want          []line
	}{
		"a promotion is shown with its reason and what it waits for": {
			before: &v1alpha1.Rollout{},
			after:  promoted(1, "1.0.0", v1alpha1.BakeDeploying, "waiting for Flux"),
			want: []line{
				{rollout, plain, "promotes 1.0.0 (number 1): because"},
				{rollout, plain, "1.0.0 is Deploying: waiting for Flux"},
			},
		},
		"a version that is promoted again is another promotion": {
			before: promoted(1, "1.0.0", v1alpha1.BakeSucceeded, "healthy"),
			after:  promoted(2, "1.0.0", v1alpha1.BakeDeploying, "waiting for Flux"),
			want: []line{
				{rollout, plain, "promotes 1.0.0 (number 2): because"},
				{rollout, plain, "1.0.0 is Deploying: waiting for Flux"},
			},
		},
		"the evidence is shown before what it leads to": {
			before: promoted(1, "1.0.0", v1alpha1.BakeDeploying, "waiting for Flux"),
			after:  applied(promoted(1, "1.0.0", v1alpha1.BakeInProgress, "baking for 8s")),
			want: []line{
				{rollout, plain, "sees it applied: 2 of 2 targets report it"},
				{rollout, plain, "1.0.0 is InProgress: baking for 8s"},
			},
		},
		"a bake that succeeds": {
			before: promoted(1, "1.0.0", v1alpha1.BakeInProgress, "baking"),
			after:  promoted(1, "1.0.0", v1alpha1.BakeSucceeded, "healthy for 8s"),
			want:   []line{{rollout, good, "1.0.0 is Succeeded: healthy for 8s"}},
		},
		"a bake that fails": {
			before: promoted(1, "1.0.0", v1alpha1.BakeDeploying, "waiting"),
			after:  promoted(1, "1.0.0", v1alpha1.BakeFailed, "HealthCheck demo/shop: no"),
			want:   []line{{rollout, bad, "1.0.0 is Failed: HealthCheck demo/shop: no"}},
		},
		"a candidate that waits is shown by Ready": {
			before: promoted(1, "1.0.0", v1alpha1.BakeFailed, "no"),
			after:  ready(promoted(1, "1.0.0", v1alpha1.BakeFailed, "no"), "1.0.0: no; 1.0.1 waits: for you"),
			want:   []line{{rollout, plain, "1.0.1 waits: for you (Ready=False, BakeTimeFailed)"}},
		},
		"what a candidate waits for is shown once": {
			before: ready(promoted(1, "1.0.0", v1alpha1.BakeInProgress, "baking"), "1.0.0: baking; 1.0.1 waits: for you"),
			after:  ready(promoted(1, "1.0.0", v1alpha1.BakeFailed, "no"), "1.0.0: no; 1.0.1 waits: for you"),
			want:   []line{{rollout, bad, "1.0.0 is Failed: no"}},
		},
		"Ready that repeats the bake is not shown twice": {
			before: promoted(1, "1.0.0", v1alpha1.BakeFailed, "no"),
			after:  ready(promoted(1, "1.0.0", v1alpha1.BakeFailed, "no"), "1.0.0: no"),
		},
		"a Rollout that only counts its targets is silent": {
			before: promoted(1, "1.0.0", v1alpha1.BakeDeploying, "waiting"),
			after:  promoted(1, "1.0.0", v1alpha1.BakeDeploying, "waiting"),
		},
		"an unhealthy check": {
			before: check(v1alpha1.HealthStatusPending, "waiting"),
			after:  check(v1alpha1.HealthStatusUnhealthy, "Failed: Deployment demo/shop"),
			want:   []line{{healthCheck, bad, "Unhealthy: Failed: Deployment demo/shop"}},
		},
		"a healthy check": {
			after: check(v1alpha1.HealthStatusHealthy, "applied"),
			want:  []line{{healthCheck, good, "Healthy: applied"}},
		},
		"a policy names a release": {
			before: policy("1.0.0"), after: policy("1.1.0"),
			want: []line{{imagePolicy, plain, "names 1.1.0 as the latest release"}},
		},
		"a policy that is scanned again is silent": {before: policy("1.0.0"), after: policy("1.0.0")},
		"a source is set to a tag": {
			before: source("1.0.0", "1.0.0"+digest), after: source("1.1.0", "1.0.0"+digest),
			want: []line{{ociRepository, plain, "is set to 1.1.0 (spec.ref.tag)"}},
		},
		"a source has pulled": {
			before: source("1.1.0", "1.0.0"+digest), after: source("1.1.0", "1.1.0"+digest),
			want: []line{{ociRepository, plain, "has pulled 1.1.0@sha256:0123456789ab"}},
		},
		"a source with the first tag has nothing to complain about yet": {
			after: &sourcev1.OCIRepository{
				Spec:   sourcev1.OCIRepositorySpec{Reference: &sourcev1.OCIRepositoryRef{Tag: scenario.FirstTag}},
				Status: sourcev1.OCIRepositoryStatus{Conditions: notReady("OCIPullFailed")},
			},
		},
		"a Kustomization has applied": {
			before: &kustomizev1.Kustomization{},
			after:  &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{LastAppliedRevision: "1.1.0" + digest}},
			want:   []line{{kustomization, plain, "has applied 1.1.0@sha256:0123456789ab"}},
		},
		"a Kustomization that fails": {
			before: &kustomizev1.Kustomization{},
			after:  &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{Conditions: notReady("BuildFailed")}},
			want:   []line{{kustomization, bad, "BuildFailed: no"}},
		},
		"a Kustomization at work is silent": {
			before: &kustomizev1.Kustomization{},
			after:  &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{Conditions: notReady(meta.ProgressingReason)}},
		},
		"a first Deployment": {
			after: pods("shop:1", 0, ""),
			want:  []line{{deployment, plain, "is created, to run shop:1"}},
		},
		"a Deployment that is updated and becomes ready": {
			before: pods("shop:1", 2, ""), after: pods("shop:2", 0, ""),
			want: []line{{deployment, plain, "begins to replace its pods by those of shop:2"}},
		},
		"a Deployment that is ready": {
			before: pods("shop:2", 1, ""), after: pods("shop:2", 2, ""),
			want: []line{{deployment, plain, "runs shop:2 in all its pods, and 2 of 2 are ready"}},
		},
		"a Deployment that gives up": {
			before: pods("shop:2", 1, ""), after: pods("shop:2", 1, "too slow"),
			want: []line{{deployment, bad, "gives up: too slow"}},
		},
		"a Deployment that has to wait for its turn": {
			before: member("1", false, 2), after: member("2", true, 0),
			want: []line{{deployment, plain, "web is to run web:2, and held until its turn"}},
		},
		"a Deployment whose turn it is": {
			before: member("2", true, 0), after: member("2", false, 0),
			want: []line{{deployment, plain, "web is unpaused"}},
		},
		"a Deployment that has had its turn": {
			before: member("2", false, 1), after: member("2", false, 2),
			want: []line{{deployment, good, "web runs web:2 in all its pods"}},
		},
		"the turn passes": {
			before: turn("demo/orders", ""), after: turn("demo/web", ""),
			want: []line{{coordination, plain, "gives the turn to web"}},
		},
		"the last turn is over": {
			before: turn("demo/web", ""), after: turn("", ""),
			want: []line{{coordination, good, "has had everybody rolled out"}},
		},
		"nobody goes on": {
			before: turn("demo/web", ""), after: turn("demo/web", "web is too slow"),
			want: []line{{coordination, bad, "stops: web is too slow"}},
		},
		"a StatefulSet is given another version": {
			before: zone("1", 2), after: zone("2", 0),
			want: []line{{statefulSet, plain, "store-a is to run store-a:2; its pods stay until they are replaced"}},
		},
		"a StatefulSet of which some pods are replaced": {
			before: zone("2", 0), after: zone("2", 1),
			want: []line{{statefulSet, plain, "store-a has 1 of 2 pods of the new revision"}},
		},
		"a StatefulSet of which all pods are replaced": {
			before: zone("2", 1), after: zone("2", 2),
			want: []line{{statefulSet, good, "store-a runs store-a:2 in all its pods"}},
		},
		"a warning": {
			after: event(corev1.EventTypeWarning, "HealthCheckBlocking"),
			want:  []line{{rollout, bad, "warns, HealthCheckBlocking: look"}},
		},
		"a warning that comes again is shown once": {
			before: event(corev1.EventTypeWarning, "HealthCheckBlocking"),
			after:  event(corev1.EventTypeWarning, "HealthCheckBlocking"),
		},
		"a failed bake was shown already": {after: event(corev1.EventTypeWarning, v1alpha1.BakeTimeFailedReason)},
		"what is normal is silent":        {after: event(corev1.EventTypeNormal, "Scheduled")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := describe(test.before, test.after)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(line{})); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func promoted(id int64, tag string, state v1alpha1.BakeStatus, why string) *v1alpha1.Rollout {
	because := "because"
	return &v1alpha1.Rollout{Status: v1alpha1.RolloutStatus{History: []v1alpha1.DeploymentHistoryEntry{{
		ID: &id, Version: v1alpha1.VersionInfo{Tag: tag}, Message: &because, BakeStatus: &state, BakeStatusMessage: &why,
	}}}}
}

func applied(r *v1alpha1.Rollout) *v1alpha1.Rollout {
	r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
		Type: v1alpha1.TargetsAppliedCondition, Status: metav1.ConditionTrue, Message: "2 of 2 targets report it",
	})
	return r
}

func ready(r *v1alpha1.Rollout, message string) *v1alpha1.Rollout {
	r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.BakeTimeFailedReason, Message: message,
	})
	return r
}

func check(status v1alpha1.HealthStatus, message string) *v1alpha1.HealthCheck {
	return &v1alpha1.HealthCheck{Status: v1alpha1.HealthCheckStatus{Status: status, Message: &message}}
}

func policy(tag string) *imagev1.ImagePolicy {
	return &imagev1.ImagePolicy{Status: imagev1.ImagePolicyStatus{LatestRef: &imagev1.ImageRef{Tag: tag}}}
}

func source(tag, revision string) *sourcev1.OCIRepository {
	return &sourcev1.OCIRepository{
		Spec:   sourcev1.OCIRepositorySpec{Reference: &sourcev1.OCIRepositoryRef{Tag: tag}},
		Status: sourcev1.OCIRepositoryStatus{Artifact: &meta.Artifact{Revision: revision}},
	}
}

func notReady(reason string) []metav1.Condition {
	return []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "no"}}
}

// pods returns a Deployment with two pods, some of which are updated and ready.
func pods(image string, updated int32, givenUp string) *appsv1.Deployment {
	replicas := int32(2)
	d := &appsv1.Deployment{
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}},
		}},
		Status: appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: replicas},
	}
	if givenUp != "" {
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: givenUp},
		}
	}
	return d
}

func event(kind, reason string) *corev1.Event {
	return &corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: string(rollout)}, Type: kind, Reason: reason, Message: "look",
	}
}

// fleet contains the workloads of the second scenario.
var fleet = scenario.Fleet{App: scenario.NewApp("demo", "shop")}

// member returns a Deployment that takes turns. Some of its two pods are updated.
func member(version string, paused bool, updated int32) *appsv1.Deployment {
	d := fleet.Deployment("web", "web:"+version)
	d.Spec.Paused = paused
	d.Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: updated, ReadyReplicas: 2, AvailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
	}}
	return d
}

func zone(version string, updated int32) *appsv1.StatefulSet {
	s := fleet.StatefulSet("store-a", "store-a:"+version)
	s.Status = appsv1.StatefulSetStatus{Replicas: 2, UpdatedReplicas: updated, ReadyReplicas: 2, AvailableReplicas: 2}
	return s
}

func turn(of, stalled string) *coordinationv1.DeploymentCoordination {
	c := fleet.Coordination()
	c.Status.ActiveDeployment = of
	if stalled != "" {
		c.Status.Conditions = []metav1.Condition{{Type: coordinationv1.StalledCondition, Status: metav1.ConditionTrue, Message: stalled}}
	}
	return c
}

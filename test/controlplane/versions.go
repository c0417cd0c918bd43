// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A pod has a version if the tag of one of its images, or its label
// app.kubernetes.io/version, is that version. Stages define what happens to the new pods
// of a version. They take precedence over the stage that makes pods Ready: that stage has
// no weight. Pods that are already Ready stay as they are. FixVersion removes these
// stages. All of these functions return after KWOK has seen the change. Therefore the
// change applies to every pod that is created afterwards.

// BreakVersion makes new pods of a version stay unready permanently, as if their image
// could not be pulled.
func (c *ControlPlane) BreakVersion(ctx context.Context, version string) error {
	return c.createVersionStage(ctx, "broken", version, brokenStage)
}

// SlowVersion makes new pods of a version Ready only after a delay. The delay starts
// again whenever something changes a waiting pod.
func (c *ControlPlane) SlowVersion(ctx context.Context, version string, delay time.Duration) error {
	stage, err := stageOf(ctx, readyStageFile)
	if err != nil {
		return err
	}
	if err := setDelay(stage, delay); err != nil {
		return err
	}
	return c.createStageFor(ctx, "slow", version, stage)
}

// CrashVersion makes the containers of new pods of a version crash again and again, as
// soon as they run. They are in CrashLoopBackOff, and their restarts are counted up to
// MaxRestarts.
func (c *ControlPlane) CrashVersion(ctx context.Context, version string) error {
	if err := c.createVersionStage(ctx, "crashed", version, crashedStage); err != nil {
		return err
	}
	return c.createVersionStage(ctx, "crashing", version, crashingStage)
}

// MaxRestarts is the number of restarts after which KWOK no longer restarts a crashing
// container. Otherwise KWOK would write forever. The container still waits with
// CrashLoopBackOff.
const MaxRestarts = 5

// restartDelay is how long a crashed container waits for its restart.
const restartDelay = 500 * time.Millisecond

// FixVersion makes a version behave like any other: its waiting and crashing pods become
// Ready.
func (c *ControlPlane) FixVersion(ctx context.Context, version string) error {
	for _, kind := range []string{"broken", "slow", "crashed", "crashing"} {
		stage := &unstructured.Unstructured{}
		stage.SetAPIVersion("kwok.x-k8s.io/v1alpha1")
		stage.SetKind("Stage")
		stage.SetName(versionStageName(kind, version))
		if err := c.client.Delete(ctx, stage); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("fix version %s: %w", version, err)
		}
	}
	if err := c.awaitStages(ctx); err != nil {
		return err
	}
	return c.wakeUnreadyPods(ctx)
}

func (c *ControlPlane) createVersionStage(ctx context.Context, kind, version, manifest string) error {
	stage, err := parseStage([]byte(manifest))
	if err != nil {
		return err
	}
	return c.createStageFor(ctx, kind, version, stage)
}

// createStageFor limits a stage to the pods of a version.
func (c *ControlPlane) createStageFor(ctx context.Context, kind, version string, stage *unstructured.Unstructured) error {
	stage.SetName(versionStageName(kind, version))
	expressions, _, err := unstructured.NestedSlice(stage.Object, "spec", "selector", "matchExpressions")
	if err != nil {
		return fmt.Errorf("read the selector of a stage: %w", err)
	}
	expressions = append(expressions, map[string]any{"key": versionsOfPod, "operator": "In", "values": []any{version}})
	if err := unstructured.SetNestedSlice(stage.Object, expressions, "spec", "selector", "matchExpressions"); err != nil {
		return fmt.Errorf("limit a stage to version %s: %w", version, err)
	}
	if err := unstructured.SetNestedField(stage.Object, int64(1), "spec", "weight"); err != nil {
		return fmt.Errorf("give a stage weight: %w", err)
	}
	if err := c.createStage(ctx, stage); err != nil {
		return err
	}
	return c.awaitStages(ctx)
}

// versionsOfPod is an expression that returns the versions of a pod.
const versionsOfPod = `(.spec.containers[].image | sub("@.*$"; "") | split(":") | last), (.metadata.labels["app.kubernetes.io/version"] // "")`

// versionStageName does not contain the version: a tag may have characters that are not
// allowed in the name of an object.
func versionStageName(kind, version string) string {
	return fmt.Sprintf("pod-%s-%x", kind, sha256.Sum256([]byte(version)))[:32]
}

// wakeUnreadyPods touches the waiting pods, because KWOK looks at a pod only when
// something happens to it.
func (c *ControlPlane) wakeUnreadyPods(ctx context.Context) error {
	var pods corev1.PodList
	if err := c.client.List(ctx, &pods); err != nil {
		return fmt.Errorf("list the pods to fix: %w", err)
	}
	for i := range pods.Items {
		if err := c.wake(ctx, &pods.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("fix the pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}

// wake resets the status of a crashing pod and touches a waiting pod.
func (c *ControlPlane) wake(ctx context.Context, pod *corev1.Pod) error {
	before := pod.DeepCopy()
	switch {
	case isCrashLooping(pod):
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		return c.client.Status().Patch(ctx, pod, client.MergeFrom(before))
	case pod.Status.Phase == corev1.PodPending:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "controlplane/fixed-at", time.Now().Format(time.RFC3339Nano))
		return c.client.Patch(ctx, pod, client.MergeFrom(before))
	}
	return nil
}

func isCrashLooping(pod *corev1.Pod) bool {
	for _, container := range pod.Status.ContainerStatuses {
		if w := container.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
			return true
		}
	}
	return false
}

// brokenStage leaves the pod Pending. After its removal the stage that makes pods Ready
// therefore applies. It renders the same status each time. Otherwise KWOK would write
// forever.
const brokenStage = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: DoesNotExist
    - key: '.status.phase'
      operator: In
      values: [Pending]
  next:
    statusTemplate: |
      {{ $now := .metadata.creationTimestamp }}
      conditions:
      - lastTransitionTime: {{ $now | Quote }}
        status: "True"
        type: Initialized
      - lastTransitionTime: {{ $now | Quote }}
        message: no container of this version ever becomes ready
        reason: ContainersNotReady
        status: "False"
        type: Ready
      - lastTransitionTime: {{ $now | Quote }}
        message: no container of this version ever becomes ready
        reason: ContainersNotReady
        status: "False"
        type: ContainersReady
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        imageID: ""
        name: {{ .name | Quote }}
        ready: false
        restartCount: 0
        started: false
        state:
          waiting:
            message: this version is broken
            reason: ImagePullBackOff
      {{ end }}
      phase: Pending
`

// crashedStage makes the containers of a pod run and crash for the first time.
var crashedStage = crashStage("Pending", 0, "", `1`)

// crashingStage restarts crashed containers, which crash again.
var crashingStage = crashStage("Running", restartDelay, `
    - key: '(.status.containerStatuses // [])[] | select(.state.waiting.reason == "CrashLoopBackOff") | .restartCount | tostring'
      operator: In
      values: [`+numbersBelow(MaxRestarts)+`]`, `{{ add 1 (index $.status.containerStatuses 0).restartCount }}`)

func crashStage(phase string, delay time.Duration, condition, restarts string) string {
	return strings.NewReplacer("PHASE", phase, "DELAY", strconv.FormatInt(delay.Milliseconds(), 10),
		"CONDITION", condition, "RESTARTS", restarts).Replace(`
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: DoesNotExist
    - key: '.status.phase'
      operator: In
      values: [PHASE]CONDITION
  delay:
    durationMilliseconds: DELAY
  next:
    statusTemplate: |
      {{ $now := .metadata.creationTimestamp }}
      conditions:
      - lastTransitionTime: {{ $now | Quote }}
        status: "True"
        type: Initialized
      - lastTransitionTime: {{ $now | Quote }}
        reason: ContainersNotReady
        status: "False"
        type: Ready
      - lastTransitionTime: {{ $now | Quote }}
        reason: ContainersNotReady
        status: "False"
        type: ContainersReady
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        imageID: ""
        name: {{ .name | Quote }}
        ready: false
        restartCount: RESTARTS
        started: false
        state:
          waiting:
            message: back-off restarting failed container
            reason: CrashLoopBackOff
        lastState:
          terminated:
            exitCode: 1
            reason: Error
            startedAt: {{ $now | Quote }}
            finishedAt: {{ Now | Quote }}
      {{ end }}
      phase: Running
      startTime: {{ $now | Quote }}
`)
}

// numbersBelow returns the numbers from 1 to n-1 in quotes.
func numbersBelow(n int) string {
	quoted := make([]string, 0, n)
	for i := 1; i < n; i++ {
		quoted = append(quoted, strconv.Quote(strconv.Itoa(i)))
	}
	return strings.Join(quoted, ", ")
}

// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// deleteDelay keeps KWOK from deleting a pod twice by its name, the second time
// hitting the pod that a StatefulSet has made in its place.
const deleteDelay = 300 * time.Millisecond

// stageFiles are KWOK's own stages: nodes become and stay Ready, pods become
// Ready at once, pods of Jobs complete, deleted pods go.
var stageFiles = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
}

func (c *ControlPlane) installStages(ctx context.Context) error {
	source, err := parts.Source(ctx, parts.KWOK)
	if err != nil {
		return err
	}
	for _, file := range stageFiles {
		content, err := os.ReadFile(filepath.Join(source, "kustomize", "stage", filepath.FromSlash(file)))
		if err != nil {
			return fmt.Errorf("read a stage of KWOK: %w", err)
		}
		if err := c.createStage(ctx, content); err != nil {
			return err
		}
	}
	return nil
}

func (c *ControlPlane) createStage(ctx context.Context, content []byte) error {
	stage := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &stage.Object); err != nil {
		return fmt.Errorf("read a stage: %w", err)
	}
	if stage.GetName() == "pod-delete" {
		milliseconds := deleteDelay.Milliseconds()
		if err := unstructured.SetNestedField(stage.Object, milliseconds, "spec", "delay", "durationMilliseconds"); err != nil {
			return fmt.Errorf("delay the deletion of pods: %w", err)
		}
	}
	if err := c.client.Create(ctx, stage); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the stage %s: %w", stage.GetName(), err)
	}
	return nil
}

// BreakVersion makes new pods of a version stay unready for good, as if their
// image could not be pulled. A pod is of a version when the tag of one of its
// images or its label app.kubernetes.io/version says so. Pods that are Ready
// already stay as they are.
func (c *ControlPlane) BreakVersion(ctx context.Context, version string) error {
	manifest := strings.NewReplacer("NAME", brokenStageName(version), "VERSION", version).Replace(brokenStage)
	return c.createStage(ctx, []byte(manifest))
}

// brokenStageName has no part of the version in it: a tag may have letters that
// the name of an object must not.
func brokenStageName(version string) string {
	return fmt.Sprintf("pod-broken-%x", sha256.Sum256([]byte(version)))[:32]
}

// MendVersion takes BreakVersion back: pods that wait become Ready.
func (c *ControlPlane) MendVersion(ctx context.Context, version string) error {
	stage := &unstructured.Unstructured{}
	stage.SetAPIVersion("kwok.x-k8s.io/v1alpha1")
	stage.SetKind("Stage")
	stage.SetName(brokenStageName(version))
	if err := c.client.Delete(ctx, stage); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("mend version %s: %w", version, err)
	}
	return c.wakeUnreadyPods(ctx)
}

// wakeUnreadyPods touches the pods that wait, since KWOK looks at a pod only
// when something happens to it.
func (c *ControlPlane) wakeUnreadyPods(ctx context.Context) error {
	var pods corev1.PodList
	if err := c.client.List(ctx, &pods); err != nil {
		return fmt.Errorf("list the pods to mend: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodPending {
			continue
		}
		touch := client.MergeFrom(pod.DeepCopy())
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "controlplane/mended-at", time.Now().Format(time.RFC3339Nano))
		if err := c.client.Patch(ctx, pod, touch); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("mend the pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// brokenStage outweighs the stage that makes pods Ready, which has no weight.
// It leaves the pod Pending, so that the latter can take over once it is gone,
// and says the same whenever KWOK asks it, or KWOK would write for ever.
// Other ways to be broken, slow or crashing, would be other stages like it.
const brokenStage = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: NAME
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  weight: 1
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: DoesNotExist
    - key: '.status.phase'
      operator: In
      values: [Pending]
    - key: '(.spec.containers[].image | sub("@.*$"; "") | split(":") | last), (.metadata.labels["app.kubernetes.io/version"] // "")'
      operator: In
      values: ["VERSION"]
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

// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// awaitStages waits until KWOK acts on every stage that was created or deleted before.
// KWOK watches stages and pods separately. It may see a pod before a stage that was
// created earlier. It sees stages in order: once KWOK applies one more stage, to a pod
// that no other stage selects, it has seen the earlier stages.
func (c *ControlPlane) awaitStages(ctx context.Context) error {
	name := "canary-" + string(uuid.NewUUID())
	stage, err := parseStage([]byte(strings.ReplaceAll(canaryStage, "NAME", name)))
	if err != nil {
		return err
	}
	pod := canaryPod(name)
	err = errors.Join(c.createStage(ctx, stage), c.client.Create(ctx, pod))
	if err == nil {
		err = c.awaitCanary(ctx, stage, pod)
	}
	if err != nil {
		err = fmt.Errorf("wait until KWOK has seen the stages: %w", err)
	}
	gone := context.WithoutCancel(ctx)
	return errors.Join(err, client.IgnoreNotFound(c.client.Delete(gone, stage)),
		client.IgnoreNotFound(c.client.Delete(gone, pod, client.GracePeriodSeconds(0))))
}

// awaitCanary touches the stage and the pod until KWOK applies the stage to the pod.
func (c *ControlPlane) awaitCanary(ctx context.Context, stage client.Object, pod *corev1.Pod) error {
	return c.untilSeen(ctx, func(ctx context.Context, touches int) (bool, error) {
		err := errors.Join(c.touch(ctx, stage, touches), c.touch(ctx, pod, touches))
		return pod.Status.Reason == canaryReason, err
	})
}

// untilSeen touches objects until KWOK has seen them. KWOK looks at an object only when
// something happens to it. It may also mistake the stages in its store for the newest
// ones and not look again before another event: it compares the resourceVersion that its
// watch has seen, which is ahead of its store.
func (c *ControlPlane) untilSeen(ctx context.Context, touch func(ctx context.Context, touches int) (seen bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, canaryPatience)
	defer cancel()
	touches, pauses := 0, wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 8}
	return pauses.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		touches++
		return touch(ctx, touches)
	})
}

func (c *ControlPlane) touch(ctx context.Context, object client.Object, n int) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"controlplane/touched":%q}}}`, strconv.Itoa(n))
	return c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

// canaryPatience is how long KWOK may take to see a stage.
const canaryPatience = time.Minute

func canaryPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name, Labels: map[string]string{"canary": name}},
		Spec: corev1.PodSpec{
			NodeName:   nodeName,
			Containers: []corev1.Container{{Name: "canary", Image: "canary"}},
		},
	}
}

const canaryReason = "StagesSeen"

const canaryStage = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: NAME
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchLabels:
      canary: NAME
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: DoesNotExist
  weight: 1
  next:
    statusTemplate: |
      reason: ` + canaryReason + `
`

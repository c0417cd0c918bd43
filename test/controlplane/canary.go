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

// awaitStages waits until KWOK acts on every stage that was created or deleted
// before. It watches stages and pods separately, so a pod may come to it before the
// stage that was created first. Stages come in order: once KWOK acts on one more
// stage, on a pod that nothing else applies to, it has seen those before.
func (c *ControlPlane) awaitStages(ctx context.Context) error {
	name := "canary-" + string(uuid.NewUUID())
	stage, err := parseStage([]byte(strings.ReplaceAll(canaryStage, "NAME", name)))
	if err != nil {
		return err
	}
	pod := canaryPod(name)
	err = errors.Join(c.createStage(ctx, stage), c.client.Create(ctx, pod))
	if err == nil {
		err = c.awaitCanary(ctx, pod)
	}
	if err != nil {
		err = fmt.Errorf("wait until KWOK has seen the stages: %w", err)
	}
	gone := context.WithoutCancel(ctx)
	return errors.Join(err, client.IgnoreNotFound(c.client.Delete(gone, stage)),
		client.IgnoreNotFound(c.client.Delete(gone, pod, client.GracePeriodSeconds(0))))
}

// awaitCanary touches the pod until its stage is seen to apply: KWOK looks at a pod
// only when something happens to it.
func (c *ControlPlane) awaitCanary(ctx context.Context, pod *corev1.Pod) error {
	touched := 0
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		touched++
		touch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, strconv.Itoa(touched)))
		err := c.client.Patch(ctx, pod, touch)
		return pod.Status.Reason == canaryReason, err
	})
}

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

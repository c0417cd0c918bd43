// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// errNoReplica is returned when no pod becomes ready although all parts are healthy.
var errNoReplica = errors.New("no pod becomes ready")

// awaitReplica waits until the pod of a ReplicaSet becomes ready. Only then do all parts
// work: they say that they are healthy before they begin, and a part may end, or miss a
// stage or the node, after it has said so.
func (c *ControlPlane) awaitReplica(ctx context.Context) error {
	set := canaryReplicas("canary-" + string(uuid.NewUUID()))
	if err := c.client.Create(ctx, set); err != nil {
		return fmt.Errorf("create a pod to see that pods become ready: %w", err)
	}
	if err := c.awaitReady(ctx, set); err != nil {
		return fmt.Errorf("%w: %w\n%s", errNoReplica, err, c.describeWorkloads(context.WithoutCancel(ctx)))
	}
	return client.IgnoreNotFound(c.client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func canaryReplicas(name string) *appsv1.ReplicaSet {
	labels := map[string]string{"canary": name}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "canary", Image: "canary"}}},
			},
		},
	}
}

// awaitReady touches what KWOK has to see until the ReplicaSet has a ready pod.
func (c *ControlPlane) awaitReady(ctx context.Context, set *appsv1.ReplicaSet) error {
	stage, err := stageOf(ctx, readyStageFile)
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	return c.untilSeen(ctx, func(ctx context.Context, touches int) (bool, error) {
		err := errors.Join(c.touch(ctx, stage, touches), c.touch(ctx, node, touches), c.touchPods(ctx, set, touches),
			c.client.Get(ctx, client.ObjectKeyFromObject(set), set))
		return set.Status.ReadyReplicas > 0, err
	})
}

func (c *ControlPlane) touchPods(ctx context.Context, set *appsv1.ReplicaSet, touches int) error {
	var pods corev1.PodList
	if err := c.client.List(ctx, &pods, client.InNamespace(set.Namespace), client.MatchingLabels(set.Spec.Template.Labels)); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := c.touch(ctx, &pods.Items[i], touches); err != nil {
			return err
		}
	}
	return nil
}

// describeWorkloads returns what explains why no pod becomes ready: the conditions of the
// node and of the pods, and the end of the log of each part that has to do with them.
func (c *ControlPlane) describeWorkloads(ctx context.Context) string {
	var text strings.Builder
	node, pods := &corev1.Node{}, &corev1.PodList{}
	if err := errors.Join(c.client.Get(ctx, client.ObjectKey{Name: nodeName}, node), c.client.List(ctx, pods)); err != nil {
		fmt.Fprintln(&text, err)
	}
	fmt.Fprintf(&text, "node: %+v %+v\n", node.Spec.Taints, node.Status.Conditions)
	for i := range pods.Items {
		fmt.Fprintf(&text, "pod %s on %q: %+v\n", pods.Items[i].Name, pods.Items[i].Spec.NodeName, pods.Items[i].Status)
	}
	for _, name := range []parts.Name{parts.ControllerManager, parts.Scheduler, parts.KWOK} {
		part := c.Part(name)
		fmt.Fprintf(&text, "%s (running: %t):\n%s\n", name, part.Running(), part.logTail())
	}
	return text.String()
}

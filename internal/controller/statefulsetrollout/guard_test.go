// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
)

// guard intercepts the requests of controllers to the API server. At each deletion of a
// pod it verifies that the guarantees are kept at that moment. It counts by itself, and
// shares no code with the code under test.
type guard struct {
	// before is called before a pod is deleted, unless it is nil.
	before func(pod *corev1.Pod)
	// refuse is how many deletions fail before they reach the API server.
	refuse int

	mu       sync.Mutex
	deleted  []string
	uids     []types.UID
	breaches []string
}

// through returns a client whose deletions are verified.
func (g *guard) through(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return g.pass(ctx, o, func() error { return c.Delete(ctx, o, options...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, body client.Object, options ...client.SubResourceCreateOption) error {
			return g.pass(ctx, o, func() error { return c.SubResource(sub).Create(ctx, o, body, options...) })
		},
	})
}

// pass allows one deletion at a time. So no other deletion comes between the check and
// the deletion.
func (g *guard) pass(ctx context.Context, o client.Object, request func() error) error {
	pod := &corev1.Pod{}
	if err := testClient.Get(ctx, client.ObjectKeyFromObject(o), pod); err != nil {
		return request()
	}
	if g.before != nil {
		g.before(pod)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse > 0 {
		g.refuse--
		return errors.New("the network is away")
	}
	breach := g.inspect(ctx, pod)
	err := request()
	if err == nil {
		g.deleted = append(g.deleted, pod.Name)
		g.uids = append(g.uids, pod.UID)
		g.breaches = append(g.breaches, breach...)
	}
	return err
}

// inspect returns which guarantees the deletion of a pod breaks.
func (g *guard) inspect(ctx context.Context, pod *corev1.Pod) []string {
	var sets appsv1.StatefulSetList
	var pods corev1.PodList
	if err := testClient.List(ctx, &sets, client.InNamespace(pod.Namespace)); err != nil {
		return []string{err.Error()}
	}
	if err := testClient.List(ctx, &pods, client.InNamespace(pod.Namespace)); err != nil {
		return []string{err.Error()}
	}
	own := slices.IndexFunc(sets.Items, func(s appsv1.StatefulSet) bool { return owns(&s, pod) })
	if own < 0 {
		return []string{pod.Name + " belongs to no set"}
	}
	var breaches []string
	isDown := !ready(pod)
	for i := range sets.Items {
		set := &sets.Items[i]
		if set.Labels[rolloutgroup.Label] != sets.Items[own].Labels[rolloutgroup.Label] {
			continue
		}
		if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
			breaches = append(breaches, fmt.Sprintf("%s is deleted though %s has another strategy", pod.Name, set.Name))
		}
		up := readyPods(set, slices.DeleteFunc(slices.Clone(pods.Items), func(p corev1.Pod) bool { return p.UID == pod.UID }))
		down := *set.Spec.Replicas - up
		switch {
		case isDown:
		case i == own && down > limit(set):
			breaches = append(breaches, fmt.Sprintf("%s is deleted, which makes %d of %s unavailable", pod.Name, down, set.Name))
		case i != own && down > 0:
			breaches = append(breaches, fmt.Sprintf("%s is deleted while %d of %s are not ready", pod.Name, down, set.Name))
		}
	}
	return breaches
}

func owns(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return len(pod.OwnerReferences) == 1 && pod.OwnerReferences[0].UID == set.UID
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return pod.DeletionTimestamp == nil
		}
	}
	return false
}

// readyPods counts the pods that have been Ready for as long as the set requires.
func readyPods(set *appsv1.StatefulSet, pods []corev1.Pod) (n int32) {
	for i := range pods {
		if owns(set, &pods[i]) && ready(&pods[i]) && readyFor(&pods[i]) >= time.Duration(set.Spec.MinReadySeconds)*time.Second {
			n++
		}
	}
	return n
}

func readyFor(pod *corev1.Pod) time.Duration {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return time.Since(c.LastTransitionTime.Time)
		}
	}
	return 0
}

// limit returns the limit for the values that the tests use.
func limit(set *appsv1.StatefulSet) int32 {
	if set.Annotations[rolloutgroup.MaxUnavailableAnnotation] == "2" {
		return 2
	}
	return 1
}

// took returns the names of the pods that were deleted so far, in order.
func (g *guard) took() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.deleted)
}

// taken returns the UIDs of these pods, each once.
func (g *guard) taken() []types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(g.uids)))
}

// broken returns the guarantees that were broken so far.
func (g *guard) broken() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.breaches)
}

// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

const (
	// mostWorkloads is of how many workloads that are not as wanted the pods are looked at.
	mostWorkloads = 20
	// mostPods is how many pods of each are looked at.
	mostPods = 100
)

var (
	pods = &meta.RESTMapping{
		Resource: corev1.SchemeGroupVersion.WithResource("pods"), GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Scope: meta.RESTScopeNamespace,
	}
	replicaSets = &meta.RESTMapping{
		Resource: appsv1.SchemeGroupVersion.WithResource("replicasets"), GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		Scope: meta.RESTScopeNamespace,
	}
)

// lookAtPods completes the states of workloads that are not as wanted by what their newest
// pods show. Pods that cannot be read show nothing: then no deadline is a verdict.
func (r *reading) lookAtPods(ctx context.Context) {
	looked := 0
	for i := range r.seen {
		if r.seen[i].pods == nil {
			continue
		}
		if looked++; looked > mostWorkloads {
			r.seen[i].State = r.seen[i].WithoutPods(fmt.Sprintf("pods of at most %d workloads are read", mostWorkloads))
			continue
		}
		r.seen[i].State = r.byPods(ctx, r.seen[i])
	}
}

func (r *reading) byPods(ctx context.Context, of observation) workload.State {
	newest, err := r.newestPods(ctx, of.pods)
	if err == nil {
		return of.ByPods(newest, r.Now())
	}
	if r.err == nil && !apierrors.IsForbidden(err) {
		r.err = err
	}
	return of.WithoutPods(podsFailure(err))
}

// podsFailure says why pods could not be read, without details that differ from one attempt
// to the next.
func podsFailure(err error) string {
	if apierrors.IsForbidden(err) {
		return "let the role of this controller list pods and ReplicaSets"
	}
	return readFailure(pods.Resource.GroupResource(), err)
}

// newestPods returns pods of the newest revision of a workload.
func (r *reading) newestPods(ctx context.Context, of *workload.Pods) ([]corev1.Pod, error) {
	revision, selector := of.Revision, of.Selector
	switch of.Kind {
	case "Deployment":
		var err error
		if revision, err = r.newestHash(ctx, of); revision == "" {
			return nil, err
		}
		selector = having(selector, appsv1.DefaultDeploymentUniqueLabelKey, revision)
	case "StatefulSet":
		selector = having(selector, appsv1.ControllerRevisionHashLabelKey, revision)
	}
	var all []corev1.Pod
	err := r.readSome(ctx, pods, of.Namespace, selector, func(raw json.RawMessage) error {
		var pod corev1.Pod
		if err := json.Unmarshal(raw, &pod); err != nil {
			return fmt.Errorf("%w: %w", errUndecodable, err)
		}
		if all = append(all, *workload.ReducedPod(&pod)); len(all) == mostPods {
			return errEnough
		}
		return nil
	})
	return workload.Newest(of.Kind, revision, all), err
}

// newestHash returns the label of the pods of the newest ReplicaSet of a Deployment.
func (r *reading) newestHash(ctx context.Context, of *workload.Pods) (string, error) {
	hash := ""
	err := r.readSome(ctx, replicaSets, of.Namespace, of.Selector, func(raw json.RawMessage) error {
		var set metav1.PartialObjectMetadata
		if err := json.Unmarshal(raw, &set); err != nil {
			return fmt.Errorf("%w: %w", errUndecodable, err)
		}
		owner := metav1.GetControllerOf(&set)
		if owner == nil || owner.UID != of.UID || set.Annotations[workload.RevisionAnnotation] != of.Revision {
			return nil
		}
		hash = set.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		return errEnough
	})
	return hash, err
}

// errEnough ends a list.
var errEnough = errors.New("enough was read")

// readSome reads objects until do has enough.
func (r *reading) readSome(ctx context.Context, kind *meta.RESTMapping, namespace string, selector labels.Selector, do func(json.RawMessage) error) error {
	err := r.Objects.Select(ctx, kind, namespace, selector, mostPods, do)
	if err == nil || errors.Is(err, errEnough) {
		return nil
	}
	return fmt.Errorf("read %s in namespace %q: %w", kind.Resource.Resource, namespace, err)
}

// having returns the selector with one more label. A value that no label has is dropped:
// the pods that are read are compared once more.
func having(selector labels.Selector, key, value string) labels.Selector {
	label, err := labels.NewRequirement(key, selection.Equals, []string{value})
	if err != nil {
		return selector
	}
	return selector.Add(*label)
}

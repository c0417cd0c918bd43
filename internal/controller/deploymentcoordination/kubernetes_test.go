// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var runtimeConverter = runtime.DefaultUnstructuredConverter

// This file simulates the Deployment controller, one step at a time, with the clock of
// the env.

// observes lets Kubernetes observe a Deployment without rolling it out, as it does while
// the Deployment is paused: it only scales.
func (s *testEnv) observes(name string) {
	d := s.deployment(name)
	for _, set := range s.sets(d) {
		if *set.Spec.Replicas > 0 {
			s.scale(&set, *d.Spec.Replicas)
		}
	}
	s.say(name, func(st *appsv1.DeploymentStatus) {
		if d.Spec.Paused && progressing(st).Reason != progressDeadlineExceeded {
			s.setProgressing(st, corev1.ConditionUnknown, deploymentPaused, "Deployment is paused")
		}
	})
}

// begins lets Kubernetes create the new ReplicaSet, whose Pods do not exist yet.
func (s *testEnv) begins(name string) {
	d := s.deployment(name)
	s.Expect(d.Spec.Paused).To(BeFalse(), "%s is paused", name)
	current := s.current(d)
	s.scale(current, *d.Spec.Replicas)
	s.say(name, func(st *appsv1.DeploymentStatus) {
		st.UpdatedReplicas, st.UnavailableReplicas = 0, *d.Spec.Replicas
		s.setProgressing(st, corev1.ConditionTrue, "ReplicaSetUpdated", "ReplicaSet is progressing")
	})
}

// finishes lets Kubernetes roll a Deployment out completely.
func (s *testEnv) finishes(name string) {
	d := s.deployment(name)
	s.Expect(d.Spec.Paused).To(BeFalse(), "%s is paused", name)
	current := s.current(d)
	for _, set := range s.sets(d) {
		if set.UID != current.UID {
			s.scale(&set, 0)
		}
	}
	s.scale(current, *d.Spec.Replicas)
	s.say(name, func(st *appsv1.DeploymentStatus) {
		n := *d.Spec.Replicas
		st.Replicas, st.UpdatedReplicas, st.ReadyReplicas, st.AvailableReplicas, st.UnavailableReplicas = n, n, n, n, 0
		s.setAvailable(st, corev1.ConditionTrue)
		s.setProgressing(st, corev1.ConditionTrue, newReplicaSetAvailable, "ReplicaSet has successfully progressed")
	})
}

// givesUp lets Kubernetes report that a rollout took too long.
func (s *testEnv) givesUp(name, message string) {
	s.say(name, func(st *appsv1.DeploymentStatus) {
		s.setProgressing(st, corev1.ConditionFalse, progressDeadlineExceeded, message)
	})
}

// say changes the status of a Deployment at its present generation.
func (s *testEnv) say(name string, edit func(*appsv1.DeploymentStatus)) {
	d := s.deployment(name)
	d.Status.ObservedGeneration = d.Generation
	edit(&d.Status)
	s.Expect(s.Status().Update(s.Ctx, d)).To(Succeed())
}

// sets returns the ReplicaSets of a Deployment.
func (s *testEnv) sets(d *appsv1.Deployment) []appsv1.ReplicaSet {
	list := &appsv1.ReplicaSetList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(d.Namespace))).To(Succeed())
	var own []appsv1.ReplicaSet
	for _, set := range list.Items {
		if metav1.IsControlledBy(&set, d) {
			own = append(own, set)
		}
	}
	return own
}

// current returns the ReplicaSet of a Deployment's template. It creates one if there is
// none.
func (s *testEnv) current(d *appsv1.Deployment) *appsv1.ReplicaSet {
	sets := s.sets(d)
	for i := range sets {
		if identityOf(&sets[i].Spec.Template) == identityOf(&d.Spec.Template) {
			return &sets[i]
		}
	}
	hash := fmt.Sprintf("hash%d", len(sets))
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-" + hash}}
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	set.Spec.Template = *d.Spec.Template.DeepCopy()
	set.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: set.Spec.Template.Labels}
	set.Spec.Replicas = new(int32)
	s.Expect(s.Create(s.Ctx, set)).To(Succeed())
	return set
}

func (s *testEnv) scale(set *appsv1.ReplicaSet, to int32) {
	set.Spec.Replicas = &to
	s.Expect(s.Update(s.Ctx, set)).To(Succeed())
}

func (s *testEnv) setAvailable(st *appsv1.DeploymentStatus, to corev1.ConditionStatus) {
	s.setCondition(st, appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: to, Reason: "MinimumReplicas"})
}

func (s *testEnv) setProgressing(st *appsv1.DeploymentStatus, to corev1.ConditionStatus, reason, message string) {
	s.setCondition(st, appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: to, Reason: reason, Message: message})
}

func (s *testEnv) setCondition(st *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	c.LastUpdateTime, c.LastTransitionTime = metav1.NewTime(s.Clock.Now()), metav1.NewTime(s.Clock.Now())
	for i := range st.Conditions {
		if st.Conditions[i].Type == c.Type {
			if st.Conditions[i].Status == c.Status {
				c.LastTransitionTime = st.Conditions[i].LastTransitionTime
			}
			st.Conditions[i] = c
			return
		}
	}
	st.Conditions = append(st.Conditions, c)
}

func progressing(st *appsv1.DeploymentStatus) appsv1.DeploymentCondition {
	for _, c := range st.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return c
		}
	}
	return appsv1.DeploymentCondition{}
}

// pass advances the clock.
func (s *testEnv) pass(d time.Duration) { s.Clock.Pass(d) }

// progresses makes some of the updated Pods available.
func (s *testEnv) progresses(name string, updated int32) {
	s.say(name, func(st *appsv1.DeploymentStatus) {
		st.Replicas = *s.deployment(name).Spec.Replicas
		st.UpdatedReplicas, st.AvailableReplicas, st.UnavailableReplicas = updated, updated, st.Replicas-updated
	})
}

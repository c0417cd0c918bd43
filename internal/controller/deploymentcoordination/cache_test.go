// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// The cache must not drop anything that a plan depends on.
func TestCachedDeploymentSaysTheSameAsTheStoredOne(t *testing.T) {
	s := open(t)
	s.deploy("a", replicas(3), annotated(coordinationv1.OrderAnnotation, "4"),
		annotated(corev1.LastAppliedConfigAnnotation, "{}"), deadline(77))
	s.finishes("a")
	s.edit("a", version("2"), paused(true))
	s.observes("a")
	d := s.deployment("a")
	var sets []*appsv1.ReplicaSet
	for _, set := range s.sets(d) {
		sets = append(sets, &set)
	}
	whole, err := setsOf(s.Ctx, origin{Reader: s.WithWatch}, s.Namespace)
	s.Expect(err).NotTo(HaveOccurred())
	stored, trimmed := d.DeepCopy(), d.DeepCopy()
	trimDeployment(stored)
	for range 2 { // a cache may transform an object twice
		for kind, by := range CacheByObject() {
			for _, o := range append(objects(sets), trimmed) {
				if sameType(kind, o) {
					_, err := by.Transform(o)
					s.Expect(err).NotTo(HaveOccurred())
				}
			}
		}
	}
	s.Expect(whole[d.UID]).To(HaveLen(1))
	s.Expect(whole[d.UID][0].template).To(Equal(sets[0].Spec.Template.Name))
	facts := factsOf(trimmed, whole[d.UID])
	s.Expect(facts.Template).To(Equal(identityOf(&d.Spec.Template)))
	s.Expect(facts.TemplateHasSet).To(BeFalse())
	s.Expect(facts.OthersUp).To(BeTrue())
	s.Expect(facts.Replicas).To(Equal(int32(3)))
	s.Expect(facts.Order).To(Equal("4"))
	s.Expect(facts.PausedBy).NotTo(BeEmpty())
	s.Expect(facts.ProgressDeadline).To(Equal(77 * time.Second))
	s.Expect(trimmed.Spec.Template.Spec.Containers).To(BeEmpty(), "templates take most memory")
	s.Expect(trimmed.Annotations).NotTo(HaveKey(corev1.LastAppliedConfigAnnotation))
	s.Expect(sets[0].Status).To(BeZero())
}

func objects(sets []*appsv1.ReplicaSet) []client.Object {
	var all []client.Object
	for _, set := range sets {
		all = append(all, set)
	}
	return all
}

func sameType(a, b client.Object) bool {
	_, one := a.(*appsv1.Deployment)
	_, two := b.(*appsv1.Deployment)
	return one == two
}

// If several ReplicaSets have the template, the oldest is the Deployment's, and
// Kubernetes scales the others down.
func TestOldestReplicaSetWithTheTemplateIsTheDeployments(t *testing.T) {
	now := time.Now()
	set := func(name, template string, age time.Duration, replicas int32) replicaSet {
		return replicaSet{name: name, created: now.Add(-age), template: template, replicas: replicas}
	}
	for name, c := range map[string]struct {
		sets          []replicaSet
		has, othersUp bool
	}{
		"none":                         {nil, false, false},
		"its own":                      {[]replicaSet{set("x", "now", 0, 2)}, true, false},
		"its own, and an old one":      {[]replicaSet{set("x", "now", 0, 2), set("y", "then", 9, 0)}, true, false},
		"an old one that has replicas": {[]replicaSet{set("x", "now", 0, 2), set("y", "then", 9, 1)}, true, true},
		"an old one alone":             {[]replicaSet{set("y", "then", 9, 1)}, false, true},
		"two of its own, of which the younger has replicas": {
			[]replicaSet{set("x", "now", 0, 2), set("y", "now", 9, 0)}, true, true},
		"two of its own, of which the older has replicas": {
			[]replicaSet{set("x", "now", 0, 0), set("y", "now", 9, 2)}, true, false},
		"two of its own of the same second, by name": {
			[]replicaSet{set("y", "now", 0, 0), set("x", "now", 0, 2)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			has, othersUp := compare("now", c.sets)
			NewWithT(t).Expect([]bool{has, othersUp}).To(Equal([]bool{c.has, c.othersUp}))
		})
	}
}

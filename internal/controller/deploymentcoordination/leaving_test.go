// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// free returns the unpaused Deployments without the annotation held-by.
func (s *testEnv) free() []string {
	names := []string{}
	for _, name := range s.unpaused() {
		if _, held := s.deployment(name).Annotations[coordinationv1.HeldByAnnotation]; !held {
			names = append(names, name)
		}
	}
	return names
}

func TestDeploymentsThatAreNoLongerSelectedAreUnpaused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leaves func(*testEnv)
		free   []string
	}{
		"when the coordination is deleted": {
			leaves: func(s *testEnv) { s.Remove(&coordinationv1.DeploymentCoordination{}, "shop") },
			free:   []string{"a", "b", "c"},
		},
		"when it is deleted while nobody looks": {
			leaves: func(s *testEnv) { s.Remove(&coordinationv1.DeploymentCoordination{}, "shop"); s.restart() },
			free:   []string{"a", "b", "c"},
		},
		"when the label is removed": {
			leaves: func(s *testEnv) { s.edit("b", labelled("other")) },
			free:   []string{"b"},
		},
		"when the selector is narrowed": {
			leaves: func(s *testEnv) {
				s.edit("a", labelled("shop", "vip"))
				s.rest()
				s.change("shop", func(c *coordinationv1.DeploymentCoordination) {
					c.Spec.LabelSelector.MatchLabels["vip"] = "yes"
				})
			},
			free: []string{"b", "c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := three(t)
			s.Expect(s.free()).To(BeEmpty())
			c.leaves(s)
			s.rest()
			s.Expect(s.free()).To(Equal(c.free))
			s.Expect(s.unpaused()).To(Equal(c.free))
		})
	}
}

// They get the annotation as soon as they are seen. Without it they could not be given
// back.
func TestDeploymentsThatArrivedPausedAreUnpausedToo(t *testing.T) {
	s := open(t)
	s.deploy("a", paused(true))
	s.deploy("b", paused(true))
	s.coordinate("shop")
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
	s.Expect(s.deployment("b").Annotations).To(HaveKeyWithValue(coordinationv1.HeldByAnnotation, "shop"))
	s.Remove(&coordinationv1.DeploymentCoordination{}, "shop")
	s.rest()
	s.Expect(s.free()).To(Equal([]string{"a", "b"}))
}

// The first implementation of this API took an empty selector for the whole namespace,
// and set no annotation.
func TestDeploymentsOfAnEmptySelectorAreUnpausedWithTheirCoordination(t *testing.T) {
	s := openAlone(t)
	s.deploy("a", labelled("other"), paused(true))
	s.deploy("b", labelled("other"), paused(true), userHeld(true))
	s.coordinate("shop")
	s.unchecked(func() { s.change("shop", selecting(metav1.LabelSelector{})) })
	c := s.coordination("shop")
	c.Status.Deployments = []string{s.Namespace + "/a", s.Namespace + "/b"}
	s.Expect(s.Status().Update(s.Ctx, c)).To(Succeed())
	s.deploy("later", labelled("other"), paused(true))
	s.rest()
	s.Expect(s.unpaused()).To(BeEmpty(), "nothing is released because of a mistake")

	s.Remove(&coordinationv1.DeploymentCoordination{}, "shop")
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
	s.Expect(s.free()).To(Equal([]string{"a"}))
}

func TestPauseByAUserOutlivesTheCoordination(t *testing.T) {
	s := three(t)
	s.edit("b", userHeld(true))
	s.rest()
	s.Remove(&coordinationv1.DeploymentCoordination{}, "shop")
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a", "c"}))
	s.Expect(s.deployment("b").Annotations).NotTo(HaveKey(coordinationv1.HeldByAnnotation))
}

func TestDeploymentsOfAnotherCoordinationStayHeld(t *testing.T) {
	s := three(t)
	s.edit("b", labelled("shop", "store"))
	s.coordinate("store")
	s.rest()
	s.Remove(&coordinationv1.DeploymentCoordination{}, "shop")
	s.rest()
	s.Expect(s.free()).To(Equal([]string{"a", "c"}))
	s.Expect(s.deployment("b").Spec.Paused).To(BeTrue())
	s.Expect(s.deployment("b").Annotations).To(HaveKeyWithValue(coordinationv1.HeldByAnnotation, "store"))
}

func TestPausesOfOthersAreLeftAlone(t *testing.T) {
	s := open(t)
	s.deploy("theirs", labelled("other"), paused(true))
	s.deploy("free", labelled("other"))
	s.deployed("a")
	s.coordinate("shop")
	s.rest()
	s.Expect(s.deployment("theirs").Spec.Paused).To(BeTrue())
	s.Expect(s.unpaused()).To(Equal([]string{"free"}))
	s.Remove(&coordinationv1.DeploymentCoordination{}, "shop")
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a", "free"}))
}

// emergency narrows the selector to the label emergency, which no Deployment has, as the
// runbook does.
func (s *testEnv) emergency() {
	patch := `{"spec":{"labelSelector":{"matchExpressions":[{"key":"emergency","operator":"Exists"}]}}}`
	s.Expect(s.Patch(s.Ctx, s.coordination("shop"), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("on-call"))).To(Succeed())
}

// applyCoordination writes the coordination as Flux does, which takes over the selector as a
// whole.
func (s *testEnv) applyCoordination() {
	applied, err := toUnstructured(coordination(s.Namespace, "shop", minReady(3600), resume))
	s.Expect(err).NotTo(HaveOccurred())
	delete(applied.Object, "status")
	s.Expect(s.Apply(s.Ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("kustomize-controller"), client.ForceOwnership)).To(Succeed())
}

// The runbook describes this.
func TestAllGoAtOnceWhileTheSelectorIsNarrowed(t *testing.T) {
	s := open(t)
	for _, name := range []string{"a", "b", "c"} {
		s.deployed(name)
	}
	s.applyCoordination()
	s.rest()
	for _, name := range []string{"a", "b", "c"} {
		s.edit(name, version("2"))
	}
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))

	s.emergency()
	s.rest()
	s.Expect(s.free()).To(Equal([]string{"a", "b", "c"}))
	s.edit("b", version("1"))
	s.rest()
	s.Expect(s.free()).To(Equal([]string{"a", "b", "c"}), "the way back goes at once, too")

	for _, name := range []string{"a", "b", "c"} {
		s.finishes(name)
	}
	s.applyCoordination()
	s.rest()
	s.Expect(s.active("shop")).To(BeEmpty())
	s.edit("b", version("3"))
	s.edit("c", version("3"))
	s.rest()
	s.Expect(s.active("shop")).To(Equal("b"), "one at a time again")
}

// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// Flux and Helm wait until kstatus reports an object as ready, and kubectl rollout
// refuses to restart a paused Deployment.
func TestIdleDeploymentIsReadyForFluxOnlyAfterResume(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit   func(*coordinationv1.DeploymentCoordination)
		paused bool
		want   status.Status
	}{
		"without an idlePolicy": {minReady(0), true, status.InProgressStatus},
		"with Resume":           {resume, false, status.CurrentStatus},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStreet(t)
			s.deploy([]string{"a", "b"}, paused(true))
			s.coordinate("shop", c.edit)
			s.play()
			s.idles("shop", "a", "b")
			for _, name := range []string{"a", "b"} {
				s.Eventually(func() bool { return s.deployment(name).Spec.Paused }).Should(Equal(c.paused))
				s.Eventually(func() status.Status { return kstatusOf(s.deployment(name)) }).Should(Equal(c.want))
			}
		})
	}
}

func TestRestartUnderResumeTakesTurns(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"a", "b"}, paused(true))
	s.coordinate("shop", resume)
	s.play()
	s.idles("shop", "a", "b")
	stuck, fix := s.stuck()
	s.edit([]string{"a", "b"}, version(stuck), func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
	})
	s.Eventually(func() []string { return s.unpaused() }).Should(HaveLen(1))
	fix()
	s.idles("shop", "a", "b")
	for _, name := range []string{"a", "b"} {
		s.Expect(s.versions(name)).To(Equal(map[string]int{stuck: 1}))
	}
}

func TestPolicyCanBeChanged(t *testing.T) {
	s := three(t)
	s.Expect(s.unpaused()).To(BeEmpty())
	s.change("shop", resume)
	s.rest()
	s.Expect(s.unpaused()).To(Equal([]string{"a", "b", "c"}))
	s.Expect(s.reported()).To(ContainElement(coordinationv1.DeploymentUnpausedEvent))
	s.change("shop", func(c *coordinationv1.DeploymentCoordination) { c.Spec.IdlePolicy = "" })
	s.rest()
	s.Expect(s.unpaused()).To(BeEmpty())
}

func TestPausedDeploymentThatFluxAppliesIsReportedOnce(t *testing.T) {
	flux := func(d *appsv1.Deployment) {
		d.Labels["kustomize.toolkit.fluxcd.io/name"], d.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "shop", "flux-system"
	}
	s := open(t)
	s.deployed("a", flux)
	s.deployed("b")
	s.coordinate("shop")
	s.rest()
	var warnings []string
	for _, e := range s.Events.Take() {
		if e.Reason == coordinationv1.IdlePausedEvent {
			s.Expect(e.Type).To(Equal("Warning"))
			warnings = append(warnings, e.Message)
		}
	}
	s.Expect(warnings).To(HaveLen(1))
	s.Expect(warnings[0]).To(And(ContainSubstring(s.Namespace+"/a"), ContainSubstring("Kustomization flux-system/shop"), ContainSubstring("Resume")))

	s.edit("b", version("2"))
	s.rest()
	s.finishes("b")
	s.rest()
	s.Expect(s.reported()).NotTo(ContainElement(coordinationv1.IdlePausedEvent), "nothing has changed")
}

func TestUnderResumeNothingIsPausedForFluxToMiss(t *testing.T) {
	s := open(t)
	s.deployed("a", annotated("x", "y"), func(d *appsv1.Deployment) {
		d.Labels["helm.toolkit.fluxcd.io/name"], d.Labels["helm.toolkit.fluxcd.io/namespace"] = "shop", "flux-system"
	})
	s.coordinate("shop", resume)
	s.rest()
	s.Expect(s.reported()).NotTo(ContainElement(coordinationv1.IdlePausedEvent))
	s.Expect(s.unpaused()).To(Equal([]string{"a"}))
}

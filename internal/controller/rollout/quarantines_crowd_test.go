// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// failedTogether returns Rollouts of one ImagePolicy. On each, 1.1.0 has just failed, and the
// rollback has succeeded.
func failedTogether(n int) []client.Object {
	bad := fixture.MakeRelease("1.1.0").Digest(digestOf("1.1.0")).Obj()
	good := fixture.MakeRelease("1.0.0").Digest(digestOf("1.0.0")).Obj()
	all := []client.Object{fixture.MakeScan("shop").Found("1.0.0", "1.1.0").Obj(), fixture.MakePolicy("shop").Latest("1.1.0").Digest(*bad.Digest).Obj()}
	for i := range n {
		rollout := fixture.MakeRollout(fmt.Sprintf("shop-%02d", i)).RollsBack().Quarantine().Releases(good, bad).History(
			fixture.MakeEntry("1.0.0").Version(good).Back("1.1.0", 2, 1).Succeeded(),
			fixture.MakeEntry("1.1.0").Version(bad).Failed().Due(v1alpha1.CauseHealthCheckFailed, fixture.Noon).BakeEnd(fixture.Noon),
			fixture.MakeEntry("1.0.0").Version(good).Succeeded()).Obj()
		rollout.Spec.ReleasesImagePolicy.Name = "shop"
		all = append(all, rollout)
	}
	return all
}

// allAtOnce runs one step of each Rollout, on several controllers.
func (s *testEnv) allAtOnce(rollouts []client.Object, controllers ...*Reconciler) {
	var waiting sync.WaitGroup
	failed := make([]error, len(rollouts))
	for i, rollout := range rollouts {
		waiting.Go(func() {
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(rollout)}
			_, failed[i] = controllers[i%len(controllers)].Reconcile(s.Ctx, request)
		})
	}
	waiting.Wait()
	s.Expect(errors.Join(failed...)).NotTo(HaveOccurred())
}

// TestManyRolloutsReportToOneObject: fifty do so at once, and the object lists ten. All come
// to rest, also those that report again because the answer to the first report was lost, or
// because the controller has restarted since.
func TestManyRolloutsReportToOneObject(t *testing.T) {
	third := func(n int) bool { return n%3 == 0 }
	for name, test := range map[string]struct {
		lost     func(n int) bool
		restarts bool
	}{
		"each answer arrives":                {func(int) bool { return false }, false},
		"each third answer is lost":          {third, false},
		"and what is remembered is lost too": {third, true},
	} {
		t.Run(name, func(t *testing.T) { checkAllComeToRest(t, test.lost, test.restarts) })
	}
}

// checkAllComeToRest lets fifty Rollouts report. It loses the answers to some of the writes
// to the quarantine, and may restart the controllers after each round.
func checkAllComeToRest(t *testing.T, lost func(n int) bool, restarts bool) {
	t.Helper()
	const many = 50
	objects := failedTogether(many)
	s := open(t, objects...)
	s.quarantines = true
	twoControllers := func() (one, other *Reconciler) {
		s.restart()
		one = s.reconciler
		s.restart()
		return one, s.reconciler
	}
	one, other := twoControllers()
	s.Wire.Fail = func(n int, write string, _ client.Object) fixture.Fault {
		if strings.HasPrefix(write, "patch ReleaseQuarantine/status") && lost(n) {
			return fixture.Fault{Err: context.DeadlineExceeded, Lost: true}
		}
		return fixture.Fault{}
	}
	rollouts := objects[2:]
	for written := -1; len(s.Wire.Writes()) > written; s.Pass(lastRetry) { // they are in each other's way
		written = len(s.Wire.Writes())
		s.allAtOnce(rollouts, one, other)
		if restarts {
			one, other = twoControllers()
		}
	}
	s.Expect(s.writesTo("create")).To(ContainElement("create ReleaseQuarantine " + quarantineOf("1.1.0")))
	all := &v1alpha1.ReleaseQuarantineList{}
	s.Expect(s.List(s.Ctx, all, client.InNamespace(s.Namespace))).To(Succeed())
	s.Expect(all.Items).To(HaveLen(1))
	s.Expect(all.Items[0].Status.Failures).To(HaveLen(10))
	s.Expect(all.Items[0].Status.Phase).To(Equal(v1alpha1.QuarantineHeld))
	s.Expect(all.Items[0].Status.Until.Time).To(BeTemporally("==", fixture.Noon.Add(24*time.Hour)), "however often it was reported")
	for _, rollout := range rollouts {
		s.Expect(s.history(rollout.GetName())).To(HaveLen(3))
		s.Expect(s.rollout(rollout.GetName()).Status.History[1].Quarantine).To(Equal(quarantineOf("1.1.0")), rollout.GetName())
	}
	s.Wire.Forget()
	s.restart() // one that remembers nothing
	s.allAtOnce(rollouts, s.reconciler)
	s.Expect(s.Wire.Writes()).To(BeEmpty())

	s.Merge(s.badQuarantine(), `{"spec":{"lifted":true}}`)
	s.allAtOnce(rollouts, s.reconciler)
	for _, rollout := range rollouts {
		s.Expect(s.history(rollout.GetName())[0]).To(Equal(promoted{4, "1.1.0", v1alpha1.BakeSucceeded}), "those that it does not list as well")
	}
}

// TestQuarantinesCostNothingAtRest runs 100 Rollouts and 20 quarantines.
func TestQuarantinesCostNothingAtRest(t *testing.T) {
	const many, few = 100, 20
	s := openAlone(t, failedTogether(0)...)
	s.quarantines = true
	requests, user := &fixture.Requests{}, testPlane.RESTConfig()
	user.Wrap(requests.Wrap)
	s.addAll(idleRollouts(many))
	for i := range few {
		q := &v1alpha1.ReleaseQuarantine{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bad-%02d", i), Namespace: s.Namespace},
			Spec:       v1alpha1.ReleaseQuarantineSpec{Digest: digestOf(fmt.Sprintf("1.1.%d", i)), Image: "registry.example.com/shop", Tags: []string{"1.1.0"}},
		}
		s.Expect(s.Create(s.Ctx, q)).To(Succeed())
	}
	s.play(t, user)
	s.Eventually(func() []string { return s.unsettled() }).Should(BeEmpty())
	s.Expect(requests.Count("PATCH")).To(Equal(many+few), "the status of each Rollout, and the phase of each quarantine")
	all := requests.Count("")
	s.Consistently(func() int { return requests.Count("") }, 2*time.Second).Should(Equal(all))
}

// unsettled returns the Rollouts that are not at rest, and the quarantines without a phase.
func (s *testEnv) unsettled() (names []string) {
	rollouts, quarantines := &v1alpha1.RolloutList{}, &v1alpha1.ReleaseQuarantineList{}
	s.Expect(s.List(s.Ctx, rollouts, client.InNamespace(s.Namespace))).To(Succeed())
	s.Expect(s.List(s.Ctx, quarantines, client.InNamespace(s.Namespace))).To(Succeed())
	for i := range rollouts.Items {
		if len(rollouts.Items[i].Status.Conditions) == 0 {
			names = append(names, rollouts.Items[i].Name)
		}
	}
	for i := range quarantines.Items {
		if quarantines.Items[i].Status.Phase == "" {
			names = append(names, quarantines.Items[i].Name)
		}
	}
	return names
}

// idleRollouts returns Rollouts that have nothing to do.
func idleRollouts(n int) []client.Object {
	var all []client.Object
	for i := range n {
		rollout := fixture.MakeRollout(fmt.Sprintf("shop-%03d", i)).RollsBack().Quarantine().Obj()
		rollout.Spec.ReleasesImagePolicy.Name = "shop"
		all = append(all, rollout)
	}
	return all
}

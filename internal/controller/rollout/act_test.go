// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// crowd adds that many HealthChecks, all healthy.
func (s *testEnv) crowd(n int) {
	var all []client.Object
	for i := range n {
		all = append(all, fixture.MakeHealthCheck(fmt.Sprintf("check-%03d", i)).Obj())
	}
	s.addAll(all)
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.Wire.Forget()
}

// objectsIn returns the objects, without the Rollout, that some writes are about.
func objectsIn(writes []string) []string {
	var all []string
	for _, write := range writes {
		if words := strings.Fields(write); !strings.HasPrefix(words[1], "Rollout") {
			all = append(all, strings.Join(words[2:], " "))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A pass with many objects to write gives its worker away in between.
func TestPassWritesAtMostSomeObjects(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0")...)
	s.crowd(120)
	s.rest("shop")
	s.fluxApplies()
	s.Wire.Forget()
	var ofPasses []int
	for {
		result := s.reconcile("shop")
		written := objectsIn(s.Wire.Writes())
		s.Wire.Forget()
		if len(written) == 0 {
			break
		}
		ofPasses = append(ofPasses, len(written))
		s.Expect(result.RequeueAfter == recheck.AtOnce).To(Equal(len(written) == mostWrites), "pass %d of %v", len(ofPasses), written)
		s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying}}))
		s.restart() // what is left is not remembered
	}
	s.Expect(ofPasses).To(Equal([]int{50, 50, 20}))
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "none has reported since")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	s.Expect(objectsIn(s.Wire.Writes())).To(BeEmpty(), "each was reset once")
}

func TestRejectedWritesKeepNoOthersFromTheirTurn(t *testing.T) {
	s := open(t, shopWith(protected(), "1.0.0")...)
	s.crowd(120)
	s.rest("shop")
	s.fluxApplies()
	s.Wire.Fail = func(_ int, write string, _ client.Object) fixture.Fault {
		if strings.Contains(write, "HealthCheck/status check-0") {
			return fixture.Fault{Err: apierrors.NewForbidden(schema.GroupResource{Group: "kuberik.com", Resource: "healthchecks"}, "", nil)}
		}
		return fixture.Fault{}
	}
	for range 6 {
		_, _ = s.try("shop")
	}
	for i := range 20 {
		s.Expect(marks(s.check(fmt.Sprint("check-1", fmt.Sprintf("%02d", i))))).To(HaveLen(1))
	}
}

// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// pauses records the delayed requests of a queue.
type pauses struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	asked map[string]time.Duration
}

func (p pauses) AddAfter(request reconcile.Request, after time.Duration) {
	p.asked[request.Name] = after
}

// A refused write is tried again after longer and longer pauses. A bake still ends in
// time.
func TestErrorDoesNotPutOffTheEndOfABake(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").BakeTime(10*time.Minute), "1.0.0")...)
	s.deploy("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeInProgress))
	asked := pauses{asked: map[string]time.Duration{}}
	s.Expect(s.reconciler.wakeups.Source().Start(s.Ctx, asked)).To(Succeed())
	s.Wire.Fail = func(int, string, client.Object) fixture.Fault {
		return fixture.Fault{Err: apierrors.NewBadRequest("admission webhook says no")}
	}
	s.changeTag("0.0.1") // would be written back if that were allowed
	s.Pass(time.Minute)
	_, err := s.try("shop")
	s.Expect(err).To(HaveOccurred())
	s.Expect(asked.asked).To(Equal(map[string]time.Duration{"shop": 9 * time.Minute}))
}

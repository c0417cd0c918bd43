// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestLastGoodIsTheNewestThatSucceededWhenItWasFirstLeft(t *testing.T) {
	at := func(minute int) time.Time { return fixture.Noon.Add(time.Duration(minute) * time.Minute) }
	entry := func(tag string, minute int) *fixture.EntryBuilder { return fixture.MakeEntry(tag).At(at(minute)) }
	for name, tt := range map[string]struct {
		history []*fixture.EntryBuilder // the oldest first
		want    string
		leftAt  time.Time
	}{
		"of the first release":               {[]*fixture.EntryBuilder{entry("1", 1).Deploying()}, "", time.Time{}},
		"of no release":                      {nil, "", time.Time{}},
		"of the next release":                {[]*fixture.EntryBuilder{entry("1", 1).Succeeded(), entry("2", 2).Deploying()}, "1", at(2)},
		"of a rollback":                      {[]*fixture.EntryBuilder{entry("1", 1).Succeeded(), entry("2", 2).Failed(), entry("1", 3).Deploying()}, "1", at(2)},
		"of a fix":                           {[]*fixture.EntryBuilder{entry("1", 1).Succeeded(), entry("2", 2).Failed(), entry("3", 3).Deploying()}, "1", at(2)},
		"of a fix of a fix":                  {[]*fixture.EntryBuilder{entry("1", 1).Succeeded(), entry("2", 2).Failed(), entry("3", 3).Failed(), entry("4", 4).Deploying()}, "1", at(2)},
		"after a cancelled promotion":        {[]*fixture.EntryBuilder{entry("1", 1).Succeeded(), entry("2", 2).Cancelled(), entry("3", 3).Deploying()}, "1", at(2)},
		"after a rollback that succeeded":    {[]*fixture.EntryBuilder{entry("1", 1).Succeeded(), entry("2", 2).Failed(), entry("1", 3).Succeeded(), entry("4", 4).Deploying()}, "1", at(4)},
		"after nothing but failures":         {[]*fixture.EntryBuilder{entry("1", 1).Failed(), entry("2", 2).Deploying()}, "", time.Time{}},
		"not the current one that succeeded": {[]*fixture.EntryBuilder{entry("1", 1).Succeeded(), entry("2", 2).Succeeded()}, "1", at(2)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var history []v1alpha1.DeploymentHistoryEntry
			for _, e := range tt.history {
				history = append([]v1alpha1.DeploymentHistoryEntry{e.Obj()}, history...)
			}
			release, leftAt := lastGood(history)
			g.Expect(release.Tag).To(Equal(tt.want))
			g.Expect(leftAt).To(BeTemporally("==", tt.leftAt))
		})
	}
}

// A promotion that has begun does not make the verdict on the release before one on its own.
func TestStatusIsAboutTheReleaseThatWasMeasured(t *testing.T) {
	s := open(t, rollout("shop"), errorRate().Obj())
	s.begin("errors")
	s.ChangeStatus(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
		status := &o.(*v1alpha1.Rollout).Status
		next := fixture.MakeEntry("1.2.0").ID(3).At(s.clock.Now()).Deploying().Obj()
		status.History = append([]v1alpha1.DeploymentHistoryEntry{next}, status.History...)
	})
	s.rest("errors")
	s.Expect(s.check("errors").Status.Release).To(Equal(&v1alpha1.MeasuredRelease{Tag: "1.1.0"}))
	s.reset("errors", "shop")
	s.rest("errors")
	s.after(delay+shift, "errors")
	s.Expect(s.check("errors").Status.Release).To(Equal(&v1alpha1.MeasuredRelease{Tag: "1.2.0"}))
}

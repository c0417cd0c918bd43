// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Each sample is applied on Monday, 2 March 2026, at noon UTC, and shows its next changes.
func TestSamplesOfTheCalendarApply(t *testing.T) {
	wants := map[string][]string{
		"christmas.yaml": {
			"open until 2026-12-24T23:00:00Z", "closed by rule christmas until 2026-12-26T23:00:00Z", "open until 2027-12-24T23:00:00Z"},
		"days-of-the-month.yaml": {
			"open until 2026-03-14T23:00:00Z", "closed by rule books until 2026-03-15T23:00:00Z", "open until 2026-03-30T22:00:00Z",
			"closed by rule books until 2026-04-01T22:00:00Z"},
		"weekdays-of-the-month.yaml": {
			"open by rule first-monday until 2026-03-02T15:00:00Z", "closed until 2026-03-27T08:00:00Z", "open by rule last-friday until 2026-03-27T11:00:00Z",
			"closed until 2026-04-06T07:00:00Z"},
		"sprints.yaml": {
			"closed until 2026-03-03T08:00:00Z", "open by rule sprint until 2026-03-03T15:00:00Z", "closed until 2026-03-04T08:00:00Z",
			"open by rule sprint until 2026-03-04T15:00:00Z", "closed until 2026-03-17T08:00:00Z"},
		"weekends.yaml": {
			"open until 2026-03-06T17:00:00Z", "closed by rule weekend until 2026-03-09T05:00:00Z"},
		"freeze-with-hotfixes.yaml": {
			"closed by rule fair until 2026-03-03T09:00:00Z", "open by exception hotfixes until 2026-03-03T11:00:00Z",
			"closed by rule fair until 2026-03-10T09:00:00Z"},
		"holidays.yaml": {
			"open until 2026-12-31T23:00:00Z", "closed by rule New Year's Day until 2027-01-01T23:00:00Z", "open until 2027-03-25T23:00:00Z"},
	}
	files, err := filepath.Glob("../../../config/samples/calendar/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(files).To(HaveLen(len(wants)))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := open(t, shopOf("shop", nil))
			c := s.follow(t, s.sample(file))
			for _, want := range wants[filepath.Base(file)] {
				c.tick()
				s.Expect(c.ready().Message).To(Equal(want))
				s.Pass(c.read().Status.NextTransition.Sub(s.Clock.Now()))
			}
		})
	}
}

func (s *testEnv) sample(file string) client.Object {
	content, err := os.ReadFile(file)
	s.Expect(err).NotTo(HaveOccurred())
	var o client.Object = &v1alpha1.RolloutSchedule{}
	if strings.Contains(string(content), "kind: ClusterRolloutSchedule") {
		o = &v1alpha1.ClusterRolloutSchedule{}
	}
	s.Expect(yaml.UnmarshalStrict(content, o)).To(Succeed())
	if o.GetNamespace() != "" {
		o.SetNamespace(s.Namespace)
	}
	return o
}

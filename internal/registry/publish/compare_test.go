// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// compares lets as much time pass as a comparison may wait for, and plays the reconciler
// that is woken for it.
func (s *site) compares(e *environment, within time.Duration) {
	s.t.Helper()
	s.Eventually(func() bool { // it is known when
		s.Publisher.mu.Lock()
		defer s.Publisher.mu.Unlock()
		subject := s.subjects[client.ObjectKeyFromObject(e)]
		return subject != nil && !subject.compare.IsZero() && subject.wanted == nil
	}).Should(BeTrue())
	s.later(within)
	s.Eventually(func() bool {
		s.pass(e)
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.asked) > 0
	}).Should(BeTrue(), "the place is looked at")
	s.settles(e)
}

func (s *site) publishes(tag string) *environment {
	s.t.Helper()
	e := s.add("shop", "shop")
	e.says(healthy(v1alpha1.BakeSucceeded, tag, s.clock.Now()))
	s.settles(e)
	s.requests()
	return e
}

func TestPlaceIsComparedOnceAnHour(t *testing.T) {
	s := open(t)
	e := s.publishes("1.0.0")
	for range 3 {
		s.later(45 * time.Minute)
		s.rests()
		s.Expect(s.requests()).To(BeZero())
		s.compares(e, 30*time.Minute)
		s.Expect(s.requests()).To(Equal(1), "one HEAD")
	}
}

func TestPlaceIsComparedOnceInAProcess(t *testing.T) {
	s := open(t)
	e := s.publishes("1.0.0")
	s.restart()
	s.pass(e)
	s.compares(e, firstCompare)
	s.requests()
	s.later(45 * time.Minute)
	s.rests()
	s.compares(e, 30*time.Minute)
	s.Expect(s.requests()).To(Equal(1), "one HEAD")
}

func TestReportThatWasReplacedIsStoredAgain(t *testing.T) {
	for name, replace := range map[string]func(*site, *environment){
		"by an old one": func(s *site, e *environment) {
			old := report.Report{Source: s.sourceOf(e), ClusterUID: s.clusterUID, Sequence: 7}
			envelope, err := report.Sign(old, s.key)
			s.Expect(err).NotTo(HaveOccurred())
			s.put(e, envelope)
		},
		"by a newer one, of a time that was lost": func(s *site, e *environment) {
			newer := report.Report{Source: s.sourceOf(e), ClusterUID: s.clusterUID, Sequence: s.clock.Now().Add(time.Hour).Unix()}
			envelope, err := report.Sign(newer, s.key)
			s.Expect(err).NotTo(HaveOccurred())
			s.put(e, envelope)
		},
		"by something else": func(s *site, e *environment) { s.put(e, []byte("{}")) },
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := open(t)
				e := s.publishes("1.0.0")
				replace(s, e)
				if restart {
					s.restart()
					s.pass(e)
				}
				s.compares(e, longestCompare)
				s.Expect(s.published(e).Releases[0].Tag).To(Equal("1.0.0"))
				if name == "by a newer one, of a time that was lost" {
					s.Expect(s.published(e).Sequence).To(BeNumerically(">", s.clock.Now().Add(-longestCompare).Add(time.Hour).Unix()))
				}
			})
		}
	}
}

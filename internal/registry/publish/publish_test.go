// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestPromotionWithABakeIsThreeReports(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	first := s.published(e)
	s.Expect(s.requests()).To(Equal(12), "log in and look at the place; log in to write; config and layer with four requests each; manifest")
	s.Expect(first.Source).To(Equal(s.sourceOf(e)))
	s.Expect(first.ClusterUID).To(Equal("5f2c"))
	s.Expect(first.Upstreams).To(Equal([]environmentsv1.Relationship{{Environment: "dev", Type: environmentsv1.After}}))
	s.Expect(first.Sequence).To(Equal(fixture.Noon.Unix()))
	s.Expect(e.Status.Report.Reference).To(Equal(s.host() + "/promotions/staging:shop.web"))
	s.Expect(e.Status.Report.Sequence).To(Equal(first.Sequence))
	s.Expect(e.Status.Report.PublishedTime.Time).To(BeTemporally("==", fixture.Noon))

	s.later(3*time.Minute + 300*time.Millisecond)
	e.says(healthy(v1alpha1.BakeInProgress, "1.0.0", fixture.Noon.Add(2*time.Minute)))
	s.Expect(s.published(e).Releases[0].Soaked).To(Equal(&metav1.Duration{Duration: time.Minute}), "measured when it was signed, and never longer")
	s.Expect(s.requests()).To(Equal(5), "the layer, and the manifest")

	s.later(30 * time.Minute)
	e.says(healthy(v1alpha1.BakeSucceeded, "1.0.0", fixture.Noon.Add(2*time.Minute)))
	s.Expect(s.published(e).Releases[0].Soaked.Duration).To(Equal(31 * time.Minute))
	s.Expect(s.requests()).To(Equal(5))
	s.Expect(s.attempts()).To(Equal(3))

	for range 10 {
		s.later(10 * time.Minute)
		s.Expect(s.settles(e).Problem).To(BeNil())
		s.rests()
		s.restart()
	}
	s.Expect(s.attempts()).To(Equal(3))
}

func TestOnlyTheLatestContentIsStored(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.published(e)
	attempts := s.attempts()

	e.says(deploying("1.1.0"))
	s.Expect(s.pass(e).Pending).To(BeTrue())
	e.says(deploying("1.2.0"))
	s.Expect(s.pass(e).Pending).To(BeTrue())
	s.requests()
	s.later(shortestPause - time.Second)
	s.rests()
	s.later(time.Second)
	s.Expect(s.published(e).Releases[0].Tag).To(Equal("1.2.0"))
	s.Expect(s.attempts()).To(Equal(attempts + 1))
}

func TestContentThatComesBackIsNotStoredAgain(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.published(e)
	e.says(deploying("1.1.0"))
	s.Expect(s.pass(e).Pending).To(BeTrue())
	e.says(deploying("1.0.0"))
	s.Expect(s.pass(e).Pending).To(BeFalse())
	s.requests()
	s.later(30 * time.Minute)
	s.rests()
}

// TestContentThatComesBackDuringAWrite: it is replaced by the write, and stored again.
func TestContentThatComesBackDuringAWrite(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.published(e)
	s.later(time.Minute)
	begun, goOn := make(chan bool), make(chan bool)
	s.set(func() {
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") {
				begun <- true
				<-goOn
			}
			s.registry.ServeHTTP(w, r)
		})
	})
	e.says(deploying("1.1.0"))
	s.pass(e)
	<-begun
	e.says(deploying("1.0.0"))
	s.Expect(s.pass(e).Pending).To(BeFalse(), "it is what was stored last")
	goOn <- true
	s.set(func() { s.handler = nil })
	s.Eventually(func() string { s.pass(e); return tagOf(s, e) }).Should(Equal("1.1.0"))
	s.Eventually(func() bool { return s.pass(e).Pending }).Should(BeTrue())
	s.later(shortestPause)
	s.Expect(s.published(e).Releases[0].Tag).To(Equal("1.0.0"))
}

func tagOf(s *site, e *environment) string {
	r, err := report.Verify(s.stored(e), s.key.Trusted(), report.Expected{Source: s.sourceOf(e)})
	s.Expect(err).NotTo(HaveOccurred())
	return r.Releases[0].Tag
}

func TestEnvironmentIsWokenOnceItIsKnownHowAnAttemptEnded(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.Expect(s.pass(e)).To(Equal(Publication{Pending: true}))
	s.Eventually(s.wakes).Should(Equal(1))
	s.Expect(s.pass(e).Stored.Sequence).To(Equal(fixture.Noon.Unix()))

	s.restart()
	s.requests()
	s.Expect(s.pass(e)).To(BeZero(), "the status is up to date, as far as is known")
	s.Eventually(func() bool { _, known := s.Publisher.uid.known(); return known }).Should(BeTrue())
	s.rests()
	s.Expect(s.wakes()).To(Equal(1))
}

func TestNothingIsStoredOfOtherEnvironments(t *testing.T) {
	for name, change := range map[string]func(*environmentsv1.EnvironmentSpec){
		"of type cluster": func(spec *environmentsv1.EnvironmentSpec) { spec.Backend.Type = environmentsv1.BackendCluster },
		"of type github":  func(spec *environmentsv1.EnvironmentSpec) { spec.Backend.Type = environmentsv1.BackendGitHub },
		"that only read":  func(spec *environmentsv1.EnvironmentSpec) { spec.Backend.Project = "" },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			e := s.add("shop", "web")
			e.says(deploying("1.0.0"))
			s.published(e)
			s.requests()
			e.says(deploying("1.1.0"))
			s.Expect(s.pass(e).Pending).To(BeTrue())
			e.change(change)
			s.Expect(s.pass(e)).To(BeZero())
			s.later(time.Hour)
			s.rests()
		})
	}
}

func TestForgottenEnvironmentIsNotStored(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.published(e)
	e.says(deploying("1.1.0"))
	s.pass(e)
	s.Forget(client.ObjectKeyFromObject(e))
	s.requests()
	s.later(time.Hour)
	s.rests()
}

func TestReportMovesWithTheProject(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	before := s.published(e)
	s.later(time.Minute)
	e.change(func(spec *environmentsv1.EnvironmentSpec) { spec.Backend.Project += "-eu" })
	after := s.published(e)
	s.Expect(after.Sequence).To(BeNumerically(">", before.Sequence))
	s.Expect(e.Status.Report.Reference).To(HaveSuffix("/promotions/staging-eu:shop.web"))
}

// TestNumberIsHigherThanEachBefore: the clock of the cluster was set back.
func TestNumberIsHigherThanEachBefore(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.Status.Report = &environmentsv1.ReportStatus{Sequence: fixture.Noon.Unix() + 3600}
	e.says(deploying("1.0.0"))
	s.Expect(s.published(e).Sequence).To(Equal(fixture.Noon.Unix() + 3601))
	e.Status.Report = nil
	s.restart()
	e.says(deploying("1.1.0"))
	s.Expect(s.published(e).Sequence).To(Equal(fixture.Noon.Unix()+3602), "from the place")
	s.later(shortestPause)
	e.says(deploying("1.2.0"))
	s.Expect(s.published(e).Sequence).To(Equal(fixture.Noon.Unix() + 3603))
}

// TestFlappingEnvironment changes every second for an hour.
func TestFlappingEnvironment(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	for i := range 3600 {
		e.says(deploying(fmt.Sprint("1.0.", i%2)))
		if due := s.Publisher.isDue(client.ObjectKeyFromObject(e)); due || i == 0 {
			s.settles(e)
		}
		s.later(time.Second)
	}
	s.Expect(s.attempts()).To(And(BeNumerically(">", 40), BeNumerically("<", 50)))
}

// isDue reports whether an attempt with another content would begin now.
func (p *Publisher) isDue(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.subjects[key]
	return s != nil && !s.due().After(p.clock.Now())
}

// TestManyEnvironmentsAtOnce is for the race detector.
func TestManyEnvironmentsAtOnce(t *testing.T) {
	s := open(t)
	var running sync.WaitGroup
	for i := range 8 {
		e := s.add(fmt.Sprint("shop-", i%3), fmt.Sprint("web-", i))
		running.Go(func() {
			for n := range 50 {
				e.says(deploying(fmt.Sprint("1.0.", n)))
				s.pass(e)
				s.later(time.Second)
				if n%20 == 19 {
					s.Forget(client.ObjectKeyFromObject(e))
				}
			}
		})
	}
	running.Wait()
	for _, e := range s.environments {
		s.Eventually(func() string {
			s.later(longestPause)
			s.pass(e)
			if e.Status.Report == nil {
				return ""
			}
			return tagOf(s, e)
		}).Should(Equal("1.0.49"))
	}
}

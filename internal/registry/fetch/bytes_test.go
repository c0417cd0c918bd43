// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// talkative returns a report that is as long as it can be.
func talkative() report.Report {
	var releases []environmentsv1.Release
	for i := range environment.MostReleases {
		r := proven(fmt.Sprintf("1.%d.0", environment.MostReleases-i))
		r.Revision, r.Withdrawn, r.Unhealthy, r.Message = strings.Repeat("r", 256), strings.Repeat("w", 256), strings.Repeat("u", 256), strings.Repeat("m", 256)
		releases = append(releases, r)
	}
	return said(1, releases...)
}

// inNamespace adds an Environment of another namespace, and returns its upstream.
func (b *bus) inNamespace(namespace string, i int) Upstream {
	e := b.prod().InNamespace(namespace).Obj()
	e.Name = fmt.Sprint("prod-", i)
	b.Expect(b.cluster.Create(b.t.Context(), e)).To(Succeed())
	return Upstream{Environment: types.NamespacedName{Namespace: namespace, Name: e.Name}, Name: "staging"}
}

// kept returns how many bytes of releases are in memory, in JSON, and of one namespace.
func (b *bus) kept(namespace string) (all, its int) {
	for u, k := range b.upstreams {
		for i := range k.memory.report.Releases {
			size := truncate.ItemSize(k.memory.report.Releases[i])
			if all += size; u.Environment.Namespace == namespace {
				its += size
			}
		}
	}
	return all, its
}

// Reports of the most upstreams that a namespace should have take a small part of the memory,
// and those of others are kept as if it had none.
func TestOneNamespaceDoesNotTakeAllMemory(t *testing.T) {
	const quota = 800
	b := openBus(t)
	b.publish(talkative())
	var loud []Upstream
	for i := range quota {
		loud = append(loud, b.inNamespace("loud", i))
		b.Once(loud[i])
	}
	b.pass(time.Second)
	all, _ := b.kept("loud")
	b.Expect(all).To(BeNumerically("<", 6<<20))
	for _, u := range loud {
		result, fetched := b.Last(u)
		b.Expect(fetched).To(BeTrue())
		b.Expect(result.Problem).To(BeNil())
		b.Expect(result.Report.Releases).NotTo(BeEmpty())
		b.Expect(result.Report.Releases[0].Tag).To(Equal("1.30.0"), "what runs there is always known")
	}

	quiet := b.inNamespace("quiet", 0)
	b.Once(quiet)
	b.pass(time.Second)
	result, _ := b.Last(quiet)
	e := b.environment(b.t.Context(), quiet.Environment)
	b.Expect(result.Report.Releases).To(HaveLen(len(environment.Kept(e, talkative().Releases))), "all that its status has room for")
	for _, u := range loud {
		b.Forget(u.Environment)
	}
	b.Forget(quiet.Environment)
	b.Expect(b.bytes).To(BeEmpty())
}

// What was left out is read again once there is memory for it, and only then.
func TestReportIsReadAgainOnceThereIsMemory(t *testing.T) {
	b := openBus(t)
	b.publish(talkative())
	b.bytes = map[string]int{fixture.Namespace: mostBytes}
	b.Ask(prod, waits)
	b.pass(time.Second)
	few := len(b.last().Report.Releases)
	b.pass(10 * time.Minute)
	b.Expect(b.last().Report.Releases).To(HaveLen(few))
	b.bytes[fixture.Namespace] -= mostBytes
	b.pass(10 * time.Minute)
	b.Expect(len(b.last().Report.Releases)).To(BeNumerically(">", few))
}

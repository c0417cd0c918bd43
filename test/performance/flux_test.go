// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestFluxIsPlayedWithOneAnswerPerReleaseAndTarget(t *testing.T) {
	digests := &registry{releases: map[string]release{}}
	digests.publish("1.0.0")
	f := newFlux(fleet{rollouts: 1, namespaces: 1}, nil, digests)
	waiting := func() []job {
		jobs := []job{}
		for f.queue.Len() > 0 {
			j, _ := f.queue.Get()
			f.queue.Done(j)
			jobs = append(jobs, j)
		}
		return jobs
	}
	repository := fixture.MakeRepository("app-00000").Tag("1.0.0").Generation(2)
	kustomization := fixture.MakeKustomization("app-00000").Substitute(variable, "0.9.0").Generation(1)
	steps := []struct {
		happens string
		see     func()
		want    []job
	}{
		{"the Kustomization of an older version", func() { f.seeKustomization(0, kustomization.Obj()) }, []job{}},
		{"the tag is written", func() { f.seeRepository(0, repository.Obj()) }, []job{}},
		{"another release is served", func() { f.seeServed("app-00000", "0.9.0") }, []job{}},
		{"the release of another application is served", func() { f.seeServed("app-00001", "1.0.0") }, []job{}},
		{"the release is served", func() { f.seeServed("app-00000", "1.0.0") }, []job{{repositoryWritten, 0}}},
		{"something else is written", func() { f.seeRepository(0, repository.Obj()) }, []job{}},
		{"it was pulled", func() { f.seeRepository(0, repository.Pulled(f.revision("1.0.0")).Ready().Obj()) }, []job{}},
		{"the variable is written", func() {
			f.seeKustomization(0, kustomization.Substitute(variable, "1.0.0").Generation(2).Obj())
		}, []job{{kustomizationWritten, 0}}},
		{"it was applied", func() {
			f.seeKustomization(0, kustomization.Applied(f.revision("1.0.0")).Ready().Obj())
		}, []job{}},
	}
	for _, step := range steps {
		step.see()
		if diff := cmp.Diff(step.want, waiting(), cmp.AllowUnexported(job{})); diff != "" {
			t.Errorf("%s: answers (-want +got):\n%s", step.happens, diff)
		}
	}
}

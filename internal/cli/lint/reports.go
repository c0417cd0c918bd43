// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
)

// reportRepository is a repository for reports that an Environment names.
type reportRepository struct {
	at
	name string
}

// reportRepositories returns those that an Environment of type oci names: for its own
// report, and for those of upstreams in other clusters.
func (r *report) reportRepositories() []reportRepository {
	var all []reportRepository
	for _, e := range r.environmentsWithReports() {
		if e.Spec.Backend.Project != "" {
			all = append(all, reportRepository{at{e.object, []string{"spec", "backend", "project"}}, e.Spec.Backend.Project})
		}
	}
	r.eachUpstream(func(_ parsedEnvironment, u environmentsv1.Upstream, where at) {
		if u.IsRemote() {
			all = append(all, reportRepository{at{where.object, child(where.path, "repository")}, u.Repository})
		}
	})
	return slices.DeleteFunc(all, func(repository reportRepository) bool { return hasVariable(repository.name) })
}

func (r *report) environmentsWithReports() []parsedEnvironment {
	return slices.DeleteFunc(slices.Clone(r.parsedEnvironments()), func(e parsedEnvironment) bool {
		return e.Spec.Backend.Type != environmentsv1.BackendOCI
	})
}

func checkReportRepository(r *report) {
	for _, repository := range r.reportRepositories() {
		if problem := repositoryProblem(repository.name); problem != "" {
			r.find(repository.at, fmt.Sprintf("%s is not the name of a repository: %s", repository.name, problem),
				"write only the registry and the path, such as registry.example.com/promotions/staging")
		}
	}
}

// repositoryProblem returns why a text is not the name of a repository; empty if it may be
// one. Each of these is what other fields of Flux want, or what people copy.
func repositoryProblem(name string) string {
	path := name[strings.LastIndex(name, "/")+1:]
	switch {
	case strings.Contains(name, "://"):
		return "it has a scheme"
	case strings.Contains(name, "@"):
		return "it has a digest"
	case !strings.Contains(name, "/"):
		return "it has no registry, or no path"
	case strings.Contains(path, ":"):
		return "it has a tag, and each Rollout has a tag of its own there"
	}
	return ""
}

// checkReportsAmongReleases finds repositories in which those who write reports could
// write releases, too.
func checkReportsAmongReleases(r *report) {
	for _, repository := range r.reportRepositories() {
		for _, source := range slices.Concat(r.byKind[imageRepositoryKind], r.byKind[repositoryKind]) {
			if image := imageOf(source); image != "" && imagename.Canonical(image) == imagename.Canonical(repository.name) {
				r.find(repository.at, fmt.Sprintf("%s pulls from this repository, too: who may write a report there may write a release", source),
					"give the reports a repository of their own, and their writer no right to push elsewhere")
				break
			}
		}
	}
}

// imageOf returns the name of the image that a source pulls; empty if it is not known.
func imageOf(o *object) string {
	image := o.text("spec", "image")
	if image == "" {
		image = strings.TrimPrefix(o.text("spec", "url"), "oci://")
	}
	if hasVariable(image) {
		return ""
	}
	return image
}

func checkNoReports(r *report) {
	for _, e := range r.environmentsWithReports() {
		if e.Spec.Backend.Project == "" && !slices.ContainsFunc(e.GetUpstreams(), environmentsv1.Upstream.IsRemote) {
			r.find(at{e.object, []string{"spec", "backend"}}, "the Environment has neither backend.project nor an upstream with a repository: its backend does no more than type cluster",
				"set backend.project, if an environment in another cluster comes after this one, or backend.type: cluster")
		}
	}
}

func checkRequeueInterval(r *report) {
	for _, e := range r.environmentsWithReports() {
		if given := e.Spec.RequeueInterval; given != nil && given.Duration < e.GetRequeueInterval() {
			r.find(at{e.object, []string{"spec", "requeueInterval"}}, fmt.Sprintf("a requeueInterval of %s is taken as %s", given.Duration, e.GetRequeueInterval()),
				fmt.Sprintf("set %s, or more", e.GetRequeueInterval()))
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationk8sv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

// installationHealth is whether what is installed works.
type installationHealth struct {
	installed
	// leases are those of the controller; leasesErr is why they could not be listed.
	leases    []coordinationk8sv1.Lease
	leasesErr error
	now       time.Time
	*program.Program
}

func (c *checking) installation(ctx context.Context, open program.Cluster) installationHealth {
	h := installationHealth{installed: readInstalled(ctx, open), now: c.Now(), Program: c.Program}
	list := &coordinationk8sv1.LeaseList{}
	if h.leasesErr = open.Client.List(ctx, list); h.leasesErr != nil {
		return h
	}
	for i := range list.Items {
		if strings.Contains(list.Items[i].Name, installation.Lease) && list.Items[i].Spec.RenewTime != nil {
			h.leases = append(h.leases, list.Items[i])
		}
	}
	return h
}

func (h installationHealth) findings() []lint.Finding {
	all := h.outdated()
	if h.definitionsErr != nil && !apierrors.IsForbidden(h.definitionsErr) {
		all = append(all, notRead("CustomResourceDefinitions", h.definitionsErr))
	}
	return append(all, h.leader()...)
}

// refused returns what the user may not list.
func (h installationHealth) refused() []string {
	var all []string
	if apierrors.IsForbidden(h.definitionsErr) {
		all = append(all, "CustomResourceDefinitions")
	}
	if apierrors.IsForbidden(h.leasesErr) {
		all = append(all, "Leases")
	}
	return all
}

// outdated compares the definitions in the cluster with those of this program.
func (h installationHealth) outdated() []lint.Finding {
	var all []lint.Finding
	for _, d := range h.differences() {
		object := "CustomResourceDefinition " + d.name
		if len(d.lacks) > 0 {
			all = append(all, lint.Finding{
				Rule: olderCRD, Severity: lint.SeverityWarning, Object: object,
				Message: "is older than this program: it has no " + listed(d.lacks),
				Remedy:  "apply the CustomResourceDefinitions of the same release as this program; until then, the API server drops these fields",
			})
		}
		if len(d.adds) > 0 {
			all = append(all, lint.Finding{
				Rule: newerCRD, Severity: lint.SeverityWarning, Object: object,
				Message: "is newer than this program, which does not know " + listed(d.adds),
				Remedy:  "install the command line of the same release; until then, R101 may report these fields",
			})
		}
	}
	return all
}

// mostListed is how many fields a message names.
const mostListed = 3

func listed(fields []string) string {
	text := strings.Join(fields[:min(len(fields), mostListed)], ", ")
	if more := len(fields) - mostListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// leaseGrace is how long after its last renewal a lease counts as held. The controller
// renews every two seconds.
const leaseGrace = time.Minute

// leader looks for a controller that holds its lease.
func (h installationHealth) leader() []lint.Finding {
	switch {
	case apierrors.IsForbidden(h.leasesErr):
		return nil
	case h.leasesErr != nil:
		return []lint.Finding{notRead("Leases", h.leasesErr)}
	case len(h.leases) == 0:
		return []lint.Finding{{
			Rule: noLeader, Severity: lint.SeverityError,
			Message: "no controller holds a lease", Remedy: "install the controller, or look at the logs of its pods. With --leader-elect=false it holds none",
		}}
	}
	var late []lint.Finding
	for i := range h.leases {
		lease := &h.leases[i]
		if age := h.age(lease); age > leaseGrace {
			late = append(late, lint.Finding{
				Rule: leaderLate, Severity: lint.SeverityError, Object: "Lease " + lease.Namespace + "/" + lease.Name,
				Message: "was last renewed " + show.Span(age) + " ago: this controller does not run", Remedy: "look at the pods and logs of the controller; a lease that nobody uses any more can be deleted",
			})
		}
	}
	return late
}

func (h installationHealth) age(lease *coordinationk8sv1.Lease) time.Duration {
	return h.now.Sub(lease.Spec.RenewTime.Time)
}

// unserved finds the Rollouts for which no instance acts.
func (h installationHealth) unserved(objects []map[string]any) ([]lint.Finding, []lint.NotChecked) {
	if reason := h.unknownInstances(); reason != "" {
		return nil, []lint.NotChecked{{Rule: noInstance, Reason: reason}}
	}
	var all []lint.Finding
	for _, content := range objects {
		o := unstructured.Unstructured{Object: content}
		if o.GetKind() != "Rollout" || slices.ContainsFunc(h.instances, func(i installation.Instance) bool {
			return i.ActsFor(o.GetNamespace(), o.GetLabels())
		}) {
			continue
		}
		all = append(all, lint.Finding{
			Rule: noInstance, Severity: lint.SeverityError, Object: "Rollout " + o.GetNamespace() + "/" + o.GetName(),
			Message: fmt.Sprintf("no instance of the controller acts for it: %s; it has %s", h.served(), labelsIn(o)),
			Remedy:  "correct its labels, or start an instance whose --watch-label-selector matches them",
		})
	}
	return all, nil
}

func labelsIn(o unstructured.Unstructured) string {
	if len(o.GetLabels()) == 0 {
		return "no labels"
	}
	return fmt.Sprintf("the labels %q", labels.Set(o.GetLabels()))
}

// unknownInstances says why it is not known for what the instances act; empty if it is. A
// lease that is held by something else than the Deployments shows that there is more.
func (h installationHealth) unknownInstances() string {
	switch {
	case h.instancesErr != nil:
		return "the Deployments of the controller could not be listed: " + h.instancesErr.Error()
	case len(h.instances) == 0:
		return fmt.Sprintf("no Deployment of the controller was found, by the label %s=%s", installation.NameLabel, installation.PodLabels[installation.NameLabel])
	}
	for i := range h.leases {
		lease := &h.leases[i]
		isKnown := slices.ContainsFunc(h.instances, func(i installation.Instance) bool { return i.LeaseName() == lease.Name })
		if !isKnown && h.age(lease) <= leaseGrace {
			return fmt.Sprintf("Lease %s/%s is held by an instance that is not among the Deployments that were found", lease.Namespace, lease.Name)
		}
	}
	return ""
}

// served says for what the instances act.
func (h installationHealth) served() string {
	all := make([]string, 0, len(h.instances))
	for _, i := range h.instances {
		all = append(all, fmt.Sprintf("Deployment %s/%s %s", i.Namespace, i.Name, actsFor(i)))
	}
	return strings.Join(all, ", ")
}

func actsFor(i installation.Instance) string {
	text := "acts for all"
	switch {
	case !i.Promotes:
		return "acts for no Rollouts"
	case !i.Selector.Empty():
		text = fmt.Sprintf("acts for %q", i.Selector)
	}
	if i.Only != "" {
		text += " in its namespace"
	}
	return text
}

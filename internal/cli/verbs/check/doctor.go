// SPDX-License-Identifier: Apache-2.0

// Package check has the verbs that find mistakes: lint in manifests, doctor in a cluster and
// in the installation, and version, which says what is installed.
package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

type checking struct {
	linting
	everywhere bool
}

// NewDoctor returns the verb doctor.
func NewDoctor(p *program.Program) *cobra.Command {
	c := &checking{linting: linting{Program: p}}
	cmd := &cobra.Command{
		Use: "doctor", Short: "Find mistakes in a cluster, and see whether the controller works",
		Long: `Check the installation, and lint the objects of the namespace or, with -A, of all
namespaces. Exit code 2 if something is wrong.

The installation is what the API server serves, the CustomResourceDefinitions, the
Deployments of the controller and their Leases. Where environments exchange reports
with other clusters, it is also the Secrets with their keys, as far as you may read
them.

Rules about a cluster, in addition to those of lint:

- D101: a kind that is not served, and that Flux, the controller or a Rollout needs
- D102: what could not be read, such as what you may not list
- D103, D104: a CustomResourceDefinition without fields that this program knows, or with
  fields that it does not know: one of them is older
- D201, D202: no Lease of a controller, or one that was not renewed for a minute
- D203: a Rollout whose labels no instance of the controller selects. Not checked if the
  controller's Deployments cannot be listed, or if an instance holds a Lease without
  being one of them
- D204: Environments for which no controller acts: it is left out of --controllers, or
  does not start
- D205: Environments of type oci, and a controller without --cluster-name and
  --signing-key-secret to write reports, or --trusted-keys-secret to read them; or the
  feature is off
- D206: a Secret with keys of reports that does not exist, or has an unusable key; an
  upstream in another cluster for which no key may sign, or one in any.pub may. Not
  checked if you may not read the Secret
- D207: gates that ask for approvals, of which none counts, because nobody vouches for
  the names. Not checked if you may not read the policies
- D301: a freeze that is over
- D302: an Environment that is not ready, unless another rule says more
- D303: an ImagePolicy of a Rollout, or its ImageRepository, that is suspended
- D304: an OCIRepository that runs a version that was never promoted`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.out = program.NewOutput(cmd, "github")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "look at all namespaces")
	cmd.Flags().StringSliceVar(&c.disable, "disable", nil, "rules that report nothing: R305")
	cmd.Flags().BoolVarP(&c.verbose, "verbose", "v", false, "say what could not be checked, and why")
	return cmd
}

func (c *checking) run(ctx context.Context) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	namespace, err := c.Namespace()
	if err != nil {
		return err
	}
	if c.everywhere {
		namespace = ""
	}
	open, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	read := c.read(ctx, open, namespace)
	objects := read.objects
	options.Unlisted = read.unlisted
	health := c.installation(ctx, open)
	findings := slices.Concat(read.findings, c.notListed(append(read.refused, health.refused()...)), health.findings())
	unserved, notChecked := health.unserved(objects)
	reports, notRead := health.reports(ctx, open, objects)
	void, unknown := health.approvals(ctx, open, objects)
	findings, notChecked = slices.Concat(findings, unserved, reports, void), slices.Concat(notChecked, notRead, unknown)
	leftovers := c.leftovers(objects)
	result := lint.Cluster(objects, options)
	result.Findings = without(result.Findings, leftovers)
	environments := without(health.environments(objects), causesIn(result.Findings))
	result.Findings = slices.Concat(findings, leftovers, suspensions(objects), notPromoted(objects), environments, result.Findings)
	result.NotChecked = append(notChecked, result.NotChecked...)
	return c.report(result)
}

// Rules about a cluster, which no manifest can break.
const (
	notServed  = "D101"
	notAllowed = "D102"
	olderCRD   = "D103"
	newerCRD   = "D104"
	noLeader   = "D201"
	leaderLate = "D202"
	noInstance = "D203"
	leftover   = "D301"
	suspended  = "D303"

	environmentsOff = "D204"
	reportFlags     = "D205"
	reportKeys      = "D206"
	notReady        = "D302"
	runsUnpromoted  = "D304"
	voidApprovals   = "D207"
)

// examined is what was read of the kinds that are examined.
type examined struct {
	objects  []map[string]any
	findings []lint.Finding
	// unlisted are the kinds that were not read although there may be objects, and refused
	// those of them that the user may not list.
	unlisted []schema.GroupKind
	refused  []string
}

// read lists everything that is examined at once.
func (c *checking) read(ctx context.Context, open program.Cluster, namespace string) examined {
	lists, errs := make([]*unstructured.UnstructuredList, len(kinds.All)), make([]error, len(kinds.All))
	var group sync.WaitGroup
	for i, kind := range kinds.All {
		group.Go(func() { lists[i], errs[i] = list(ctx, open, kind, namespace) })
	}
	group.Wait()
	var e examined
	unserved := map[schema.GroupVersion][]string{}
	for i, kind := range kinds.All {
		if errs[i] == nil {
			for _, item := range lists[i].Items {
				e.objects = append(e.objects, item.Object)
			}
			continue
		}
		e.unread(kind, errs[i])
		if program.IsMissing(errs[i]) && !kind.Optional {
			unserved[kind.GroupVersion()] = append(unserved[kind.GroupVersion()], kind.Kind)
		}
	}
	e.findings = append(unservedKinds(unserved), e.findings...)
	return e
}

// unread notes why a kind was not read.
func (e *examined) unread(kind kinds.Kind, err error) {
	switch missing := program.IsMissing(err); {
	case missing && kind.Optional:
		e.findings = append(e.findings, unservedButNamed(kind.Kind, e.objects)...)
		return
	case missing:
	case apierrors.IsForbidden(err):
		e.refused = append(e.refused, kinds.Plural(kind.Kind))
	default:
		e.findings = append(e.findings, notRead(kinds.Plural(kind.Kind), err))
	}
	e.unlisted = append(e.unlisted, kind.GroupKind())
}

// notRead says why objects of some kind could not be read.
func notRead(plural string, err error) lint.Finding {
	return lint.Finding{Rule: notAllowed, Severity: lint.SeverityError, Message: fmt.Sprintf("%s could not be read: %s", plural, err)}
}

// unservedKinds says which kinds the API server does not serve.
func unservedKinds(by map[schema.GroupVersion][]string) []lint.Finding {
	var all []lint.Finding
	for _, gv := range slices.SortedFunc(maps.Keys(by), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }) {
		remedy := "install its CustomResourceDefinition"
		if len(by[gv]) > 1 {
			remedy = "install their CustomResourceDefinitions"
		}
		all = append(all, lint.Finding{
			Rule: notServed, Severity: lint.SeverityError,
			Message: fmt.Sprintf("the API server serves no %s of %s", show.Words(by[gv], "or"), gv), Remedy: remedy,
		})
	}
	return all
}

// notListed says which kinds the user may not list.
func (c *checking) notListed(refused []string) []lint.Finding {
	if len(refused) == 0 {
		return nil
	}
	remedy := "ask for the right"
	if c.everywhere {
		remedy += ", or look only at a namespace, with -n"
	}
	return []lint.Finding{{
		Rule: notAllowed, Severity: lint.SeverityWarning, Message: fmt.Sprintf("you may not list %s, so nothing is said about them", show.Words(refused, "and")), Remedy: remedy,
	}}
}

func list(ctx context.Context, open program.Cluster, kind kinds.Kind, namespace string) (*unstructured.UnstructuredList, error) {
	all := &unstructured.UnstructuredList{}
	for next := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		options := []client.ListOption{client.Limit(program.PageSize), client.Continue(next)}
		if !kind.Global {
			options = append(options, client.InNamespace(namespace))
		}
		if err := open.Client.List(ctx, page, options...); err != nil {
			return nil, err
		}
		all.Items = append(all.Items, page.Items...)
		if next = page.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// unservedButNamed finds Rollouts that need a kind which is not served. Others do without.
func unservedButNamed(kind string, objects []map[string]any) []lint.Finding {
	switch kind {
	case environmentsv1.EnvironmentKind:
		return unservedEnvironments(objects)
	case v1alpha1.ReleaseQuarantineKind, v1alpha1.ClusterReleaseQuarantineKind:
		return unservedQuarantines(kind, objects)
	}
	return nil
}

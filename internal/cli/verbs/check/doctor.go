// SPDX-License-Identifier: Apache-2.0

// Package check has the verbs that find mistakes: lint in manifests, doctor in a cluster and
// in the installation, and version, which says what is installed.
package check

import (
	"context"
	"fmt"
	"slices"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
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
them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.out = program.NewOutput(cmd, "github")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "look at all namespaces")
	cmd.Flags().StringSliceVar(&c.disable, "disable", nil, "rules that report nothing: R305")
	cmd.Flags().BoolVarP(&c.verbose, "verbose", "v", false, "say what could not be checked, and why")
	return cmd
}

// Examined are the kinds that the rules of lint are about.
var Examined = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("Rollout"), v1alpha1.GroupVersion.WithKind("RolloutGate"),
	v1alpha1.GroupVersion.WithKind("RolloutSchedule"), v1alpha1.GroupVersion.WithKind("ClusterRolloutSchedule"),
	v1alpha1.GroupVersion.WithKind(v1alpha1.ReleaseQuarantineKind), v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterReleaseQuarantineKind),
	v1alpha1.GroupVersion.WithKind("HealthCheck"), environmentsv1.GroupVersion.WithKind("Environment"),
	coordinationv1.GroupVersion.WithKind("DeploymentCoordination"),
	imagev1.GroupVersion.WithKind("ImagePolicy"), imagev1.GroupVersion.WithKind("ImageRepository"),
	sourcev1.GroupVersion.WithKind("OCIRepository"), sourcev1.GroupVersion.WithKind("GitRepository"),
	kustomizev1.GroupVersion.WithKind("Kustomization"), helmv2.GroupVersion.WithKind("HelmRelease"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	corev1.SchemeGroupVersion.WithKind("Namespace"),
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
	objects, findings, unlisted := c.read(ctx, open, namespace)
	options.Disable = append(options.Disable, guessing(unlisted)...)
	health := c.installation(ctx, open)
	findings = append(findings, health.findings()...)
	unserved, notChecked := health.unserved(objects)
	reports, notRead := health.reports(ctx, open, objects)
	findings, notChecked = slices.Concat(findings, unserved, reports), append(notChecked, notRead...)
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
)

// read lists everything that is examined at once. It also returns the kinds that are
// served and could not be listed.
func (c *checking) read(ctx context.Context, open program.Cluster, namespace string) (objects []map[string]any, findings []lint.Finding, unlisted []string) {
	lists, errs := make([]*unstructured.UnstructuredList, len(Examined)), make([]error, len(Examined))
	var group sync.WaitGroup
	for i, kind := range Examined {
		group.Go(func() { lists[i], errs[i] = list(ctx, open, kind, namespace) })
	}
	group.Wait()
	for i, kind := range Examined {
		if errs[i] != nil {
			findings = append(findings, unread(kind, errs[i])...)
			if program.IsMissing(errs[i]) {
				findings = append(findings, unservedButNamed(kind.Kind, objects)...)
			} else {
				unlisted = append(unlisted, kind.Kind)
			}
			continue
		}
		for _, item := range lists[i].Items {
			objects = append(objects, item.Object)
		}
	}
	return objects, findings, unlisted
}

// guessing returns the rules that would have to guess, because they say that no object of
// these kinds is there.
func guessing(unlisted []string) []string {
	if slices.Contains(unlisted, kustomizev1.KustomizationKind) || slices.Contains(unlisted, helmv2.HelmReleaseKind) {
		return []string{"R212"}
	}
	return nil
}

func list(ctx context.Context, open program.Cluster, kind schema.GroupVersionKind, namespace string) (*unstructured.UnstructuredList, error) {
	all := &unstructured.UnstructuredList{}
	for next := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		options := []client.ListOption{client.Limit(program.PageSize), client.Continue(next)}
		if program.ScopeOf(kind) == meta.RESTScopeNamespace {
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

// optional are the kinds without which Rollouts work.
var optional = map[string]bool{
	"DeploymentCoordination": true, "Environment": true, "HelmRelease": true, "GitRepository": true,
	v1alpha1.ReleaseQuarantineKind: true, v1alpha1.ClusterReleaseQuarantineKind: true,
}

func unread(kind schema.GroupVersionKind, err error) []lint.Finding {
	missing := program.IsMissing(err)
	switch {
	case missing && optional[kind.Kind]:
		return nil
	case missing:
		return []lint.Finding{{
			Rule: notServed, Severity: lint.SeverityError,
			Message: fmt.Sprintf("the API server serves no %s of %s", kind.Kind, kind.GroupVersion()), Remedy: "install its CustomResourceDefinition",
		}}
	case apierrors.IsForbidden(err):
		return []lint.Finding{{
			Rule: notAllowed, Severity: lint.SeverityWarning,
			Message: fmt.Sprintf("you may not list %ss, so nothing is said about them", kind.Kind), Remedy: "ask for the right, or look only at a namespace, with -n",
		}}
	}
	return []lint.Finding{{Rule: notAllowed, Severity: lint.SeverityError, Message: fmt.Sprintf("%ss could not be read: %s", kind.Kind, err)}}
}

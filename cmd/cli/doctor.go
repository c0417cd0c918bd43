// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	coordinationk8sv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/lint"
	"github.com/fluxrollouts/rollout-controller/internal/show"
)

type checking struct {
	linting
	everywhere bool
}

func newDoctor(p *program) *cobra.Command {
	c := &checking{linting: linting{program: p}}
	cmd := &cobra.Command{
		Use: "doctor", Short: "Find mistakes in a cluster, and see whether the controller works",
		Long: `Check the installation, and lint the objects of the namespace or, with -A, of all
namespaces. Exit code 2 if something is wrong.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.out = newOutput(cmd, "github")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "look at all namespaces")
	cmd.Flags().StringSliceVar(&c.disable, "disable", nil, "rules that report nothing: R305")
	cmd.Flags().BoolVarP(&c.verbose, "verbose", "v", false, "say what could not be checked, and why")
	return cmd
}

// examined are the kinds that the rules of lint are about.
var examined = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("Rollout"), v1alpha1.GroupVersion.WithKind("RolloutGate"),
	v1alpha1.GroupVersion.WithKind("RolloutSchedule"), v1alpha1.GroupVersion.WithKind("ClusterRolloutSchedule"),
	v1alpha1.GroupVersion.WithKind("HealthCheck"), coordinationv1.GroupVersion.WithKind("DeploymentCoordination"),
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
	namespace, err := c.namespace()
	if err != nil {
		return err
	}
	if c.everywhere {
		namespace = ""
	}
	open, err := c.connect(ctx)
	if err != nil {
		return err
	}
	objects, installation := c.read(ctx, open, namespace)
	installation = append(installation, c.leader(ctx, open)...)
	result := lint.Cluster(objects, options)
	result.Findings = append(installation, result.Findings...)
	return c.report(result)
}

// Rules about the installation, which no manifest can break.
const (
	notServed  = "D101"
	notAllowed = "D102"
	noLeader   = "D201"
	leaderLate = "D202"
)

// read lists everything that is examined at once.
func (c *checking) read(ctx context.Context, open cluster, namespace string) (objects []map[string]any, findings []lint.Finding) {
	lists, errs := make([]*unstructured.UnstructuredList, len(examined)), make([]error, len(examined))
	var group sync.WaitGroup
	for i, kind := range examined {
		group.Go(func() { lists[i], errs[i] = list(ctx, open, kind, namespace) })
	}
	group.Wait()
	for i, kind := range examined {
		if errs[i] != nil {
			findings = append(findings, unread(kind, errs[i])...)
			continue
		}
		for _, item := range lists[i].Items {
			objects = append(objects, item.Object)
		}
	}
	return objects, findings
}

func list(ctx context.Context, open cluster, kind schema.GroupVersionKind, namespace string) (*unstructured.UnstructuredList, error) {
	all := &unstructured.UnstructuredList{}
	for next := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		options := []client.ListOption{client.Limit(pageSize), client.Continue(next)}
		if scopeOf(kind) == meta.RESTScopeNamespace {
			options = append(options, client.InNamespace(namespace))
		}
		if err := open.client.List(ctx, page, options...); err != nil {
			return nil, err //nolint:wrapcheck // unread says what could not be read
		}
		all.Items = append(all.Items, page.Items...)
		if next = page.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// optional are the kinds without which Rollouts work.
var optional = map[string]bool{"DeploymentCoordination": true, "HelmRelease": true, "GitRepository": true}

func unread(kind schema.GroupVersionKind, err error) []lint.Finding {
	missing := apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
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

// leaseName is in the name of each lease of the controller. Shards add to it.
const leaseName = "8108ddc4.kuberik.com"

// leaseGrace is how long after its last renewal a lease counts as held. The controller
// renews every two seconds.
const leaseGrace = time.Minute

// leader looks for a controller that holds its lease.
func (c *checking) leader(ctx context.Context, open cluster) []lint.Finding {
	leases := &coordinationk8sv1.LeaseList{}
	if err := open.client.List(ctx, leases); err != nil {
		return unread(coordinationk8sv1.SchemeGroupVersion.WithKind("Lease"), err)
	}
	found := false
	var late []lint.Finding
	for i := range leases.Items {
		lease := &leases.Items[i]
		if !strings.Contains(lease.Name, leaseName) || lease.Spec.RenewTime == nil {
			continue
		}
		found = true
		if age := c.now().Sub(lease.Spec.RenewTime.Time); age > leaseGrace {
			late = append(late, lint.Finding{
				Rule: leaderLate, Severity: lint.SeverityError, Object: "Lease " + lease.Namespace + "/" + lease.Name,
				Message: "was last renewed " + show.Span(age) + " ago: this controller does not run", Remedy: "look at the pods and logs of the controller; a lease that nobody uses any more can be deleted",
			})
		}
	}
	if !found {
		return []lint.Finding{{
			Rule: noLeader, Severity: lint.SeverityError,
			Message: "no controller holds a lease", Remedy: "install the controller, or look at the logs of its pods. With --leader-elect=false it holds none",
		}}
	}
	return late
}

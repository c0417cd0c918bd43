// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	operator "k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// Names of the field indexes by which Rollouts and their selected HealthChecks find each
// other without a search through all objects.
const (
	// checkLabelIndex finds HealthChecks by each of their labels, "key=value", and those
	// with too many labels by manyLabels.
	checkLabelIndex = ".metadata.labels"
	manyLabels      = "*"
	// nearTermIndex finds Rollouts that select HealthChecks in their own namespace, by a
	// label that the checks must have, "key=value".
	nearTermIndex = ".spec.healthCheckSelector.near"
	// farTermIndex finds those that select HealthChecks in other namespaces in the same
	// way, and all of them by anyTerm.
	farTermIndex = fieldindex.Everywhere + ".spec.healthCheckSelector.far"
	anyTerm      = "*"
	// noLabel is the label of a selector that requires none.
	noLabel = ""
)

// mostLabels is how many labels of a HealthCheck are indexed one by one. Only the size of
// an object limits its labels, so all checks with more share one value of the index.
const mostLabels = 32

func indexSelections(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.HealthCheck{}, checkLabelIndex, indexedLabels); err != nil {
		return fmt.Errorf("index HealthChecks by label: %w", err)
	}
	err := errors.Join(indexer.IndexField(ctx, &v1alpha1.Rollout{}, nearTermIndex, nearTerms),
		indexer.IndexField(ctx, &v1alpha1.Rollout{}, farTermIndex, farTerms))
	if err != nil {
		return fmt.Errorf("index Rollouts by the labels of their HealthChecks: %w", err)
	}
	return nil
}

func labelsOf(o client.Object) []string {
	var all []string
	for key, value := range o.GetLabels() {
		all = append(all, label(key, value))
	}
	return all
}

func indexedLabels(o client.Object) []string {
	if len(o.GetLabels()) > mostLabels {
		return []string{manyLabels}
	}
	return labelsOf(o)
}

func label(key, value string) string { return key + "=" + value }

func nearTerms(o client.Object) []string {
	s, err := selectionOf(o.(*v1alpha1.Rollout))
	if err != nil || s.checks == nil || s.namespaces != nil {
		return nil
	}
	return s.terms()
}

func farTerms(o client.Object) []string {
	s, err := selectionOf(o.(*v1alpha1.Rollout))
	if err != nil || s.checks == nil || s.namespaces == nil {
		return nil
	}
	return append(s.terms(), anyTerm)
}

func (s selection) terms() []string {
	if required := requiredLabels(s.checks); len(required) > 0 {
		return required
	}
	return []string{noLabel}
}

// requiredLabels returns labels of one key. Every selected object has exactly one of
// them. It returns none if the selector requires no such label. If there are several
// keys, it takes one with few and long values: names are more selective than tiers.
func requiredLabels(selector labels.Selector) []string {
	requirements, _ := selector.Requirements()
	requirements = slices.DeleteFunc(slices.Clone(requirements), func(r labels.Requirement) bool { return !asksForValue(r) })
	if len(requirements) == 0 {
		return nil
	}
	best := slices.MinFunc(requirements, func(a, b labels.Requirement) int {
		x, y := a.ValuesUnsorted(), b.ValuesUnsorted()
		return cmp.Or(cmp.Compare(len(x), len(y)), -cmp.Compare(longest(x), longest(y)), strings.Compare(a.Key(), b.Key()))
	})
	var required []string
	for _, value := range best.ValuesUnsorted() {
		required = append(required, label(best.Key(), value))
	}
	return required
}

func asksForValue(r labels.Requirement) bool {
	switch r.Operator() {
	case operator.In, operator.Equals, operator.DoubleEquals:
		return true
	}
	return false
}

func longest(values []string) int {
	most := 0
	for _, value := range values {
		most = max(most, len(value))
	}
	return most
}

// selection describes which HealthChecks a Rollout selects.
type selection struct {
	checks     labels.Selector // nil selects none
	namespaces labels.Selector // nil selects the own namespace
	own        string
}

func selectionOf(rollout *v1alpha1.Rollout) (selection, error) {
	s := selection{own: rollout.Namespace}
	spec := rollout.Spec.HealthCheckSelector
	checks := spec.LabelSelector()
	if checks == nil {
		return s, nil
	}
	var err error
	if s.checks, err = metav1.LabelSelectorAsSelector(checks); err != nil {
		return s, err
	}
	if spec.NamespaceSelector != nil {
		s.namespaces, err = metav1.LabelSelectorAsSelector(spec.NamespaceSelector)
	}
	return s, err
}

// selectedChecks returns the selected checks, sorted by namespace and name.
func (r *RolloutReconciler) selectedChecks(ctx context.Context, s selection) ([]v1alpha1.HealthCheck, error) {
	if s.checks == nil {
		return nil, nil
	}
	namespaces, err := r.namespacesOf(ctx, s)
	if err != nil {
		return nil, err
	}
	var checks []v1alpha1.HealthCheck
	for _, query := range s.queries(namespaces) {
		list := &v1alpha1.HealthCheckList{}
		if err := r.Client.List(ctx, list, append(query, client.MatchingLabelsSelector{Selector: s.checks})...); err != nil {
			return nil, fmt.Errorf("list HealthChecks: %w", err)
		}
		checks = append(checks, list.Items...)
	}
	slices.SortFunc(checks, func(a, b v1alpha1.HealthCheck) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return checks, nil
}

// queries returns queries for the checks in the namespaces: by a label if the selection
// requires one, otherwise for all.
func (s selection) queries(namespaces []string) [][]client.ListOption {
	required := requiredLabels(s.checks)
	var queries [][]client.ListOption
	for _, namespace := range namespaces {
		within := client.InNamespace(namespace)
		if len(required) == 0 {
			queries = append(queries, []client.ListOption{within})
			continue
		}
		for _, label := range append(slices.Clone(required), manyLabels) {
			queries = append(queries, []client.ListOption{within, client.MatchingFields{checkLabelIndex: label}})
		}
	}
	return queries
}

func (r *RolloutReconciler) namespacesOf(ctx context.Context, s selection) ([]string, error) {
	if s.namespaces == nil {
		return []string{s.own}, nil
	}
	list := namespaceList()
	if err := r.Client.List(ctx, list, client.MatchingLabelsSelector{Selector: s.namespaces}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// rolloutsOfCheck maps a HealthCheck to the Rollouts that select its labels. If it has
// too many labels, all Rollouts that may select it are examined.
func (r *RolloutReconciler) rolloutsOfCheck(ctx context.Context, check client.Object) []reconcile.Request {
	within := client.InNamespace(check.GetNamespace())
	if len(check.GetLabels()) > mostLabels {
		return append(r.selecting(ctx, check, within), r.selecting(ctx, check, client.MatchingFields{farTermIndex: anyTerm})...)
	}
	var requests []reconcile.Request
	for _, label := range append(labelsOf(check), noLabel) {
		near, far := client.MatchingFields{nearTermIndex: label}, client.MatchingFields{farTermIndex: label}
		requests = append(requests, r.selecting(ctx, check, near, within)...)
		requests = append(requests, r.selecting(ctx, check, far)...)
	}
	return requests
}

func (r *RolloutReconciler) selecting(ctx context.Context, check client.Object, query ...client.ListOption) []reconcile.Request {
	list := &v1alpha1.RolloutList{}
	if err := r.Client.List(ctx, list, append(query, client.UnsafeDisableDeepCopy, unreadable.Left{})...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list Rollouts of a HealthCheck")
	}
	var requests []reconcile.Request
	for i := range list.Items {
		s, err := selectionOf(&list.Items[i])
		if err == nil && s.checks != nil && s.checks.Matches(labels.Set(check.GetLabels())) {
			requests = append(requests, named(&list.Items[i], list.Items[i].Name)...)
		}
	}
	return requests
}

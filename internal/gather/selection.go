// SPDX-License-Identifier: Apache-2.0

package gather

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
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// checkOwnerIndex finds HealthChecks by the UID of the Rollout that owns them.
	checkOwnerIndex = ".metadata.ownerReferences"
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

// AcrossNamespaces is a query for the Rollouts that select HealthChecks of other
// namespaces.
var AcrossNamespaces = client.MatchingFields{farTermIndex: anyTerm}

// mostLabels is how many labels of a HealthCheck are indexed one by one. Only the size of
// an object limits its labels, so all checks with more share one value of the index.
const mostLabels = 32

// IndexSelections adds the field indexes by which Rollouts and their HealthChecks are
// found.
func IndexSelections(ctx context.Context, indexer client.FieldIndexer) error {
	err := errors.Join(indexer.IndexField(ctx, &v1alpha1.HealthCheck{}, checkLabelIndex, indexedLabels),
		indexer.IndexField(ctx, &v1alpha1.HealthCheck{}, checkOwnerIndex, indexedOwner))
	if err != nil {
		return fmt.Errorf("index HealthChecks: %w", err)
	}
	err = errors.Join(indexer.IndexField(ctx, &v1alpha1.Rollout{}, nearTermIndex, nearTerms),
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

// selectedChecks returns the selected checks, sorted by namespace and name. Those that
// Rollouts own are about their targets, and say nothing about other Rollouts.
func (g Gatherer) selectedChecks(ctx context.Context, s selection) ([]v1alpha1.HealthCheck, error) {
	if s.checks == nil {
		return nil, nil
	}
	namespaces, err := g.namespacesOf(ctx, s)
	if err != nil {
		return nil, err
	}
	var checks []v1alpha1.HealthCheck
	for _, query := range s.queries(namespaces) {
		list := &v1alpha1.HealthCheckList{}
		if err := g.Client.List(ctx, list, append(query, client.MatchingLabelsSelector{Selector: s.checks})...); err != nil {
			return nil, fmt.Errorf("list HealthChecks: %w", err)
		}
		checks = append(checks, slices.DeleteFunc(list.Items, isOwned)...)
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

func (g Gatherer) namespacesOf(ctx context.Context, s selection) ([]string, error) {
	if s.namespaces == nil {
		return []string{s.own}, nil
	}
	list, err := Namespaces(ctx, g.Client, client.MatchingLabelsSelector{Selector: s.namespaces})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names, nil
}

// Selects reports whether a Rollout selects a HealthCheck, and may. A selector that cannot be
// used selects nothing. The reader must have the namespaces. Of the Rollout, only the name
// and spec.healthCheckSelector are needed.
func Selects(ctx context.Context, c client.Reader, rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) (bool, error) {
	if owner := ownerOf(check); owner != nil {
		return owner.UID == rollout.UID, nil
	}
	s, err := selectionOf(rollout)
	if err != nil || s.checks == nil || !s.checks.Matches(labels.Set(check.Labels)) {
		return false, nil
	}
	inScope, err := s.isInScope(ctx, c, check.Namespace)
	if err != nil || !inScope || rollout.Namespace == check.Namespace {
		return inScope, client.IgnoreNotFound(err)
	}
	from, err := namespaceLabels(ctx, c, rollout.Namespace)
	return err == nil && check.Spec.AccessFrom.Admits(from), client.IgnoreNotFound(err)
}

func (s selection) isInScope(ctx context.Context, c client.Reader, namespace string) (bool, error) {
	if s.namespaces == nil {
		return namespace == s.own, nil
	}
	of, err := namespaceLabels(ctx, c, namespace)
	return err == nil && s.namespaces.Matches(labels.Set(of)), err
}

// RolloutsOfCheck returns the Rollout that owns a HealthCheck, or those that select its labels. If it has too
// many labels, all Rollouts that may select it are examined. They belong to the cache and
// must not be changed. If a read fails, the Rollouts that others found are returned with
// the error.
func RolloutsOfCheck(ctx context.Context, c client.Reader, check client.Object) ([]*v1alpha1.Rollout, error) {
	if owner := ownerOf(check); owner != nil {
		return ofOwner(ctx, c, check.GetNamespace(), owner)
	}
	within := client.InNamespace(check.GetNamespace())
	queries := [][]client.ListOption{{within}, {AcrossNamespaces}}
	if len(check.GetLabels()) <= mostLabels {
		queries = nil
		for _, label := range append(labelsOf(check), noLabel) {
			queries = append(queries, []client.ListOption{client.MatchingFields{nearTermIndex: label}, within},
				[]client.ListOption{client.MatchingFields{farTermIndex: label}})
		}
	}
	var all []*v1alpha1.Rollout
	var failed error
	for _, query := range queries {
		some, err := selecting(ctx, c, check, query)
		all, failed = append(all, some...), errors.Join(failed, err)
	}
	return all, failed
}

func selecting(ctx context.Context, c client.Reader, check client.Object, query []client.ListOption) ([]*v1alpha1.Rollout, error) {
	list := &v1alpha1.RolloutList{}
	if err := c.List(ctx, list, append(query, client.UnsafeDisableDeepCopy, unreadable.Left{})...); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	var selected []*v1alpha1.Rollout
	for i := range list.Items {
		s, err := selectionOf(&list.Items[i])
		if err == nil && s.checks != nil && s.checks.Matches(labels.Set(check.GetLabels())) {
			selected = append(selected, &list.Items[i])
		}
	}
	return selected, nil
}

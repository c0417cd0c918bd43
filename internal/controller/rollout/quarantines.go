// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// +kubebuilder:rbac:groups=kuberik.com,resources=releasequarantines,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=kuberik.com,resources=releasequarantines/status,verbs=patch
// +kubebuilder:rbac:groups=kuberik.com,resources=clusterreleasequarantines,verbs=list;watch

// reportFailures writes failures, and what followed them, to the ReleaseQuarantines of
// their digests. It comes after the writes to targets, so that it delays no rollback. What
// cannot be written is tried again: a pass reports whatever the cache does not show yet.
func (r *Reconciler) reportFailures(ctx context.Context, recorded *v1alpha1.Rollout, in promotion.Input) error {
	if !r.quarantines.Load() || r.QuarantinesReadOnly {
		return nil
	}
	in.Rollout = recorded
	status := recorded.Status.DeepCopy()
	var errs []error
	for _, report := range promotion.Reports(in) {
		listed, err := r.reportFailure(ctx, in, report)
		if errs = append(errs, err); listed {
			promotion.Acknowledge(status.History, report)
		}
	}
	_, _, err := r.record(ctx, recorded, status, false)
	return errors.Join(append(errs, err)...)
}

// reportFailure reads the live object, because a failure must not count twice. It returns
// whether the quarantine lists the failure now.
func (r *Reconciler) reportFailure(ctx context.Context, in promotion.Input, report promotion.Report) (bool, error) {
	q := &v1alpha1.ReleaseQuarantine{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: in.Rollout.Namespace, Name: report.Name}, q)
	switch {
	case apierrors.IsNotFound(err) && report.Known:
		return false, nil // a user has deleted it since
	case apierrors.IsNotFound(err):
		q, err = r.createQuarantine(ctx, in, report)
	}
	if err == nil && q.Spec.Digest != report.Digest {
		err = fmt.Errorf("it is about another digest (%s) than the one that failed (%s): delete it", q.Spec.Digest, report.Digest)
	}
	if err != nil {
		return false, fmt.Errorf("report to ReleaseQuarantine %s/%s: %w", in.Rollout.Namespace, report.Name, err)
	}
	if managed := q.Labels[v1alpha1.ManagedByLabel] == promotion.SystemName; !report.Known && !quarantine.TakesFailures(&q.Spec, managed) {
		return false, nil // a user has created or lifted it since
	}
	err = r.addIncident(ctx, in, q, report)
	return err == nil, err
}

func (r *Reconciler) createQuarantine(ctx context.Context, in promotion.Input, report promotion.Report) (*v1alpha1.ReleaseQuarantine, error) {
	_, digits, _ := strings.Cut(report.Name, "-")
	q := &v1alpha1.ReleaseQuarantine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Rollout.Namespace, Name: report.Name,
			Labels: map[string]string{v1alpha1.QuarantineDigestLabel: digits, v1alpha1.ManagedByLabel: promotion.SystemName},
		},
		Spec: v1alpha1.ReleaseQuarantineSpec{Digest: report.Digest, Image: in.Policy.Image, Tags: tagsOf(in, report)},
	}
	if err := r.Client.Create(ctx, q); err != nil {
		return nil, err //nolint:wrapcheck // the caller says what it is about
	}
	announce.Event(ctx, r.Events, q, corev1.EventTypeWarning, v1alpha1.ReleaseQuarantinedReason,
		fmt.Sprintf("%s failed on Rollout %s: %s", report.Tag, in.Rollout.Name, report.Incident.Message))
	return q, nil
}

// tagsOf returns the tag that failed, if the image is known: a tag without an image says
// nothing.
func tagsOf(in promotion.Input, report promotion.Report) []string {
	if in.Policy.Image == "" {
		return nil
	}
	return []string{report.Tag}
}

// addIncident writes the failure or its outcome, under an optimistic lock.
func (r *Reconciler) addIncident(ctx context.Context, in promotion.Input, q *v1alpha1.ReleaseQuarantine, report promotion.Report) error {
	change := quarantine.Report
	if report.Known {
		change = quarantine.Close
	}
	next, changed := change(q.Status, report.Incident, in.Rollout.Spec.Quarantine)
	if !changed {
		return nil
	}
	next = quarantine.Settle(&q.Spec, next, q.Generation, r.Now())
	patch, err := write.StatusPatch(q.ResourceVersion, q.Status, next)
	if err == nil {
		_, err = write.PatchStatus(ctx, r.Client, q, patch)
	}
	if err != nil {
		return fmt.Errorf("write the status of ReleaseQuarantine %s/%s: %w", q.Namespace, q.Name, err)
	}
	announce.Change(ctx, v1alpha1.ReleaseQuarantinedReason, fmt.Sprintf("%s is %s in ReleaseQuarantine %s", report.Tag, next.Phase, q.Name))
	return nil
}

// WatchQuarantines makes the reconciler obey quarantines, and report to them. The API
// server must serve both kinds. It may be called once, after SetupWithManager and before
// the manager starts.
func (r *Reconciler) WatchQuarantines() error {
	on := handler.TypedEnqueueRequestsFromMapFunc[client.Object](r.rolloutsOfQuarantine)
	for _, kind := range []client.Object{&v1alpha1.ReleaseQuarantine{}, &v1alpha1.ClusterReleaseQuarantine{}} {
		if err := r.helm.watch(source.Kind[client.Object](r.helm.cache, kind, on)); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	r.quarantines.Store(true)
	return nil
}

// rolloutsOfQuarantine returns the Rollouts that know a release that the quarantine may be
// about.
func (r *Reconciler) rolloutsOfQuarantine(ctx context.Context, o client.Object) []reconcile.Request {
	spec, namespace := specOfQuarantine(o), o.GetNamespace()
	if r.QuarantinesEverywhere {
		namespace = ""
	}
	list := &v1alpha1.RolloutList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil
	}
	var woken []reconcile.Request
	for i := range list.Items {
		if knows(&list.Items[i], spec) {
			woken = append(woken, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return woken
}

func specOfQuarantine(o client.Object) *v1alpha1.ReleaseQuarantineSpec {
	if q, ok := o.(*v1alpha1.ClusterReleaseQuarantine); ok {
		return &q.Spec.ReleaseQuarantineSpec
	}
	return &o.(*v1alpha1.ReleaseQuarantine).Spec
}

// knows reports whether a release that the Rollout knows has the digest or one of the tags.
func knows(rollout *v1alpha1.Rollout, spec *v1alpha1.ReleaseQuarantineSpec) bool {
	is := func(v v1alpha1.VersionInfo) bool {
		return v.Digest != nil && *v.Digest == spec.Digest || slices.Contains(spec.Tags, v.Tag)
	}
	return slices.ContainsFunc(rollout.Status.AvailableReleases, is) ||
		slices.ContainsFunc(rollout.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool { return is(e.Version) })
}

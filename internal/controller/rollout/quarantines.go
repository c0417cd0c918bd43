// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// +kubebuilder:rbac:groups=kuberik.com,resources=releasequarantines,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=kuberik.com,resources=releasequarantines/status,verbs=patch
// +kubebuilder:rbac:groups=kuberik.com,resources=clusterreleasequarantines,verbs=list;watch

const (
	// reportsWithin is how long a pass may take to report. A webhook that does not answer
	// must not keep a Rollout from going back.
	reportsWithin = 5 * time.Second
	// reportAttempts is how often a report is tried in one pass, because many Rollouts may
	// report to the same object at once.
	reportAttempts = 5
)

// reportFailures writes a failure to the ReleaseQuarantine of its digest. It comes after the
// writes to targets, so that it delays no rollback. Failed writes are retried with back-off,
// and do not fail the pass.
func (r *Reconciler) reportFailures(ctx context.Context, recorded *v1alpha1.Rollout, in promotion.Input) {
	if !r.late.quarantines.Load() || r.QuarantinesReadOnly {
		return
	}
	reported := &r.memory.of(client.ObjectKeyFromObject(recorded)).reported
	in.Rollout = recorded
	report := promotion.DueReport(in)
	if report == nil {
		reported.succeeded()
		return
	}
	if !reported.next(in.Now).IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportsWithin)
	defer cancel()
	listed, err := quarantineWriter{r.Client, r.APIReader, r.Events, r.Now}.reportFailure(ctx, in, *report)
	if listed {
		reported.written = report
	}
	if err != nil {
		err = fmt.Errorf("the failure of %s could not be reported to ReleaseQuarantine %s: %w", report.Tag, report.Name, err)
	}
	r.noteReport(ctx, recorded, err)
}

// quarantineWriter writes failures to ReleaseQuarantines.
type quarantineWriter struct {
	client client.Client
	live   client.Reader
	events record.EventRecorder
	now    func() time.Time
}

// reportFailure returns whether the quarantine lists the failure now. It starts again if
// another client was faster.
func (w quarantineWriter) reportFailure(ctx context.Context, in promotion.Input, report quarantined.Report) (listed bool, err error) {
	for range reportAttempts {
		listed, err = w.tryReport(ctx, in, report)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return listed, err
		}
	}
	return false, err
}

// tryReport reads the live object: another Rollout may have written it a moment ago.
func (w quarantineWriter) tryReport(ctx context.Context, in promotion.Input, report quarantined.Report) (listed bool, err error) {
	q := &v1alpha1.ReleaseQuarantine{}
	err = w.live.Get(ctx, client.ObjectKey{Namespace: in.Rollout.Namespace, Name: report.Name}, q)
	if apierrors.IsNotFound(err) {
		q, err = w.createQuarantine(ctx, in, report)
	}
	switch {
	case err != nil:
		return false, err
	case q.Spec.Digest != report.Digest:
		return false, errOtherContent
	case !quarantine.TakesFailures(&q.Spec, quarantine.IsManaged(q)):
		return false, nil // a user has created or lifted it since
	}
	err = w.addFailure(ctx, in, q, report)
	return err == nil, err
}

// errOtherContent means that a user has created an object of this name.
var errOtherContent = errors.New("it is about another digest: delete it, and give the quarantine of that digest another name")

func (w quarantineWriter) createQuarantine(ctx context.Context, in promotion.Input, report quarantined.Report) (*v1alpha1.ReleaseQuarantine, error) {
	q := &v1alpha1.ReleaseQuarantine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Rollout.Namespace, Name: report.Name, Labels: quarantine.Labels(report.Name),
		},
		Spec: failedSpec(report),
	}
	if err := w.client.Create(ctx, q); err != nil {
		return nil, err
	}
	announce.Event(ctx, w.events, q, corev1.EventTypeWarning, v1alpha1.ReleaseQuarantinedReason,
		fmt.Sprintf("%s failed on Rollout %s: %s", report.Tag, in.Rollout.Name, report.Failure.Message))
	return q, nil
}

// longestImage is how long an image may be in a quarantine. The digest is enough.
const longestImage = 512

// failedSpec names what has failed. A tag without an image says nothing.
func failedSpec(report quarantined.Report) v1alpha1.ReleaseQuarantineSpec {
	spec := v1alpha1.ReleaseQuarantineSpec{Digest: report.Digest}
	if image := report.Image; image != "" && len(image) <= longestImage {
		spec.Image, spec.Tags = image, []string{report.Tag}
	}
	return spec
}

// WatchQuarantines makes the reconciler obey quarantines, and report to them. The API
// server must serve both kinds. It may be called once, after SetupWithManager and before
// the manager starts.
func (r *Reconciler) WatchQuarantines() error {
	for _, kind := range []client.Object{&v1alpha1.ReleaseQuarantine{}, &v1alpha1.ClusterReleaseQuarantine{}} {
		if err := r.late.watch(kind, r.concerned().rolloutsOfQuarantine); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	r.late.quarantines.Store(true)
	return nil
}

// rolloutsOfQuarantine returns the Rollouts that know a release that the quarantine may be
// about.
func (c concerned) rolloutsOfQuarantine(ctx context.Context, o client.Object) []reconcile.Request {
	spec, _ := quarantine.Parts(o)
	namespace := o.GetNamespace()
	if c.quarantinesEverywhere {
		namespace = ""
	}
	list := &v1alpha1.RolloutList{}
	if err := c.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Rollouts of a quarantine")
		return nil
	}
	var woken []reconcile.Request
	for i := range list.Items {
		if lists(&list.Items[i], spec) {
			woken = append(woken, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return woken
}

// lists reports whether a release that the Rollout knows has the digest or one of the tags.
func lists(rollout *v1alpha1.Rollout, spec *v1alpha1.ReleaseQuarantineSpec) bool {
	is := func(v v1alpha1.VersionInfo) bool {
		return v.Digest != nil && *v.Digest == spec.Digest || slices.Contains(spec.Tags, v.Tag)
	}
	return slices.ContainsFunc(rollout.Status.AvailableReleases, is) ||
		slices.ContainsFunc(rollout.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool { return is(e.Version) })
}

// SPDX-License-Identifier: Apache-2.0

package imagescanner

import (
	"context"
	"fmt"
	"slices"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/predicates"
	"github.com/fluxcd/pkg/runtime/reconcile"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func (s *Scanner) watchRepositories(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&imagev1.ImageRepository{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}),
		)).
		Complete(ctrlreconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			return s.scanOne(ctx, req.NamespacedName, false)
		}))
}

// scanOne scans a repository if it is time to, or at once if forced.
func (s *Scanner) scanOne(ctx context.Context, key client.ObjectKey, forced bool) (ctrl.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo := &imagev1.ImageRepository{}
	if err := s.direct.Get(ctx, key, repo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return s.attend(ctx, repo, repo.Spec.Suspend, func(ctx context.Context, store func() error) outcome {
		if err := announce(repo, repo.Status.ObservedGeneration, store); err != nil {
			return outcome{err: err}
		}
		image, err := imageName(repo)
		if err != nil {
			return stalled(repo, imagev1.ImageURLInvalidReason, err)
		}
		conditions.Delete(repo, meta.StalledCondition)
		why, wait := s.whyScan(repo, image, time.Now())
		if forced && why == "" {
			why, wait = "triggered by interval", repo.Spec.Interval.Duration
		}
		return s.look(ctx, repo, image, why, wait, store)
	})
}

// look scans if there is a reason to, and reports what is known of the tags.
func (s *Scanner) look(ctx context.Context, repo *imagev1.ImageRepository, image name.Repository, why string, wait time.Duration, store func() error) outcome {
	access, err := s.access(ctx, repo, image)
	if err != nil {
		return failed(repo, imagev1.AuthenticationFailedReason, fmt.Errorf("failed to configure authentication options: %w", err))
	}
	if why != "" {
		reconcile.ProgressiveStatus(why == reasonNothingKnown, repo, meta.ProgressingReason, "scanning: %s", why)
		if err := store(); err != nil {
			return outcome{err: err}
		}
		if err := s.scan(ctx, repo, image, access); err != nil {
			return failed(repo, imagev1.ReadOperationFailedReason, fmt.Errorf("scan failed: %w", err))
		}
	}
	repo.Status.CanonicalImageName = image.String()
	repo.Status.ObservedExclusionList = repo.GetExclusionList()
	conditions.Delete(repo, meta.ReadyCondition)
	result := repo.Status.LastScanResult
	return outcome{
		again:   ctrl.Result{RequeueAfter: wait},
		done:    true,
		message: fmt.Sprintf("successful scan: found %d tags with checksum %s", result.TagCount, result.Revision),
	}
}

// reasonNothingKnown is the reason to scan after a restart.
const reasonNothingKnown = "no tags in database"

// whyScan is the reason to scan now, or none, and when to look again.
func (s *Scanner) whyScan(repo *imagev1.ImageRepository, image name.Repository, now time.Time) (string, time.Duration) {
	interval := repo.Spec.Interval.Duration
	last := repo.Status.LastScanResult
	if last == nil {
		return "first scan", interval
	}
	requested, ok := meta.ReconcileAnnotationValue(repo.GetAnnotations())
	excluded := slices.Equal(slices.Sorted(slices.Values(repo.GetExclusionList())), slices.Sorted(slices.Values(repo.Status.ObservedExclusionList)))
	wait := interval - now.Sub(last.ScanTime.Time)
	switch {
	case ok && requested != repo.Status.GetLastHandledReconcileRequest():
		return "reconcile requested", interval
	case image.String() != repo.Status.CanonicalImageName:
		return "new image name", interval
	case !excluded:
		return "updated exclusion list", interval
	case len(s.tags[repo.Status.CanonicalImageName]) == 0:
		return reasonNothingKnown, interval
	case wait < time.Second:
		return "triggered by interval", interval
	}
	return "", wait
}

// scan lists the tags and keeps them for the policies.
func (s *Scanner) scan(ctx context.Context, repo *imagev1.ImageRepository, image name.Repository, access []remote.Option) error {
	ctx, cancel := context.WithTimeout(ctx, repo.GetTimeout())
	defer cancel()
	found, err := remote.List(image, append(access, remote.WithContext(ctx))...)
	if err != nil {
		return err
	}
	tags, err := without(found, repo.GetExclusionList())
	if err != nil {
		return err
	}
	result, err := scanResult(tags, metav1.Now())
	if err != nil {
		return err
	}
	s.tags[image.String()] = tags
	repo.Status.LastScanResult = result
	return nil
}

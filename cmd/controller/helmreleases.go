// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
)

const (
	helmReleases = "helmreleases"
	// helmCRD is the name of their CRD. The manager role may read only this one and those
	// of newerControllers.
	helmCRD = helmReleases + ".helm.toolkit.fluxcd.io"
)

var helmRelease = kind{
	GroupKind: schema.GroupKind{Group: helmv2.GroupVersion.Group, Kind: helmv2.HelmReleaseKind},
	versions:  []string{helmv2.GroupVersion.Version},
}

// helmPlan defines how HelmReleases are handled. Not every cluster has helm-controller,
// and it may be installed later.
type helmPlan string

const (
	helmWatch helmPlan = "Watch" // they are served
	helmAwait helmPlan = "Await" // they may be served later
	helmLeave helmPlan = "Leave" // a right is missing
)

// planHelm returns how HelmReleases are handled, and which right is missing if they are
// ignored.
func (c cluster) planHelm(ctx context.Context, namespace string) (plan helmPlan, missing right, err error) {
	read := right{group: helmv2.GroupVersion.Group, resource: helmReleases}
	if missing, err = c.lacksReading(ctx, read, namespace); missing.verb != "" || err != nil {
		return helmLeave, missing, err
	}
	served, err := c.serves(helmRelease)
	if err != nil || served {
		return helmWatch, right{}, err
	}
	await := right{group: definitions.Group, resource: definitions.Resource, name: helmCRD}
	if missing, err = c.lacksReading(ctx, await, ""); missing.verb != "" || err != nil {
		return helmLeave, missing, err
	}
	return helmAwait, right{}, nil
}

// lacksReading returns the missing right: to list or to watch a resource. The verb is
// empty if the account has both.
func (c cluster) lacksReading(ctx context.Context, to right, namespace string) (missing right, err error) {
	list, watch := to, to
	list.verb, watch.verb = "list", "watch"
	return c.lacksAny(ctx, []right{list, watch}, namespace)
}

// lacksAny returns the first of the rights that is missing. The verb is empty if the
// account has all of them.
func (c cluster) lacksAny(ctx context.Context, all []right, namespace string) (missing right, err error) {
	for _, right := range all {
		if allowed, err := c.allows(ctx, right, namespace); err != nil || !allowed {
			return right, err
		}
	}
	return right{}, nil
}

// helmWatcher is a reconciler that can watch HelmReleases.
type helmWatcher interface {
	WatchHelmReleases(ctx context.Context) error
}

// watchHelmReleases makes a reconciler watch HelmReleases, now or as soon as they are
// served.
func (w wiring) watchHelmReleases(ctx context.Context, by helmWatcher) error {
	plan, missing, err := w.cluster.planHelm(ctx, w.onlyWatched())
	if err != nil {
		return err
	}
	switch plan {
	case helmWatch:
		return by.WatchHelmReleases(ctx)
	case helmAwait:
		return w.awaitHelm(by)
	case helmLeave:
		w.GetLogger().Info("HelmReleases are not watched",
			"because", fmt.Sprintf("this account may not %s: grant it what the manager role allows, and start again", missing))
	}
	return nil
}

func (w wiring) awaitHelm(by helmWatcher) error {
	client, err := metadata.NewForConfigAndClient(w.GetConfig(), w.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("prepare to watch the CRD of HelmReleases: %w", err)
	}
	return w.Add(&awaitingHelm{cluster: w.cluster, by: by, metadata: client, log: w.GetLogger().Info})
}

// awaitingHelm starts the watch of HelmReleases as soon as they are served.
type awaitingHelm struct {
	cluster
	by       helmWatcher
	metadata metadata.Interface
	log      func(message string, keysAndValues ...any)
}

// NeedLeaderElection returns false: every replica waits, because each may lead next.
func (*awaitingHelm) NeedLeaderElection() bool { return false }

// Start waits until HelmReleases are served, starts their watch, and returns.
func (a *awaitingHelm) Start(ctx context.Context) error {
	return awaitCRD(ctx, a.metadata, helmCRD, func() (bool, error) {
		if !a.settled(ctx) {
			return false, nil
		}
		if err := a.by.WatchHelmReleases(ctx); err != nil {
			return true, err
		}
		a.log("HelmReleases are served now, and watched")
		return true, nil
	})
}

// settled reports whether HelmReleases are served, some moments after their CRD changed.
func (a *awaitingHelm) settled(ctx context.Context) bool {
	return wait.ExponentialBackoffWithContext(ctx, settling, func(context.Context) (bool, error) {
		served, err := a.serves(helmRelease)
		return served && err == nil, nil
	}) == nil
}

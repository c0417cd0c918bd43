// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
)

// lateKind is a kind of targets that not every cluster serves, or that not every account may
// read: it may be served later, and without it all else works.
type lateKind struct{ kind }

var (
	helmReleases      = newLateKind(helmv2.GroupVersion, helmv2.HelmReleaseKind)
	gitRepositories   = newLateKind(sourcev1.GroupVersion, sourcev1.GitRepositoryKind)
	generators        = newLateKind(generatorv1.GroupVersion, generatorv1.ArtifactGeneratorKind)
	externalArtifacts = newLateKind(sourcev1.GroupVersion, sourcev1.ExternalArtifactKind)
)

func newLateKind(of schema.GroupVersion, name string) lateKind {
	return lateKind{kind{GroupKind: schema.GroupKind{Group: of.Group, Kind: name}, versions: []string{of.Version}}}
}

// resource returns the name of the kind in requests and in rules.
func (k lateKind) resource() string { return strings.ToLower(k.plural()) }

// crd returns the name of the CRD. The manager role may read only these and those of
// newerControllers.
func (k lateKind) crd() string { return k.resource() + "." + k.Group }

// plural returns what several objects of the kind are called in a log.
func (k lateKind) plural() string {
	if stem, ok := strings.CutSuffix(k.Kind, "y"); ok {
		return stem + "ies"
	}
	return k.Kind + "s"
}

// latePlan defines how a late kind is handled.
type latePlan string

const (
	lateWatch latePlan = "Watch" // it is served
	lateAwait latePlan = "Await" // it may be served later
	lateLeave latePlan = "Leave" // a right is missing
)

// plan returns how a late kind is handled, and which right is missing if it is ignored.
func (c cluster) plan(ctx context.Context, of lateKind, namespace string) (plan latePlan, missing right, err error) {
	read := right{group: of.Group, resource: of.resource()}
	if missing, err = c.lacksReading(ctx, read, namespace); missing.verb != "" || err != nil {
		return lateLeave, missing, err
	}
	served, err := c.serves(of.kind)
	if err != nil || served {
		return lateWatch, right{}, err
	}
	await := right{group: definitions.Group, resource: definitions.Resource, name: of.crd()}
	if missing, err = c.lacksReading(ctx, await, ""); missing.verb != "" || err != nil {
		return lateLeave, missing, err
	}
	return lateAwait, right{}, nil
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

// watchLate makes a reconciler watch a late kind, now or as soon as it is served.
func (w wiring) watchLate(ctx context.Context, of lateKind, watch func(context.Context) error) error {
	plan, missing, err := w.cluster.plan(ctx, of, w.onlyWatched())
	if err != nil {
		return err
	}
	switch plan {
	case lateWatch:
		return watch(ctx)
	case lateAwait:
		return w.await(of, watch)
	case lateLeave:
		w.GetLogger().Info(of.plural()+" are not watched",
			"because", fmt.Sprintf("this account may not %s: grant it what the manager role allows, and start again", missing))
	}
	return nil
}

// watchArtifacts makes a reconciler follow releases through ArtifactGenerators, for which it
// needs both kinds.
func (w wiring) watchArtifacts(ctx context.Context, watch func(context.Context) error) error {
	return w.watchLate(ctx, generators, func(ctx context.Context) error { return w.watchLate(ctx, externalArtifacts, watch) })
}

func (w wiring) await(of lateKind, watch func(context.Context) error) error {
	client, err := metadata.NewForConfigAndClient(w.GetConfig(), w.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("prepare to watch the CRD of %s: %w", of.plural(), err)
	}
	return w.Add(&awaitingKind{cluster: w.cluster, of: of, watch: watch, metadata: client, log: w.GetLogger().Info})
}

// awaitingKind starts the watch of a late kind as soon as it is served.
type awaitingKind struct {
	cluster
	of       lateKind
	watch    func(context.Context) error
	metadata metadata.Interface
	log      func(message string, keysAndValues ...any)
}

// NeedLeaderElection returns false: every replica waits, because each may lead next.
func (*awaitingKind) NeedLeaderElection() bool { return false }

// Start waits until the kind is served, starts its watch, and returns.
func (a *awaitingKind) Start(ctx context.Context) error {
	return awaitCRD(ctx, a.metadata, a.of.crd(), func() (bool, error) {
		if !a.settled(ctx) {
			return false, nil
		}
		if err := a.watch(ctx); err != nil {
			return true, err
		}
		a.log(a.of.plural() + " are served now, and watched")
		return true, nil
	})
}

// settled reports whether the kind is served, some moments after its CRD changed.
func (a *awaitingKind) settled(ctx context.Context) bool {
	return wait.ExponentialBackoffWithContext(ctx, settling, func(context.Context) (bool, error) {
		served, err := a.serves(a.of.kind)
		return served && err == nil, nil
	}) == nil
}

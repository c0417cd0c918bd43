// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// view is a Rollout, what a decision about it needs, and the decision.
type view struct {
	gather.Snapshot
	Decision promotion.Decision
	// facts are what was read.
	facts *snapshot.Snapshot
	// below reads what the release reaches; nil where nobody asks for that.
	below client.Reader
	// schedules select the Rollout.
	schedules []gather.Schedule
	// quarantines are the ReleaseQuarantines of the namespace.
	quarantines []v1alpha1.ReleaseQuarantine
}

// namespace returns the namespace of -n, or else of the context, or else "default".
func (p *program) namespace() (string, error) {
	name, _, err := p.kubeconfig.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	return name, nil
}

// readsFiles adds the flag for answers that need no cluster.
func (p *program) readsFiles(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&p.files, "filename", "f", nil, "read objects from this file, or - for standard input; without a Rollout in it, they are laid over those of the cluster")
	flags.BoolVar(&p.noCrossNamespaceRefs, "no-cross-namespace-refs", false, "decide as a controller with this flag does")
	flags.Var(&p.quarantineScope, "quarantine-scope", "decide as a controller with this flag does: Namespace or Cluster")
}

// view looks at a Rollout at a time.
func (p *program) view(ctx context.Context, name string, now time.Time) (view, error) {
	namespace, err := p.namespace()
	if err != nil {
		return view{}, err
	}
	facts, below, err := p.facts(ctx, namespace)
	if err != nil {
		return view{}, err
	}
	v, err := p.viewIn(ctx, facts, client.ObjectKey{Namespace: namespace, Name: name}, now)
	v.below = below
	return v, err
}

// viewIn looks at a Rollout of a snapshot.
func (p *program) viewIn(ctx context.Context, facts *snapshot.Snapshot, key client.ObjectKey, now time.Time) (view, error) {
	rollout := &v1alpha1.Rollout{}
	if err := facts.Get(ctx, key, rollout); apierrors.IsNotFound(err) {
		return view{}, p.noSuchRollout(key.Namespace, key.Name)
	} else if err != nil {
		return view{}, fmt.Errorf("read Rollout %s: %w", key, err)
	}
	g := gather.Gatherer{
		Client: facts, Live: facts, OneNamespace: true, HelmReleases: true, NoCrossNamespaceRefs: p.noCrossNamespaceRefs,
		Environments: facts.Serves(&environmentsv1.Environment{}),
		Quarantines:  servesQuarantines(facts), QuarantinesEverywhere: p.quarantineScope == quarantine.ScopeCluster,
	}
	v := view{Snapshot: g.Gather(ctx, rollout, now), facts: facts}
	// Where schedules or quarantines could not be read, the input has the problem.
	v.schedules, _ = g.SchedulesOf(ctx, rollout)
	v.quarantines = quarantinesIn(ctx, facts, key.Namespace)
	v.Decision = promotion.Decide(v.Input)
	return v, nil
}

// windows returns the state of the schedules at a time.
func (v view) windows(now time.Time) []promotion.Window {
	var all []promotion.Window
	for _, s := range v.schedules {
		all = append(all, s.Window(now))
	}
	return all
}

// servesQuarantines reports whether the API server serves both kinds of quarantines. The
// controller obeys neither if it does not.
func servesQuarantines(facts *snapshot.Snapshot) bool {
	return facts.Serves(&v1alpha1.ReleaseQuarantine{}) && facts.Serves(&v1alpha1.ClusterReleaseQuarantine{})
}

// quarantinesIn returns the ReleaseQuarantines of a namespace, with their status as it
// counts; none if they cannot be read.
func quarantinesIn(ctx context.Context, from client.Reader, namespace string) []v1alpha1.ReleaseQuarantine {
	list := &v1alpha1.ReleaseQuarantineList{}
	if from.List(ctx, list, client.InNamespace(namespace)) != nil {
		return nil
	}
	for i := range list.Items {
		q := &list.Items[i]
		q.Status = quarantine.Counted(q.Status, quarantine.IsManaged(q), q.CreationTimestamp.Time)
	}
	return list.Items
}

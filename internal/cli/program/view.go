// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// View is a Rollout, what a decision about it needs, and the decision.
type View struct {
	gather.Snapshot
	// Decision has the verdicts of the controller, from the status of the Rollout, if the user
	// may not read something that they depend on.
	Decision promotion.Decision
	// Visible is decided on what the user may read alone, and Unread is the rest.
	Visible promotion.Decision
	Unread  Unread
	// Facts are what was read.
	Facts *snapshot.Snapshot
	// Below reads what the release reaches; nil where nobody asks for that.
	Below client.Reader
	// Person is the user, where gates ask for approvals.
	Person Person
	// Schedules select the Rollout.
	Schedules []gather.Schedule
	// NamespaceQuarantines are the ReleaseQuarantines of the namespace.
	NamespaceQuarantines []v1alpha1.ReleaseQuarantine
}

// Namespace returns the namespace of -n, or else of the context, or else "default".
func (p *Program) Namespace() (string, error) {
	if p.namespace != "" {
		return p.namespace, nil
	}
	return p.usualNamespace()
}

func (p *Program) usualNamespace() (string, error) {
	name, _, err := p.Kubeconfig.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	return name, nil
}

// ReadsFiles adds the flag for answers that need no cluster.
func (p *Program) ReadsFiles(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&p.Files, "filename", "f", nil, "read objects from this file, or - for standard input; without a Rollout in it, they are laid over those of the cluster")
	flags.BoolVar(&p.noCrossNamespaceRefs, "no-cross-namespace-refs", false, "decide as a controller with this flag does")
	flags.Var(&p.quarantineScope, "quarantine-scope", "decide as a controller with this flag does: Namespace or Cluster")
}

// View looks at a Rollout at a time.
func (p *Program) View(ctx context.Context, name string, now time.Time) (View, error) {
	namespace, err := p.Namespace()
	if err != nil {
		return View{}, err
	}
	facts, below, err := p.Facts(ctx, namespace)
	if err != nil {
		return View{}, err
	}
	v, err := p.ViewIn(ctx, facts, client.ObjectKey{Namespace: namespace, Name: name}, now)
	if v.Below = below; err == nil && !p.offline {
		v.Person, err = p.PersonOf(ctx, v)
	}
	return v, err
}

// ViewIn looks at a Rollout of a snapshot.
func (p *Program) ViewIn(ctx context.Context, facts *snapshot.Snapshot, key client.ObjectKey, now time.Time) (View, error) {
	rollout := &v1alpha1.Rollout{}
	if err := facts.Get(ctx, key, rollout); apierrors.IsNotFound(err) {
		return View{}, p.NoSuchRollout(ctx, facts, key.Namespace, key.Name)
	} else if err != nil {
		return View{}, fmt.Errorf("read Rollout %s: %w", key, err)
	}
	from := witness{facts, Unread{}}
	g := gather.Gatherer{
		Client: from, Live: from, OneNamespace: true, HelmReleases: true, GitRepositories: true, NoCrossNamespaceRefs: p.noCrossNamespaceRefs,
		Environments: facts.Serves(&environmentsv1.Environment{}),
		Artifacts:    facts.Serves(&generatorv1.ArtifactGenerator{}) && facts.Serves(&sourcev1.ExternalArtifact{}),
		Quarantines:  ServesQuarantines(facts), QuarantinesEverywhere: p.quarantineScope == quarantine.ScopeCluster,
		Approvals: ServesApprovals(facts), Identity: p.identity(from, rollout),
		UnreadSchedules: facts.Refused(&v1alpha1.RolloutSchedule{}, &v1alpha1.ClusterRolloutSchedule{}),
	}
	v := View{Snapshot: g.Gather(ctx, rollout, now), Facts: facts, Unread: from.unread}
	if gather.AsksForApprovals(v.Gates) {
		v.Approvals.Requesters = gather.Requesters(rollout, v.Approvals.Identity)
	}
	// Where schedules or quarantines could not be read, the input has the problem.
	v.Schedules, _ = g.SchedulesOf(ctx, rollout)
	v.NamespaceQuarantines = QuarantinesIn(ctx, facts, key.Namespace)
	v.Visible = promotion.Decide(v.Input)
	v.Decision = v.Visible
	if v.Unread.Any() {
		v.Decision = explain.AsRecorded(rollout, v.Visible, v.Unread.OnlyHold())
	}
	return v, nil
}

// Windows returns the state of the schedules at a time. Of those that the user may not read,
// only the present state is known, by their gates.
func (v View) Windows(now time.Time) []promotion.Window {
	var all []promotion.Window
	known := map[string]bool{}
	for _, s := range v.Schedules {
		all, known[s.String()] = append(all, s.Window(now)), true
	}
	for _, shown := range v.Gates.Schedules {
		if !known[shown.Schedule] {
			all = append(all, shown)
		}
	}
	return all
}

// ServesQuarantines reports whether the API server serves both kinds of quarantines. The
// controller obeys neither if it does not.
func ServesQuarantines(facts *snapshot.Snapshot) bool {
	return facts.Serves(&v1alpha1.ReleaseQuarantine{}) && facts.Serves(&v1alpha1.ClusterReleaseQuarantine{})
}

// ServesApprovals reports whether the API server serves approvals and the gates of the cluster.
func ServesApprovals(facts *snapshot.Snapshot) bool {
	return facts.Serves(&v1alpha1.RolloutApproval{}) && facts.Serves(&v1alpha1.ClusterRolloutGate{})
}

// QuarantinesIn returns the ReleaseQuarantines of a namespace, with their status as it
// counts; none if they cannot be read.
func QuarantinesIn(ctx context.Context, from client.Reader, namespace string) []v1alpha1.ReleaseQuarantine {
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

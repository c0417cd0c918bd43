// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

type quarantining struct {
	*changing
	until              string
	always, everywhere bool
	// ends is when it ends; nil if it does not end by itself.
	ends *metav1.Time
}

// NewQuarantine returns the verb quarantine.
func NewQuarantine(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "quarantine [NAME [VERSION]]", Short: "Keep a release from going out, in a whole namespace, or list those that are kept",
		Long: `Keep a release from going out, on all Rollouts of the namespace, until you lift it.
Without a name, list the quarantines.

It creates a ReleaseQuarantine for the digest of the release: the content is held under
any tag. If the digest is not known, the image and the tag are held. NAME is a Rollout
that knows the release. Without a version it is the current release; after an automatic
rollback, it is the one that failed. After a rollback by a user you must say which one.

What runs stays: a quarantine rolls nothing back, and asks before it holds what runs. Users may still pin the release,
unless you give --always.`,
		Example: fmt.Sprintf(`  # The release that runs now
  %[1]s quarantine shop -m "loses orders"
  # Another one, for three days
  %[1]s quarantine shop 1.5.0 --until 3d -m "INC-4711"
  # Users must not pin it either
  %[1]s quarantine shop 1.5.0 --always -m "CVE-2026-0001"
  # What is held in this namespace?
  %[1]s quarantine`, p.Called),
	}
	q := &quarantining{changing: newChanging(p, cmd)}
	flags := cmd.Flags()
	flags.Lookup("message").Usage = "why, for those who wait; required"
	flags.StringVar(&q.why, "reason", "", "an old name of --message")
	flags.Lookup("reason").Hidden = true
	program.TakesVersion(cmd, &q.tag, "the release; if it is not given, the current one, or the one that was rolled back", "release")
	flags.StringVar(&q.until, "until", "", "hold it until this time, or for a while ("+program.TimeFormats+"); the default is until you lift it")
	flags.BoolVar(&q.always, "always", false, "hold it even if a user pins or forces it")
	flags.BoolVarP(&q.everywhere, "all-namespaces", "A", false, "without a name: list the quarantines of all namespaces")
	named := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return named(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		lists, err := q.listsOnly(cmd, len(args) > 0, "say which Rollout has the release", "version", "release", "reason", "always")
		switch {
		case err != nil:
			return err
		case lists:
			return inspect.ListQuarantines(cmd.Context(), q.Program, q.out, q.everywhere)
		}
		return q.run(cmd.Context(), args[0])
	}
	return cmd
}

func (q *quarantining) run(ctx context.Context, name string) error {
	if q.why == "" {
		return errors.New(`others will ask why the release is held: say it, with -m "..."`)
	}
	if err := errors.Join(q.begin(), q.parseUntil()); err != nil {
		return err
	}
	namespace, err := q.Namespace()
	if err != nil {
		return err
	}
	open, err := q.Connect(ctx)
	if err != nil {
		return err
	}
	if err := q.sign(q.user(ctx, open)); err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	return q.carryOut(ctx, open, name, func() (*prediction, error) { return q.predict(ctx, open, key) })
}

func (q *quarantining) parseUntil() error {
	if q.until == "" {
		return nil
	}
	now := q.Now()
	at, err := program.TimeOf(q.until, now, q.Zone)
	switch {
	case err != nil:
		return fmt.Errorf("--until: %w", err)
	case !at.After(now):
		return fmt.Errorf("a quarantine until %s would be over already", show.Moment(at, now, q.Zone))
	}
	q.ends = &metav1.Time{Time: at.Truncate(time.Second)}
	return nil
}

// longestReason is how many characters the API server accepts as a reason.
const longestReason = 1024

// sign adds the name of the user to the reason, as a freeze has it.
func (q *quarantining) sign(user string) error {
	if user != "" {
		q.why += ", by " + user
	}
	if n := len([]rune(q.why)); n > longestReason {
		return fmt.Errorf("the reason has %d characters with your name, at most %d are possible", n, longestReason)
	}
	return nil
}

// predict decides about all Rollouts of the namespace as with the quarantine.
func (q *quarantining) predict(ctx context.Context, open program.Cluster, key client.ObjectKey) (*prediction, error) {
	facts, err := q.Take(ctx, open, key.Namespace)
	if err != nil {
		return nil, err
	}
	if err := areUsable(ctx, facts, key.Namespace); err != nil {
		return nil, err
	}
	v, err := q.ViewIn(ctx, facts, key, q.Now())
	if err != nil {
		return nil, err
	}
	release, err := q.release(v)
	if err != nil {
		return nil, err
	}
	from, to, err := q.choose(v, release)
	if err != nil {
		return nil, err
	}
	return q.prediction(ctx, facts, release, from, to)
}

// areUsable returns why quarantines of a namespace are of no use to this user.
func areUsable(ctx context.Context, facts *snapshot.Snapshot, namespace string) error {
	if !program.ServesQuarantines(facts) {
		return errors.New("the API server does not serve quarantines: install the CustomResourceDefinitions releasequarantines.kuberik.com and clusterreleasequarantines.kuberik.com")
	}
	if err := facts.List(ctx, &v1alpha1.ReleaseQuarantineList{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list ReleaseQuarantines: %w", err)
	}
	return nil
}

// prediction says what the quarantine holds, and what it does not stop.
func (q *quarantining) prediction(ctx context.Context, facts *snapshot.Snapshot, release quarantine.Release, from, to *v1alpha1.ReleaseQuarantine) (*prediction, error) {
	p := &prediction{to: to, effect: q.effect(release, to, "holds")}
	if from != nil {
		p.from = from
		if equality.Semantic.DeepEqual(from.Spec, to.Spec) {
			return nil, isSo(q.effect(release, to, "already holds"))
		}
		if err := q.UndoneByGit(from, to); err != nil {
			return nil, err
		}
	}
	after, err := facts.With(to)
	if err != nil {
		return nil, err
	}
	if err := p.effects(ctx, q.changing.Program, facts, after); err != nil {
		return nil, err
	}
	running, free := q.notStopped(ctx, after, to)
	if p.asks = len(running) > 0; p.asks {
		free = append([]string{"it runs on " + truncate.List(running)}, free...)
	}
	if len(free) > 0 {
		p.more = append(p.more, "not stopped: "+strings.Join(free, "; "))
	}
	return p, nil
}

// effect says what the quarantine holds, and until when.
func (q *quarantining) effect(release quarantine.Release, to *v1alpha1.ReleaseQuarantine, holds string) string {
	what, until := release.Tag+", by its digest,", "until it is lifted"
	if to.Spec.Digest == "" {
		what = "tag " + release.Tag + " of " + to.Spec.Image
	}
	if end := quarantine.Until(&to.Spec, &to.Status); !end.IsZero() {
		until = "until " + show.Moment(end, q.Now(), q.Zone)
	}
	return fmt.Sprintf("ReleaseQuarantine %s of namespace %s %s %s %s", to.Name, to.Namespace, holds, what, until)
}

// notStopped says what goes on all the same, and on which Rollouts the release runs.
func (q *quarantining) notStopped(ctx context.Context, facts *snapshot.Snapshot, to *v1alpha1.ReleaseQuarantine) (running, free []string) {
	about := to.Spec
	about.Image = imagename.Canonical(about.Image)
	for _, rollout := range rolloutsIn(ctx, facts, to.Namespace) {
		v, err := q.ViewIn(ctx, facts, client.ObjectKeyFromObject(rollout), q.Now())
		switch current := rollout.Current(); {
		case err != nil:
		case current != nil && promotion.IsAbout(v.Input, &about, current.Version):
			running = append(running, rollout.Name)
		case !rollout.Spec.Quarantine.Obeys() && to.Spec.Enforce != v1alpha1.EnforceAlways:
			free = append(free, rollout.Name+" does not obey quarantines")
		}
	}
	if to.Spec.Enforce != v1alpha1.EnforceAlways {
		free = append(free, "pins, force-deploy and unblock-failed")
	}
	return running, free
}

// rolloutsIn returns the Rollouts of a namespace; none if they cannot be read.
func rolloutsIn(ctx context.Context, facts client.Reader, namespace string) []*v1alpha1.Rollout {
	list := &v1alpha1.RolloutList{}
	if facts.List(ctx, list, client.InNamespace(namespace)) != nil {
		return nil
	}
	all := make([]*v1alpha1.Rollout, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// deciding is a decision of the user on one release: RolloutApprovals are created for it, or
// deleted.
type deciding struct {
	*changing
	decision v1alpha1.Decision
	role     string
	lasts    time.Duration
	also     []string
	withdraw bool
	// otherwise is asked for where no gate asks for approvals; nil if that is an error.
	otherwise asked
}

// decides adds the flags of a decision to a verb about one release.
func (c *changing) decides(cmd *cobra.Command, decision v1alpha1.Decision) *deciding {
	d := &deciding{changing: c, decision: decision}
	program.TakesVersion(cmd, &c.tag, "the release; if it is not given, the one that is pinned and waits, or the newest candidate")
	cmd.Flags().BoolVar(&d.withdraw, "withdraw", false, "delete your decisions of this kind that have had no effect so far")
	if decision != v1alpha1.DecisionOverride {
		cmd.Flags().StringVar(&d.role, "role", "", "decide in this role; if it is not given, in each role that is asked for and that you have")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), args[0]) }
	return d
}

// NewReject returns the verb reject.
func NewReject(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reject NAME [VERSION]", Short: "Say no to a release: it does not go out while you do",
		Long: `Say no to a release: it does not go out while you do.

It creates a RolloutApproval with the decision Reject. It holds the content in each gate
that would count your approval, and it does not expire. Take it back with --withdraw.`,
		Example: fmt.Sprintf(`  %[1]s reject shop --version 1.4.0 -m "leaks memory"
  %[1]s reject shop --version 1.4.0 --withdraw`, p.Called),
	}
	c := newChanging(p, cmd)
	cmd.Flags().Lookup("message").Usage = "why, for those who wait"
	c.decides(cmd, v1alpha1.DecisionReject)
	return cmd
}

// NewOverride returns the verb override.
func NewOverride(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "override NAME [VERSION]", Short: "Let a release go without the approvals that are missing, in an emergency",
		Long: `Let a release go without the approvals that are missing, in an emergency.

It creates a RolloutApproval with the decision Override, which needs the right "override"
and a reason. It counts once, for this release, until the time is over. It promotes nothing
itself, and lifts neither quarantines nor Environments nor HealthChecks. The history and an
alert say who has done it, and why.`,
		Example: fmt.Sprintf(`  %[1]s override shop --version 1.4.1 --for 1h -m "INC-4711: payments are down"
  # Past closed schedules, too
  %[1]s override shop --version 1.4.1 --for 1h --also schedules -m "INC-4711: payments are down"`, p.Called),
	}
	c := newChanging(p, cmd)
	cmd.Flags().Lookup("message").Usage = "why, at least 10 characters; required"
	d := c.decides(cmd, v1alpha1.DecisionOverride)
	cmd.Flags().DurationVar(&d.lasts, "for", time.Hour, "how long it counts, from 1m to 24h")
	cmd.Flags().StringSliceVar(&d.also, "also", nil, "what it lifts as well: gates, schedules, or both")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"30m", "1h", "4h"}, cobra.ShellCompDirectiveNoFileComp)) // it exists
	_ = cmd.RegisterFlagCompletionFunc("also", cobra.FixedCompletions([]string{"gates", "schedules"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

const (
	// shortestReason is how many characters the reason of an override needs.
	shortestReason = 10
	// longestOverride and shortestOverride are what the API server accepts.
	longestOverride, shortestOverride = 24 * time.Hour, time.Minute
)

func (d *deciding) run(ctx context.Context, name string) error {
	if err := cmp.Or(d.begin(), d.check()); err != nil {
		return err
	}
	namespace, err := d.Namespace()
	if err != nil {
		return err
	}
	open, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	user := d.user(ctx, open)
	if user == "" && d.otherwise == nil {
		return errNameless
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	return d.carryOut(ctx, open, name, func() (*prediction, error) { return d.predict(ctx, open, key, user) })
}

// errNameless ends a decision of a user whom nobody knows.
var errNameless = errors.New("the API server does not say who you are, and a decision needs the name under which it knows you")

// check says what is wrong with the flags.
func (d *deciding) check() error {
	overrides := d.decision == v1alpha1.DecisionOverride
	switch {
	case d.withdraw && d.why != "":
		return errors.New("--withdraw has no reason")
	case d.withdraw || !overrides:
		return nil
	case len([]rune(d.why)) < shortestReason:
		return fmt.Errorf(`an override goes past people: say why, in at least %d characters, with -m "..."`, shortestReason)
	case d.lasts < shortestOverride || d.lasts > longestOverride:
		return errors.New("--for is from 1m to 24h")
	}
	_, err := d.lifts()
	return err
}

// lifts returns what an override lifts besides approvals.
func (d *deciding) lifts() ([]v1alpha1.OverriddenHold, error) {
	var all []v1alpha1.OverriddenHold
	for _, word := range d.also {
		known := map[string]v1alpha1.OverriddenHold{"gates": v1alpha1.OverrideGates, "schedules": v1alpha1.OverrideSchedules}[strings.ToLower(word)]
		if known == "" {
			return nil, fmt.Errorf("--also is gates or schedules, not %q", word)
		}
		if !slices.Contains(all, known) {
			all = append(all, known)
		}
	}
	return all, nil
}

// predict decides as with the decision of the user.
func (d *deciding) predict(ctx context.Context, open program.Cluster, key client.ObjectKey, user string) (*prediction, error) {
	facts, err := d.Take(ctx, open, key.Namespace)
	if err != nil {
		return nil, err
	}
	v, err := d.ViewIn(ctx, facts, key, d.Now())
	if err != nil {
		return nil, err
	}
	roles := v.RolesAsked()
	switch {
	case d.withdraw:
		return d.withdrawal(ctx, open, v, user)
	case len(roles) == 0 && d.otherwise != nil:
		return d.predictIn(ctx, facts, key, user, d.otherwise)
	case len(roles) == 0:
		return nil, program.Refuse("no gate of Rollout %s asks for approvals: there is nothing to %s", key.Name, strings.ToLower(string(d.decision)))
	case user == "":
		return nil, errNameless
	}
	return d.decide(ctx, open, v, user, roles)
}

// decide makes the objects of a decision, and says what follows from it.
func (d *deciding) decide(ctx context.Context, open program.Cluster, v program.View, user string, asked []string) (*prediction, error) {
	tag, digest, err := d.release(v)
	if err != nil {
		return nil, err
	}
	if err := d.warns(v, tag); err != nil {
		return nil, err
	}
	roles, err := d.rolesOf(ctx, open, v, asked)
	if err != nil {
		return nil, err
	}
	var made []v1alpha1.RolloutApproval
	for _, role := range roles {
		made = append(made, d.object(v, user, tag, digest, role))
	}
	p := d.follows(v, append(slices.Clone(v.Approvals.Given), d.stamped(made, v.Now)...), tag)
	p.effect, p.cautions = d.says(tag, digest, roles), cautions(v, tag)
	p.to = &made[0]
	for i := range made[1:] {
		p.others = append(p.others, &made[1+i])
	}
	return p, nil
}

// follows says what the engine does if these are the decisions of people.
func (d *deciding) follows(v program.View, given []v1alpha1.RolloutApproval, tag string) *prediction {
	changed := v
	changed.Approvals.Given = given
	after := promotion.Decide(changed.Input)
	effect := describe(changed, after)
	if of := promotion.StandingOf(changed.Input, after, tag).Verdict; of != nil && !of.Eligible() && !after.Action.Promotes() {
		effect = fmt.Sprintf("%s/%s: %s is held: %s", v.Rollout.Namespace, v.Rollout.Name, tag, messages(of.Holds))
	}
	p := &prediction{more: []string{effect}, promotes: after.Action.Promotes() && !v.Rollout.Spec.Suspend}
	if !v.Rollout.Spec.Suspend {
		p.doubt(v.Unread)
	}
	return p
}

// stamped returns decisions as the API server stores them at a time, with the reason that is
// shown.
func (d *deciding) stamped(made []v1alpha1.RolloutApproval, now time.Time) []v1alpha1.RolloutApproval {
	all := slices.Clone(made)
	for i := range all {
		all[i].Name, all[i].Spec.Reason = fmt.Sprint(all[i].GenerateName, "new-", i), d.shownReason()
		all[i].CreationTimestamp, all[i].UID = metav1.NewTime(now), "new-"+all[i].UID
	}
	return all
}

// says is the decision in words.
func (d *deciding) says(tag, digest string, roles []string) string {
	text := map[v1alpha1.Decision]string{
		v1alpha1.DecisionApprove: "approve ", v1alpha1.DecisionReject: "reject ", v1alpha1.DecisionOverride: "override the approvals of ",
	}[d.decision] + tag
	if digest != "" {
		text += " with the content " + digest
	}
	if named := slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return r == "" }); len(named) > 0 {
		text += ", as " + show.Words(named, "and")
	}
	if d.decision == v1alpha1.DecisionOverride {
		text += ", for " + show.Span(d.lasts)
	}
	return text
}

// object returns the decision in a role.
func (d *deciding) object(v program.View, user, tag, digest, role string) v1alpha1.RolloutApproval {
	made := v1alpha1.RolloutApproval{ObjectMeta: metav1.ObjectMeta{
		Namespace: v.Rollout.Namespace, GenerateName: v.Rollout.Name + "-",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.RolloutKind, Name: v.Rollout.Name, UID: v.Rollout.UID}},
	}}
	made.Spec = v1alpha1.RolloutApprovalSpec{
		RolloutRef: v1alpha1.RolloutReference{Name: v.Rollout.Name, UID: v.Rollout.UID}, Version: tag, Digest: digest,
		Decision: d.decision, Role: role, Reason: d.why, By: v1alpha1.Person{Username: user},
	}
	if d.decision == v1alpha1.DecisionOverride {
		made.Spec.For = &metav1.Duration{Duration: d.lasts}
		made.Spec.AlsoLifts, _ = d.lifts() // checked before
	}
	return made
}

// release returns the release that is meant, and its content.
func (d *deciding) release(v program.View) (tag, digest string, err error) {
	tag, digest, _ = strings.Cut(d.meant(v), "@")
	switch {
	case tag == "":
		return "", "", program.Refuse("no release of Rollout %s waits: say which version", v.Rollout.Name)
	case digest == "":
		digest = digestOf(v, tag)
	}
	if digest == "" && d.decision == v1alpha1.DecisionApprove {
		return "", "", program.Refuse("the digest of %s is not known, and an approval is of content: say it, as %s@sha256:…, or let ImagePolicy %s report it (spec.digestReflectionPolicy)",
			tag, tag, v.Policy.Name)
	}
	return tag, digest, nil
}

// meant returns the version that was named, or else the one that waits.
func (d *deciding) meant(v program.View) string {
	pinned, current := v.Rollout.Pinned(), v.Rollout.Current()
	switch {
	case d.tag != "":
		return d.tag
	case pinned != "" && (current == nil || current.Version.Tag != pinned):
		return pinned
	case len(v.Decision.Candidates) == 0:
		return ""
	}
	return v.Policy.FullName(v.Decision.Candidates[0].Release)
}

// digestOf returns the content of a tag; empty if nobody knows it. That of a candidate comes
// first: it may be other content than what runs. What runs unapproved comes before what is
// known of its tag.
func digestOf(v program.View, tag string) string {
	known := slices.Clone(v.Decision.Ledger)
	if current := v.Rollout.Current(); current != nil && current.Approval != nil && current.Approval.Outcome == v1alpha1.OutcomeMissing {
		known = append(known, current.Version)
	}
	for _, candidate := range v.Decision.Candidates {
		known = append(known, candidate.Release)
	}
	for _, release := range slices.Backward(known) {
		if release.Tag == tag && release.Digest != nil {
			return *release.Digest
		}
	}
	return ""
}

// rolesOf returns the roles in which the user decides: those that are asked for and that the
// user has. A gate without a role counts each of them.
func (d *deciding) rolesOf(ctx context.Context, open program.Cluster, v program.View, asked []string) ([]string, error) {
	switch {
	case d.decision == v1alpha1.DecisionOverride:
		asked = []string{""}
	case d.role != "":
		asked = []string{d.role}
	}
	var may, lacking []string
	for _, role := range asked {
		right := request.Right(d.decision, role)
		allowed, err := open.May(ctx, right, v.Rollout)
		switch {
		case err != nil:
			return nil, err
		case allowed:
			may = append(may, role)
		default:
			lacking = append(lacking, fmt.Sprintf("%q", right))
		}
	}
	switch {
	case len(may) == 0:
		return nil, program.Refuse("you may not %s releases of Rollout %s: that takes the verb %s on rollouts/%s",
			strings.ToLower(string(d.decision)), v.Rollout.Name, show.Words(lacking, "or"), v.Rollout.Name)
	case len(may) > 1 && may[0] == "":
		return may[1:], nil
	}
	return may, nil
}

// withdrawal deletes the decisions of the user that have had no effect so far.
func (d *deciding) withdrawal(ctx context.Context, open program.Cluster, v program.View, user string) (*prediction, error) {
	mine, err := d.mine(ctx, open, v.Rollout, user)
	switch {
	case err != nil:
		return nil, err
	case len(mine) == 0:
		return nil, isSo("there is no decision of yours to withdraw")
	}
	isMine := func(g v1alpha1.RolloutApproval) bool {
		return slices.ContainsFunc(mine, func(m v1alpha1.RolloutApproval) bool { return m.UID == g.UID })
	}
	p := d.follows(v, slices.DeleteFunc(slices.Clone(v.Approvals.Given), isMine), mine[0].Spec.Version)
	var names []string
	for i := range mine {
		names = append(names, fmt.Sprintf("%s (%s of %s)", mine[i].Name, mine[i].Spec.Decision, mine[i].Spec.Version))
		p.ends = append(p.ends, &mine[i])
	}
	p.effect = "withdraw " + strings.Join(names, ", ")
	return p, nil
}

// mine returns the decisions of a user on a Rollout that no promotion has used.
func (d *deciding) mine(ctx context.Context, open program.Cluster, rollout *v1alpha1.Rollout, user string) ([]v1alpha1.RolloutApproval, error) {
	used := usedBy(rollout)
	var all []v1alpha1.RolloutApproval
	err := program.EachPage(ctx, open.Client, rollout.Namespace, func(page *v1alpha1.RolloutApprovalList) {
		for i := range page.Items {
			if a := &page.Items[i]; a.Spec.RolloutRef.Name == rollout.Name && a.Spec.By.Username == user && d.means(a) && !used[string(a.UID)] {
				all = append(all, *a)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list RolloutApprovals: %w", err)
	}
	return all, nil
}

// usedBy returns the decisions that promotions of a Rollout have used, by UID.
func usedBy(rollout *v1alpha1.Rollout) map[string]bool {
	used := map[string]bool{}
	for i := range rollout.Status.History {
		if record := rollout.Status.History[i].Approval; record != nil {
			for _, by := range record.By {
				used[string(by.UID)] = true
			}
		}
	}
	return used
}

// means reports whether a decision is of the kind and on the release that was named.
func (d *deciding) means(a *v1alpha1.RolloutApproval) bool {
	return (d.decision == "" || a.Spec.Decision == d.decision) && (d.tag == "" || a.Spec.Version == d.tag)
}

// approves makes the verb approve one that creates RolloutApprovals where gates ask for
// them, and opens a gate elsewhere.
func (a *approving) approves(cmd *cobra.Command) {
	d := a.decides(cmd, v1alpha1.DecisionApprove)
	d.otherwise = func(v program.View) (request.Request, error) { return a.request(v) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if a.gate != "" || a.revoke {
			return a.run(cmd.Context(), args[0], a.request)
		}
		return d.run(cmd.Context(), args[0])
	}
}

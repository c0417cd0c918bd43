// SPDX-License-Identifier: Apache-2.0

// Package act has the verbs that change something: each predicts what happens, asks if a
// release goes out, and sends what it has predicted.
package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// changing is what all verbs that change something do: predict, ask, send what was
// predicted, and nothing else.
type changing struct {
	*program.Program
	// tag is the version that was named; empty if none was.
	tag    string
	why    string
	yes    bool
	dryRun string
	out    *program.Output
	awaiting
}

// newChanging adds the flags of a change to a verb, for which a reason is stored.
func newChanging(p *program.Program, cmd *cobra.Command) *changing {
	c := newUnsigned(p, cmd)
	program.ReasonVar(cmd.Flags(), &c.why, "why you do this, for the history")
	return c
}

// newUnsigned adds the flags of a change for which no reason is stored.
func newUnsigned(p *program.Program, cmd *cobra.Command) *changing {
	c := &changing{Program: p}
	flags := cmd.Flags()
	flags.BoolVarP(&c.yes, "yes", "y", false, "do not ask, even if something goes out at once")
	flags.StringVar(&c.dryRun, "dry-run", "", "client: only say what would happen; server: send the change, but store nothing")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	c.out = program.NewObjects(cmd)
	cmd.Args, cmd.ValidArgsFunction = program.OneName(0, "the name of a Rollout"), p.CompleteRollouts
	return c
}

const (
	dryRunClient = "client"
	dryRunServer = "server"
)

// asked makes a request from what is there, or says why there is nothing to request.
type asked func(v program.View) (request.Request, error)

// isSo says that what a user asks for is so already. It is no error of the verb.
type isSo string

func (is isSo) Error() string { return string(is) }

// mostConflicts is how often a change is predicted again because the object has changed.
const mostConflicts = 5

func (c *changing) run(ctx context.Context, name string, ask asked) error {
	if err := c.begin(); err != nil {
		return err
	}
	open, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	user := c.user(ctx, open)
	if err := c.carryOut(ctx, open, name, func() (*prediction, error) { return c.predict(ctx, open, name, user, ask) }); err != nil {
		return err
	}
	return c.await(ctx, name)
}

// carryOut predicts a change, asks, and sends it.
func (c *changing) carryOut(ctx context.Context, open program.Cluster, name string, predict func() (*prediction, error)) error {
	agreed, err := c.agreedTo(ctx, nil, predict)
	if err != nil {
		return err
	}
	return c.insist(ctx, open, name, agreed, predict)
}

// agreedTo predicts a change and asks; nil if there is nothing to change.
func (c *changing) agreedTo(ctx context.Context, before *prediction, predict func() (*prediction, error)) (*prediction, error) {
	now, err := predict()
	if c.saysSo("", err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return now, c.agree(ctx, before, now)
}

// saysSo says that what a user asks for is so already, if the error is that.
func (c *changing) saysSo(of string, err error) bool {
	so := isSo("")
	if !errors.As(err, &so) {
		return false
	}
	c.Out.Sentence(show.Well, "%s%s: nothing was sent", of, so)
	return true
}

// insist sends what the user has agreed to. If the object has changed in between, it
// predicts the change again.
func (c *changing) insist(ctx context.Context, open program.Cluster, name string, agreed *prediction, predict func() (*prediction, error)) error {
	for range mostConflicts {
		switch {
		case agreed == nil:
			return nil
		case c.dryRun == dryRunClient:
			return c.print(agreed.changed()...)
		}
		err := c.send(ctx, open, agreed)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if agreed, err = c.agreedTo(ctx, agreed, predict); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s changes all the time: nothing was sent; try again", name)
}

// begin checks the flags of a change before anything is read.
func (c *changing) begin() error {
	if !slices.Contains([]string{"", dryRunClient, dryRunServer}, c.dryRun) {
		return fmt.Errorf("--dry-run is client or server, not %q", c.dryRun)
	}
	return c.out.Begin(c.Program)
}

// prediction is a change and its effect.
type prediction struct {
	// from is the object as it was read, and to as it will be. Without from, it is created.
	from, to client.Object
	// others are created after it, and ends are removed, instead of a change of one object.
	others, ends []client.Object
	// effect is in words, without times, and more are the effects on other objects.
	effect string
	more   []string
	// promotes is true if a release goes out at once, or may do so.
	promotes bool
	// unread is what the effect depends on and the user may not read.
	unread program.Unread
	// asks is true if the user must agree for another reason.
	asks bool
	// cautions say what is bad about the release that is chosen, and held what holds it now.
	cautions []string
	held     string
}

// changed are the objects as they will be, or those that will be removed.
func (p *prediction) changed() []client.Object {
	if p.ends != nil {
		return p.ends
	}
	return append([]client.Object{p.to}, p.others...)
}

// predict decides as after the request.
func (c *changing) predict(ctx context.Context, open program.Cluster, name, user string, ask asked) (*prediction, error) {
	namespace, err := c.Namespace()
	if err != nil {
		return nil, err
	}
	facts, err := c.Take(ctx, open, namespace)
	if err != nil {
		return nil, err
	}
	return c.predictIn(ctx, facts, client.ObjectKey{Namespace: namespace, Name: name}, user, ask)
}

// predictIn decides as after the request, on what was read.
func (c *changing) predictIn(ctx context.Context, facts *snapshot.Snapshot, key client.ObjectKey, user string, ask asked) (*prediction, error) {
	v, err := c.ViewIn(ctx, facts, key, c.Now())
	if err != nil {
		return nil, err
	}
	r, err := ask(v)
	if err != nil {
		return nil, err
	}
	c.remember(v, r)
	p, err := c.effectOf(v, r.By(user, c.shownReason()))
	if err != nil {
		return nil, err
	}
	if p.from, p.to, err = v.Change(r.By(user, c.why)); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(p.from, p.to) {
		return nil, isSo("it is so already")
	}
	chosen := c.chooses(r)
	p.cautions, p.held = cautions(v, chosen), heldBy(v, chosen)
	return p, c.UndoneByGit(p.from, p.to)
}

// chooses returns the release that a request lets go; empty if it chooses none.
func (c *changing) chooses(r request.Request) string {
	if r.Verb == retryVerb {
		return c.about
	}
	return cmp.Or(r.Tag, c.tag)
}

// heldBy says what holds a release now; empty if nothing does.
func heldBy(v program.View, tag string) string {
	if standing := promotion.StandingOf(v.Input, v.Decision, tag).Verdict; standing != nil {
		return messages(standing.Holds)
	}
	return ""
}

// cautions says what is bad about a release: it has failed here, or is in quarantine.
func cautions(v program.View, tag string) []string {
	var all []string
	standing := promotion.StandingOf(v.Input, v.Decision, tag)
	release := v1alpha1.VersionInfo{}
	if verdict := standing.Verdict; verdict != nil {
		release = verdict.Release
	}
	if entry := standing.Entry; entry != nil {
		release = entry.Version
		if entry.State() == v1alpha1.BakeFailed {
			all = append(all, fmt.Sprintf("%s failed here%s: %s", entry.Version.Tag, idOf(entry), cmp.Or(ptr.Deref(entry.BakeStatusMessage, ""), "nobody knows why")))
		}
	}
	for _, q := range promotion.QuarantinesOn(v.Input, release) {
		all = append(all, fmt.Sprintf("%s is in quarantine: %s: %s", release.Tag, q.Name, q.Spec.Reason))
	}
	return all
}

func (c *changing) effectOf(v program.View, r request.Request) (*prediction, error) {
	changed := v
	changed.Input = r.Apply(v.Input)
	after := promotion.Decide(changed.Input)
	if objection := objection(v.Visible, after); objection != "" && v.Unread.OnlyHold() {
		return nil, program.Refuse("%s", objection)
	}
	effect := describe(changed, after)
	switch {
	case changed.Rollout.Spec.Suspend && !v.Rollout.Spec.Suspend:
		effect = stops(v)
	case !changed.Rollout.Spec.Suspend && v.Rollout.Spec.Suspend:
		effect += "; it was " + show.Suspension(v.Rollout, v.Now)
	}
	if standing := promotion.StandingOf(v.Input, after, r.Promotes).Verdict; standing != nil && !standing.Eligible() {
		effect = fmt.Sprintf("%s/%s: %s goes out once nothing else holds it: %s", v.Rollout.Namespace, v.Rollout.Name, r.Promotes, messages(standing.Holds))
	}
	p := &prediction{effect: effect, promotes: after.Action.Promotes() && !changed.Rollout.Spec.Suspend}
	if !changed.Rollout.Spec.Suspend { // else nothing happens until it is resumed
		p.doubt(v.Unread)
	}
	return p, nil
}

// shownReason returns the reason in an effect. On a page, it is written after the effect was
// read, and makes no other one of it.
func (c *changing) shownReason() string {
	if c.Agrees != nil {
		return "…"
	}
	return c.why
}

// doubt makes a change ask whose effect depends on what the user may not read.
func (p *prediction) doubt(unread program.Unread) {
	if unread.OnlyHold() && !p.promotes {
		return
	}
	if p.unread = unread; unread.Any() {
		p.promotes = true
	}
}

// stops says what a suspension stops.
func stops(v program.View) string {
	text := fmt.Sprintf("%s/%s: nothing happens until it is resumed", v.Rollout.Namespace, v.Rollout.Name)
	var stopped []string
	switch current := v.Rollout.Current(); {
	case current == nil || !current.State().Running():
	case current.State() == v1alpha1.BakeInProgress:
		stopped = append(stopped, "the bake of "+current.Version.Tag+" does not end")
	default:
		stopped = append(stopped, current.Version.Tag+" is not judged")
	}
	if len(v.Decision.Candidates) > 0 {
		stopped = append(stopped, v.Decision.Candidates[0].Release.Tag+" does not go out")
	}
	if len(stopped) > 0 {
		text += ": " + strings.Join(stopped, ", and ")
	}
	return text
}

// objection returns what the engine would answer to a request instead of doing it.
func objection(before, after promotion.Decision) string {
	isNew := func(p, was *verdict.Problem) bool { return p != nil && (was == nil || *p != *was) }
	switch {
	case isNew(after.Problem, before.Problem):
		return after.Problem.Message
	case isNew(after.Declined, before.Declined):
		return after.Declined.Message
	case len(after.Answers) > len(before.Answers):
		return after.Answers[len(after.Answers)-1].Message
	}
	return ""
}

// describe says what the engine does after a change.
func describe(v program.View, after promotion.Decision) string {
	runs := "nothing"
	if current := v.Rollout.Current(); current != nil {
		runs = current.Version.Tag
	}
	text := fmt.Sprintf("%s/%s: ", v.Rollout.Namespace, v.Rollout.Name)
	switch {
	case after.Action.Promotes():
		text += fmt.Sprintf("%s → %s: %s", runs, after.Release.Tag, after.Message)
		text += besides(v, after)
	case after.Action != promotion.Nothing:
		text += fmt.Sprintf("%s: %s", runs, after.Message)
	case len(after.Candidates) > 0 && !after.Candidates[0].Eligible():
		text += fmt.Sprintf("%s stays; %s is held: %s", runs, after.Candidates[0].Release.Tag, messages(after.Candidates[0].Holds))
	default:
		text += runs + " stays"
	}
	if !v.Unread.OnlyHold() && !after.Action.Promotes() {
		text = fmt.Sprintf("%s/%s: %s runs; what goes out then is not known", v.Rollout.Namespace, v.Rollout.Name, runs)
	}
	if v.Rollout.Spec.Suspend {
		text += " (once the Rollout is resumed: it is suspended)"
	}
	return text
}

// besides says what is special about a promotion; empty if nothing is.
func besides(v program.View, d promotion.Decision) string {
	text := ""
	for _, q := range promotion.QuarantinesOn(v.Input, d.Release) {
		text += "; goes past " + q.Name
	}
	if d.Recovery != nil {
		text += "; " + d.Recovery.Message
	}
	return text
}

func messages(holds []verdict.Hold) string {
	all := make([]string, 0, len(holds))
	for _, hold := range holds {
		all = append(all, hold.Message)
	}
	return strings.Join(all, "; ")
}

// agree shows the effect, and asks if a release goes out at once. An effect that was
// agreed to is not shown again.
func (c *changing) agree(ctx context.Context, before, now *prediction) error {
	if c.Agrees != nil {
		c.sayUnread(now.unread)
		return c.Agrees(program.Effect{Lines: append([]string{now.effect}, now.more...), Cautions: now.cautions, Held: now.held, Promotes: now.promotes})
	}
	if before != nil && before.effect == now.effect && slices.Equal(before.more, now.more) {
		return nil
	}
	if before != nil {
		c.Err.Sentence(show.Warns, "the objects have changed in between. Now:")
	}
	c.shows(now)
	c.sayUnread(now.unread)
	switch {
	case before == nil && !c.mustAsk(now.promotes || now.asks):
		return nil
	case before != nil && !c.Asks:
		return errors.New("nothing was changed, because this is not what was shown before; run it again")
	}
	return c.AskUser(ctx)
}

// sayUnread says that an effect depends on what the user may not read.
func (c *changing) sayUnread(unread program.Unread) {
	if unread.Any() {
		c.Err.Sentence(show.Warns, "that is not certain: you may not read %s, which the controller reads as well", unread)
	}
}

func (c *changing) shows(p *prediction) {
	for _, effect := range append([]string{p.effect}, p.more...) {
		c.Out.Sentence(show.Do, "%s", effect)
	}
}

// mustAsk reports whether a change is made only if the user agrees.
func (c *changing) mustAsk(promotes bool) bool { return promotes && !c.yes && c.dryRun == "" }

// send sends the change as one merge patch, on condition that the object is the one of
// the prediction.
func (c *changing) send(ctx context.Context, open program.Cluster, p *prediction) error {
	switch {
	case p.ends != nil:
		return c.remove(ctx, open, p.ends)
	case p.from == nil:
		return c.sendNew(ctx, open, p)
	}
	patch := client.MergeFromWithOptions(p.from, client.MergeFromWithOptimisticLock{})
	changes, err := program.ChangesIn(patch, p.to)
	if err != nil {
		return err
	}
	options := []client.PatchOption{client.FieldOwner(program.FieldManager)}
	if c.dryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	changed := p.to.DeepCopyObject().(client.Object)
	switch err := open.Client.Patch(ctx, changed, patch, options...); {
	case apierrors.IsConflict(err):
		return err
	case err != nil:
		return fmt.Errorf("change %s %s: %w", program.KindOf(p.to), p.to.GetName(), err)
	}
	c.Out.Sentence(show.Well, "%s %s: %s%s", program.KindOf(p.to), p.to.GetName(), strings.Join(changes, ", "), c.dryRunNote())
	return c.print(changed)
}

// sendNew creates an object, and those that belong to it.
func (c *changing) sendNew(ctx context.Context, open program.Cluster, p *prediction) error {
	for _, object := range append([]client.Object{p.to}, p.others...) {
		made := object.DeepCopyObject().(client.Object)
		if err := c.create(ctx, open, made); err != nil {
			return err
		}
		c.Out.Sentence(show.Well, "%s %s: created%s", program.KindOf(made), cmp.Or(made.GetName(), made.GetGenerateName()+"..."), c.dryRunNote())
	}
	return nil
}

// create creates an object, unless only its effect is wanted, and prints it if that is.
func (c *changing) create(ctx context.Context, open program.Cluster, object client.Object) error {
	options := []client.CreateOption{client.FieldOwner(program.FieldManager)}
	switch c.dryRun {
	case dryRunClient:
		return c.print(object)
	case dryRunServer:
		options = append(options, client.DryRunAll)
	}
	if err := open.Client.Create(ctx, object, options...); err != nil {
		return fmt.Errorf("create %s %s: %w", program.KindOf(object), object.GetName(), err)
	}
	return c.print(object)
}

// print prints objects if -o is given.
func (c *changing) print(all ...client.Object) error {
	for _, object := range all {
		if err := c.out.PrintObject(object); err != nil {
			return err
		}
	}
	return nil
}

func (c *changing) dryRunNote() string {
	if c.dryRun != "" {
		return " (dry run: nothing was stored)"
	}
	return ""
}

// user returns who the API server says the user is, for the history; nobody if it does
// not say.
func (c *changing) user(ctx context.Context, open program.Cluster) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := open.Client.Create(ctx, review); err != nil {
		c.Err.Sentence(show.Warns, "the API server does not say who you are: the history will not name you")
	}
	return review.Status.UserInfo.Username
}

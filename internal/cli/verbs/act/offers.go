// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/web"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// Offers returns what the page offers for a Rollout, and then for each candidate: first what
// was tried and helps.
func (p Page) Offers(ctx context.Context, v program.View, x explain.Explanation) ([][]web.Offer, error) {
	own := ofRollout(v)
	if x.Awaited != nil {
		own = append(own, ofPeople(x.Awaited.Version)...)
	}
	all := [][]web.Offer{offered(x.Remedies, own...)}
	for i, candidate := range x.Candidates {
		all = append(all, offered(candidate.Remedies, ofCandidate(v, v.Decision.Candidates[i])...))
	}
	return all, p.lacking(ctx, v, all)
}

// ofRollout returns the actions on a Rollout that need no candidate.
func ofRollout(v program.View) []web.Action {
	var all []web.Action
	if v.Rollout.Spec.Suspend {
		all = append(all, action("resume"))
	} else {
		all = append(all, action("suspend"))
	}
	if len(v.Rollout.Status.History) > 1 {
		all = append(all, action("rollback", "-m", ""))
	}
	switch current := v.Rollout.Current(); {
	case v.Rollout.Pinned() != "":
		all = append(all, action("unpin"))
	case current != nil:
		all = append(all, action("pin", "--version", current.Version.Tag))
	}
	if current := v.Rollout.Current(); current != nil && current.State() == v1alpha1.BakeFailed {
		all = append(all, action(retryVerb), action("unblock"))
	}
	return append(all, withdrawals(v)...)
}

// decisionOf are the decisions of verbs about them.
var decisionOf = map[string]v1alpha1.Decision{"approve": v1alpha1.DecisionApprove, "reject": v1alpha1.DecisionReject, "override": v1alpha1.DecisionOverride}

// withdrawals returns the actions that take back what has had no effect so far.
func withdrawals(v program.View) []web.Action {
	var all []web.Action
	for _, asked := range explain.PendingOf(v.Rollout, func(string) *metav1.Time { return nil }) {
		if asked.Verb != "" {
			all = append(all, action(asked.Verb, asked.Args...))
		}
	}
	used := usedBy(v.Rollout)
	for _, given := range v.Approvals.Given {
		verb := action(strings.ToLower(string(given.Spec.Decision)), "--version", given.Spec.Version, "--withdraw")
		if v.Person.Name != "" && given.Spec.By.Username == v.Person.Name && !used[string(given.UID)] && !slices.ContainsFunc(all, sameAs(verb)) {
			all = append(all, verb)
		}
	}
	return all
}

// ofCandidate returns the actions on a candidate that may be needed besides what helps.
func ofCandidate(v program.View, held promotion.Verdict) []web.Action {
	tag := held.Release.Tag
	all := []web.Action{action("pin", "--version", tag)}
	switch {
	case held.HeldByUpstreams():
		all = append(all, action("promote", "--version", tag, "--past-gates", "-m", ""))
	case held.HeldByGates():
		all = append(all, action("promote", "--version", tag, "--past-gates"))
	}
	all = append(all, action("promote", "--version", tag, "--force", "-m", ""))
	if len(v.RolesAsked()) > 0 {
		all = append(all, ofPeople(tag)...)
	}
	return all
}

// ofPeople returns what can be said of a release that waits for approvals.
func ofPeople(tag string) []web.Action {
	return []web.Action{action("approve", "--version", tag), action("reject", "--version", tag, "-m", ""), action("override", "--version", tag, "--for", "1h", "-m", "")}
}

func action(verb string, args ...string) web.Action { return web.Action{Verb: verb, Args: args} }

// sameAs reports whether an action is another one, however its version is written.
func sameAs(a web.Action) func(web.Action) bool {
	return func(b web.Action) bool {
		return a.Verb == b.Verb && a.Name == b.Name && slices.Equal(plain(a), plain(b))
	}
}

// plain returns the arguments of an action as flags, without the reason.
func plain(a web.Action) []string {
	args, _ := cutReason(a.Args)
	if (a.Verb == "pin" || a.Verb == "rollback") && len(args) == 1 {
		return []string{"--version", args[0]}
	}
	return args
}

// offered returns remedies and other actions, each once.
func offered(remedies []explain.Command, others ...web.Action) []web.Offer {
	var actions []web.Action
	for _, r := range remedies {
		actions = append(actions, web.Action{Verb: r.Verb, Name: r.Name, Args: r.Args})
	}
	for _, other := range others {
		if !slices.ContainsFunc(actions, sameAs(other)) {
			actions = append(actions, other)
		}
	}
	all := []web.Offer{}
	for _, a := range actions {
		a.Args = asFlags(a)
		all = append(all, web.Offer{Action: a, Title: title(a)})
	}
	return all
}

// asFlags returns arguments without a version that has no flag.
func asFlags(a web.Action) []string {
	if len(a.Args) > 0 && !strings.HasPrefix(a.Args[0], "-") {
		return append([]string{"--version"}, a.Args...)
	}
	return a.Args
}

// titles are what actions do, in words.
var titles = map[string]string{
	"suspend": "Suspend", "resume": "Resume", "rollback": "Roll back", "pin": "Pin", "unpin": "End the pin", retryVerb: "Judge it again",
	"unblock": "Let the next release go", "lift": "End the quarantine", "unfreeze": "End the freeze", "promote": "Promote",
	"approve": "Approve", "reject": "Reject", "override": "Override the approvals of",
}

// title says what an action does.
func title(a web.Action) string {
	flag := func(name string) string {
		if i := slices.Index(a.Args, "--"+name); i >= 0 && i+1 < len(a.Args) {
			return a.Args[i+1]
		}
		return ""
	}
	has := func(name string) bool { return slices.Contains(a.Args, "--"+name) }
	words := program.NonEmpty(titles[a.Verb], a.Name, flag("version"), flag("to"))
	if has("withdraw") {
		words = append([]string{"Withdraw:"}, words...)
	}
	for _, end := range []struct{ flag, text string }{{"gate", "in gate " + flag("gate")}, {"role", "as " + flag("role")}, {"past-gates", "past gates and schedules"}, {"force", "past everything"}} {
		if has(end.flag) {
			words = append(words, end.text)
		}
	}
	return strings.Join(words, " ")
}

// right is one that an action takes.
type right = authorizationv1.ResourceAttributes

// needs returns the rights that an action takes.
func needs(a web.Action, v program.View) []right {
	of := func(verb, resource, name string) right {
		return right{Namespace: v.Rollout.Namespace, Group: v1alpha1.GroupVersion.Group, Verb: verb, Resource: resource, Name: name}
	}
	gate := slices.Index(a.Args, "--gate")
	switch {
	case a.Verb == "approve" && gate >= 0:
		return []right{of("patch", "rolloutgates", a.Args[gate+1])}
	case a.Verb == "lift":
		return []right{of("patch", "releasequarantines", a.Name)}
	case a.Verb == "unfreeze" && a.Name != "":
		return []right{of("delete", "rolloutschedules", a.Name)}
	case a.Verb == "unfreeze":
		return []right{of("delete", "rolloutgates", "")}
	case decisionOf[a.Verb] == "":
		return []right{of("patch", "rollouts", v.Rollout.Name)}
	case slices.Contains(a.Args, "--withdraw"):
		return []right{of("delete", "rolloutapprovals", "")}
	}
	all := []right{of("create", "rolloutapprovals", "")}
	// Where gates ask for several roles, the verb says which of them the user lacks.
	switch roles := v.RolesAsked(); {
	case decisionOf[a.Verb] == v1alpha1.DecisionOverride:
		all = append(all, of(request.Right(v1alpha1.DecisionOverride, ""), "rollouts", v.Rollout.Name))
	case len(roles) == 1:
		all = append(all, of(request.Right(v1alpha1.DecisionApprove, roles[0]), "rollouts", v.Rollout.Name))
	}
	return all
}

// lacking notes the rights that the user does not have: each is asked for once, and all at the
// same time.
func (p Page) lacking(ctx context.Context, v program.View, all [][]web.Offer) error {
	open, err := p.Connect(ctx)
	if err != nil {
		return err
	}
	asked := map[right]bool{}
	for _, offers := range all {
		for _, o := range offers {
			for _, r := range needs(o.Action, v) {
				asked[r] = true
			}
		}
	}
	has, err := mays(ctx, open, asked)
	for _, offers := range all {
		for i := range offers {
			for _, r := range needs(offers[i].Action, v) {
				if !has[r] {
					offers[i].Lacks = fmt.Sprintf("you need %s on %s in %s", r.Verb, r.Resource, r.Namespace)
				}
			}
		}
	}
	return err
}

func mays(ctx context.Context, open program.Cluster, asked map[right]bool) (map[right]bool, error) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	var failed error
	has := map[right]bool{}
	for r := range asked {
		wait.Go(func() {
			allowed, err := open.Allows(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			if has[r] = allowed; err != nil {
				failed = err
			}
		})
	}
	wait.Wait()
	return has, failed
}

// SPDX-License-Identifier: Apache-2.0

// Package request has what users ask of a Rollout: each request is a change of the Rollout,
// of one of its gates, or of a quarantine. The effect of a request is predicted by deciding with the
// changed objects, and the change that was predicted is the one that is sent. A freeze is no
// change but an object of its own (freeze.go).
//
// It is pure: it reads nothing and sends nothing.
package request

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// Request is a change that a user asks for.
type Request struct {
	// Verb and Args are what a user types: the verb, the name of the Rollout or of the
	// Quarantine, Args. A reason that is required is empty: the user writes it.
	Verb string
	Args []string
	// Gate is the name of the gate that is changed; empty if none is.
	Gate string
	// Quarantine is the name of the ReleaseQuarantine that is lifted; empty if none is.
	Quarantine string
	// Schedule is the name of the RolloutSchedule that is deleted; empty if none is.
	Schedule string
	// Decision is the RolloutApproval that is created; nil if none is.
	Decision *v1alpha1.RolloutApproval
	// Promotes is the candidate that is promoted once nothing else holds it; empty for
	// requests that have their effect at once, or never.
	Promotes string

	// Tag is the release that is chosen or let go; empty for requests about no other one than
	// the current one.
	Tag string

	// signature is where the Rollout gets the user and the reason; empty if it gets neither.
	signature signature
	// answer is what a gate is answered; empty if none is.
	answer        string
	changeRollout func(*v1alpha1.Rollout)
	changeGate    func(*v1alpha1.RolloutGate)
}

// signature is the annotations that have the user who makes a request, and the reason.
type signature struct{ user, why string }

var (
	ofChoice     = signature{v1alpha1.DeployUserAnnotation, v1alpha1.DeployMessageAnnotation}
	ofSuspension = signature{v1alpha1.SuspendedByAnnotation, v1alpha1.SuspendedReasonAnnotation}
)

// Pin deploys a tag, and holds back all others until [Unpin].
func Pin(tag string) Request {
	return Request{Verb: "pin", Args: []string{tag}, Tag: tag, signature: ofChoice, changeRollout: func(r *v1alpha1.Rollout) { r.Spec.WantedVersion = &tag }}
}

// Rollback pins a release of the history. The reason is left to the user.
func Rollback(tag string) Request {
	r := Pin(tag)
	r.Verb, r.Args = "rollback", []string{"--to", tag, "-m", ""}
	return r
}

// Unpin ends a pin. Automatic promotions go on.
func Unpin() Request {
	return Request{Verb: "unpin", changeRollout: func(r *v1alpha1.Rollout) { r.Spec.WantedVersion = nil }}
}

// Promote deploys a known release at once, whatever holds it, and pins nothing.
func Promote(tag string) Request {
	r := annotate(v1alpha1.ForceDeployAnnotation, tag, "promote", "--version", tag, "--force", "-m", "")
	r.Tag, r.signature = tag, ofChoice
	return r
}

// PromoteProven promotes a candidate where an Environment leaves that to users. All other
// holds stay: it is promoted as soon as they end.
func PromoteProven(tag string) Request {
	r := annotate(v1alpha1.PromoteAnnotation, tag, "promote", "--version", tag)
	r.Tag, r.signature, r.Promotes = tag, ofChoice, tag
	return r
}

// PromotePastUpstreams lets a candidate go past gates and schedules, and past the
// environments that have not proven it. An Environment may require a reason.
func PromotePastUpstreams(tag, why string) Request {
	r := PromotePastGates(tag)
	r.Args = append(r.Args, "-m", "")
	return r.By("", why)
}

// PromotePastGates lets a candidate go past gates and schedules. Its HealthChecks and its
// bake still count.
func PromotePastGates(tag string) Request {
	r := annotate(v1alpha1.BypassGatesAnnotation, tag, "promote", "--version", tag, "--past-gates")
	r.Tag, r.signature = tag, ofChoice
	return r
}

// Retry judges the failed current release again.
func Retry() Request { return annotate(v1alpha1.RetryAnnotation, "true", "retry") }

// Unblock lets one automatic promotion go past a failure.
func Unblock() Request { return annotate(v1alpha1.UnblockFailedAnnotation, "true", "unblock") }

// Adopt makes a history that is older than the targets go on from what they carry, or from
// the pin.
func Adopt() Request { return annotate(v1alpha1.AdoptAnnotation, "true", "adopt") }

// withdrawal is the verb that takes back requests, its flags, and their annotations.
type withdrawal struct {
	verb        string
	flags       []string
	annotations []string
}

var withdrawals = map[string]withdrawal{
	"bypass": {"promote", []string{"--past-gates", "--withdraw"}, []string{v1alpha1.BypassGatesAnnotation}},
	"force":  {"promote", []string{"--force", "--withdraw"}, []string{v1alpha1.ForceDeployAnnotation}},
	"promote": {"promote", []string{"--withdraw"}, []string{
		v1alpha1.PromoteAnnotation, v1alpha1.BypassGatesAnnotation, v1alpha1.ForceDeployAnnotation,
	}},
	"unblock": {"unblock", []string{"--withdraw"}, []string{v1alpha1.UnblockFailedAnnotation}},
}

// Withdraw takes back requests that have had no effect so far: bypass, force, unblock, or
// promote for each one of that verb. It reports whether there is a request of this name.
func Withdraw(name string) (Request, bool) {
	w, known := withdrawals[name]
	return Request{Verb: w.verb, Args: w.flags, changeRollout: func(r *v1alpha1.Rollout) {
		before := len(r.Annotations)
		for _, key := range w.annotations {
			delete(r.Annotations, key)
		}
		if w.verb == "promote" && r.Pinned() == "" && len(r.Annotations) < before { // else the words are not about it
			sign(r, ofChoice, "", "")
		}
	}}, known
}

// Suspend stops everything that the controller does for the Rollout, from now on.
func Suspend(now time.Time) Request {
	return Request{Verb: "suspend", signature: ofSuspension, changeRollout: func(r *v1alpha1.Rollout) {
		r.Spec.Suspend = true
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.SuspendedAtAnnotation, now.UTC().Format(time.RFC3339))
	}}
}

// Resume ends a suspension.
func Resume() Request {
	return Request{Verb: "resume", changeRollout: func(r *v1alpha1.Rollout) {
		r.Spec.Suspend = false
		delete(r.Annotations, v1alpha1.SuspendedAtAnnotation)
		sign(r, ofSuspension, "", "")
	}}
}

// signed is the end of a sentence: by whom, and why.
func signed(user, why string) string {
	text := ""
	if user != "" {
		text += " by " + user
	}
	if why != "" {
		text += ": " + why
	}
	return text
}

// Approve makes a gate pass for a tag. A gate that passes, and allows only some tags, allows
// this one as well. One that is closed opens for this tag alone, so that the next release
// waits again.
func Approve(gate, tag string) Request {
	return Request{
		Verb: "approve", Args: []string{"--gate", gate, "--version", tag}, Gate: gate, answer: tag + " approved",
		changeGate: func(g *v1alpha1.RolloutGate) { approve(g, tag) },
	}
}

func approve(g *v1alpha1.RolloutGate, tag string) {
	var allowed []string
	switch list := g.Spec.AllowedVersions; {
	case !g.IsPassing():
	case list == nil:
		return // it allows every tag already
	default:
		allowed = slices.Clone(*list)
	}
	if !slices.Contains(allowed, tag) {
		allowed = append(allowed, tag)
	}
	g.Spec.Passing, g.Spec.AllowedVersions = new(true), &allowed
}

// Allows reports whether a gate lets a tag pass.
func Allows(g *v1alpha1.RolloutGate, tag string) bool {
	return g.IsPassing() && (g.Spec.AllowedVersions == nil || slices.Contains(*g.Spec.AllowedVersions, tag))
}

// Revoke takes an approval back: the gate does not allow the tag any more.
func Revoke(gate, tag string) Request {
	return Request{
		Verb: "approve", Args: []string{"--gate", gate, "--version", tag, "--revoke"}, Gate: gate, answer: tag + " revoked",
		changeGate: func(g *v1alpha1.RolloutGate) {
			if g.Spec.AllowedVersions != nil {
				kept := slices.DeleteFunc(slices.Clone(*g.Spec.AllowedVersions), func(v string) bool { return v == tag })
				g.Spec.AllowedVersions = &kept
			}
		},
	}
}

// Unfreeze ends a freeze of one Rollout, which is a gate.
func Unfreeze(gate string) Request {
	return Request{Verb: "unfreeze", Gate: gate, changeGate: func(g *v1alpha1.RolloutGate) {
		g.Spec.Passing, g.Spec.AllowedVersions = new(true), nil
	}}
}

// UnfreezeAll ends a freeze of all Rollouts that a RolloutSchedule selects.
func UnfreezeAll(schedule string) Request { return Request{Verb: "unfreeze", Schedule: schedule} }

// Name returns what is typed behind the verb; empty for the name of the Rollout.
func (r Request) Name() string { return cmp.Or(r.Quarantine, r.Schedule) }

// Lift ends a quarantine for all Rollouts of the namespace.
func Lift(quarantine string) Request { return Request{Verb: "lift", Quarantine: quarantine} }

// By returns the request with the user who makes it and the reason, where the changed
// object has a place for them: the history, through annotations of the Rollout; the
// annotations of a suspension; or the annotation of a gate.
func (r Request) By(user, why string) Request {
	changeRollout, changeGate := r.changeRollout, r.changeGate
	switch {
	case r.signature != signature{}:
		r.changeRollout = func(rollout *v1alpha1.Rollout) {
			changeRollout(rollout)
			sign(rollout, r.signature, user, why)
		}
	case r.answer != "":
		r.changeGate = func(gate *v1alpha1.RolloutGate) {
			before := gate.Spec.DeepCopy()
			if changeGate(gate); !reflect.DeepEqual(*before, gate.Spec) {
				metav1.SetMetaDataAnnotation(&gate.ObjectMeta, v1alpha1.ApprovalAnnotation, r.answer+signed(user, why))
			}
		}
	}
	return r
}

// sign sets the annotations of a signature, or removes them. A text that an earlier request
// has left must not be taken for this one.
func sign(rollout *v1alpha1.Rollout, s signature, user, why string) {
	for key, text := range map[string]string{s.user: user, s.why: why} {
		delete(rollout.Annotations, key)
		if text != "" {
			metav1.SetMetaDataAnnotation(&rollout.ObjectMeta, key, text)
		}
	}
}

func annotate(key, value, verb string, args ...string) Request {
	return Request{Verb: verb, Args: args, changeRollout: func(r *v1alpha1.Rollout) {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value)
	}}
}

// ChangeRollout makes the change, unless the request is about a gate.
func (r Request) ChangeRollout(rollout *v1alpha1.Rollout) {
	if r.changeRollout != nil {
		r.changeRollout(rollout)
	}
}

// ChangeGate makes the change, if the request is about this gate.
func (r Request) ChangeGate(gate *v1alpha1.RolloutGate) {
	if r.changeGate != nil && gate.Name == r.Gate {
		r.changeGate(gate)
	}
}

// ChangeQuarantine makes the change, if the request is about this quarantine.
func (r Request) ChangeQuarantine(name string, spec *v1alpha1.ReleaseQuarantineSpec) {
	if r.Quarantine != "" && name == r.Quarantine {
		spec.Lifted = true
	}
}

// Apply returns the input of a decision as it is after the request. The objects of the
// given input stay as they are.
func (r Request) Apply(in promotion.Input) promotion.Input {
	in.Rollout = in.Rollout.DeepCopy()
	r.ChangeRollout(in.Rollout)
	gates := make([]v1alpha1.RolloutGate, len(in.Gates.Gates))
	for i := range in.Gates.Gates {
		in.Gates.Gates[i].DeepCopyInto(&gates[i])
		r.ChangeGate(&gates[i])
	}
	in.Gates.Gates, in.Approvals.Given = gates, r.given(in.Approvals.Given, in)
	in.Gates.Schedules = slices.DeleteFunc(slices.Clone(in.Gates.Schedules), func(w promotion.Window) bool {
		return r.Schedule != "" && w.Schedule == "RolloutSchedule "+r.Schedule
	})
	in.Quarantines.All = slices.Clone(in.Quarantines.All)
	for i := range in.Quarantines.All {
		if name, own := in.Quarantines.All[i].OwnName(); own {
			r.ChangeQuarantine(name, &in.Quarantines.All[i].Spec)
		}
	}
	if r.signature == ofChoice {
		in.ForeignAnnotations = nil
		in.Approvals.Requesters = r.requesters(in)
	}
	return in
}

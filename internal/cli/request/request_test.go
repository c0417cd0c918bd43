// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func withdraw(t *testing.T, name string) request.Request {
	t.Helper()
	r, ok := request.Withdraw(name)
	if !ok {
		t.Fatalf("%s cannot be withdrawn", name)
	}
	return r
}

func TestRequestChangesOneThingOfTheRollout(t *testing.T) {
	const bypass, force, unblock = v1alpha1.BypassGatesAnnotation, v1alpha1.ForceDeployAnnotation, v1alpha1.UnblockFailedAnnotation
	plain := func() *fixture.RolloutBuilder { return fixture.MakeRollout("shop") }
	for name, tt := range map[string]struct {
		request request.Request
		typed   string
		before  *fixture.RolloutBuilder
		want    *fixture.RolloutBuilder
	}{
		"pin":       {request.Pin("1.0.0"), "pin 1.0.0", plain(), plain().Pin("1.0.0")},
		"unpin":     {request.Unpin(), "unpin", plain().Pin("1.0.0"), plain()},
		"force":     {request.Promote("1.0.0"), "promote --version 1.0.0 --force -m ", plain(), plain().Annotate(force, "1.0.0")},
		"bypass":    {request.PromotePastGates("1.0.0"), "promote --version 1.0.0 --past-gates", plain(), plain().Annotate(bypass, "1.0.0")},
		"proven":    {request.PromoteProven("1.0.0"), "promote --version 1.0.0", plain(), plain().Annotate(v1alpha1.PromoteAnnotation, "1.0.0")},
		"past":      {request.PromotePastUpstreams("1.0.0", "why"), "promote --version 1.0.0 --past-gates -m ", plain(), plain().Annotate(bypass, "1.0.0").Annotate(v1alpha1.DeployMessageAnnotation, "why")},
		"retry":     {request.Retry(), "retry", plain(), plain().Annotate(v1alpha1.RetryAnnotation, "true")},
		"adopt":     {request.Adopt(), "adopt", plain(), plain().Annotate(v1alpha1.AdoptAnnotation, "true")},
		"unblock":   {request.Unblock(), "unblock", plain(), plain().Annotate(unblock, "true")},
		"withdrawn": {withdraw(t, "bypass"), "promote --past-gates --withdraw", plain().Annotate(force, "1").Annotate(bypass, "1"), plain().Annotate(force, "1")},
		"withdrawn, whatever it was": {
			withdraw(t, "promote"), "promote --withdraw",
			plain().Annotate(force, "1").Annotate(bypass, "1").Annotate(v1alpha1.PromoteAnnotation, "1").Annotate(unblock, "true"), plain().Annotate(unblock, "true"),
		},
		"withdrawn with its words": {
			withdraw(t, "force"), "promote --force --withdraw",
			plain().Annotate(force, "1").Annotate(v1alpha1.DeployUserAnnotation, "ann").Annotate(v1alpha1.RetryAnnotation, ""), plain().Annotate(v1alpha1.RetryAnnotation, ""),
		},
		"withdrawn, and the words are those of a pin": {
			withdraw(t, "force"), "promote --force --withdraw",
			plain().Pin("2").Annotate(force, "1").Annotate(v1alpha1.DeployUserAnnotation, "ann"), plain().Pin("2").Annotate(v1alpha1.DeployUserAnnotation, "ann"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if typed := strings.Join(append([]string{tt.request.Verb}, tt.request.Args...), " "); typed != tt.typed {
				t.Errorf("typed as %q, want %q", typed, tt.typed)
			}
			rollout := tt.before.Obj()
			tt.request.ChangeRollout(rollout)
			if diff := cmp.Diff(tt.want.Obj(), rollout); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, ok := request.Withdraw("everything"); ok {
		t.Error("an unknown request can be withdrawn")
	}
}

func TestSuspensionBeginsAndEnds(t *testing.T) {
	rollout := fixture.MakeRollout("shop").Annotate("others", "stay").Obj()
	at := fixture.Noon
	request.Suspend(at).By("ann", "INC-1").ChangeRollout(rollout)
	if text := show.Suspension(rollout, at.Add(72*time.Hour)); !rollout.Spec.Suspend || text != "suspended 3d ago by ann: INC-1" {
		t.Errorf("it is suspended: %t, %q", rollout.Spec.Suspend, text)
	}
	request.Resume().ChangeRollout(rollout)
	want := fixture.MakeRollout("shop").Annotate("others", "stay").Obj()
	if diff := cmp.Diff(want, rollout); diff != "" {
		t.Errorf("resumed (-want +got):\n%s", diff)
	}
	if text := show.Suspension(rollout, at); text != "suspended" {
		t.Errorf("a suspension of others is %q", text)
	}
}

func TestApprovalLetsOneTagPass(t *testing.T) {
	const approval = v1alpha1.ApprovalAnnotation
	gate := func() *fixture.GateBuilder { return fixture.MakeGate("qa", "shop") }
	for name, tt := range map[string]struct {
		request request.Request
		before  *fixture.GateBuilder
		want    *fixture.GateBuilder
	}{
		"a closed gate opens for it alone":     {request.Approve("qa", "1.1.0"), gate().Closed(), gate().Allow("1.1.0")},
		"a gate with a list has it added":      {request.Approve("qa", "1.1.0"), gate().Allow("1.0.0"), gate().Allow("1.0.0", "1.1.0")},
		"once":                                 {request.Approve("qa", "1.1.0"), gate().Allow("1.1.0"), gate().Allow("1.1.0")},
		"an open gate stays as it is":          {request.Approve("qa", "1.1.0"), gate(), gate()},
		"a closed gate keeps none":             {request.Approve("qa", "1.1.0"), gate().Allow("1.0.0").Closed(), gate().Allow("1.1.0")},
		"who and why is stored":                {request.Approve("qa", "1.1.0").By("ann", "tested"), gate().Closed(), gate().Allow("1.1.0").Annotate(approval, "1.1.0 approved by ann: tested")},
		"who revokes it, too":                  {request.Revoke("qa", "1.1.0").By("ann", ""), gate().Allow("1.1.0"), gate().Allow().Annotate(approval, "1.1.0 revoked by ann")},
		"nothing is stored if nothing changes": {request.Approve("qa", "1.1.0").By("ann", "tested"), gate(), gate()},
		"another gate stays as it is":          {request.Approve("legal", "1.1.0"), gate().Closed(), gate().Closed()},
		"revoked":                              {request.Revoke("qa", "1.1.0"), gate().Allow("1.0.0", "1.1.0"), gate().Allow("1.0.0")},
		"revoked where nothing is listed":      {request.Revoke("qa", "1.1.0"), gate(), gate()},
		"a request for the Rollout":            {request.Pin("1.1.0"), gate().Closed(), gate().Closed()},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.before.Obj()
			tt.request.ChangeGate(got)
			if diff := cmp.Diff(tt.want.Obj(), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyTheChoiceOfAVersionIsSigned(t *testing.T) {
	const user, message = v1alpha1.DeployUserAnnotation, v1alpha1.DeployMessageAnnotation
	left := func() *fixture.RolloutBuilder {
		return fixture.MakeRollout("shop").Annotate(user, "bob").Annotate(message, "before")
	}
	for name, tt := range map[string]struct {
		request request.Request
		want    map[string]string
	}{
		"a pin":                   {request.Pin("1").By("ann", "why"), map[string]string{user: "ann", message: "why"}},
		"a pin without a message": {request.Pin("1").By("ann", ""), map[string]string{user: "ann"}},
		"a pin by nobody":         {request.Pin("1").By("", ""), map[string]string{}},
		"a force": {
			request.Promote("1").By("ann", "why"),
			map[string]string{user: "ann", message: "why", v1alpha1.ForceDeployAnnotation: "1"},
		},
		"a promotion of what is proven": {
			request.PromoteProven("1").By("ann", "why"),
			map[string]string{user: "ann", message: "why", v1alpha1.PromoteAnnotation: "1"},
		},
		"a bypass of Environments": {
			request.PromotePastUpstreams("1", "why").By("ann", "why"),
			map[string]string{user: "ann", message: "why", v1alpha1.BypassGatesAnnotation: "1"},
		},
		"a bypass of Environments without a message": {
			request.PromotePastUpstreams("1", "").By("ann", ""),
			map[string]string{user: "ann", v1alpha1.BypassGatesAnnotation: "1"},
		},
		"a bypass of gates": {
			request.PromotePastGates("1").By("ann", "why"),
			map[string]string{user: "ann", message: "why", v1alpha1.BypassGatesAnnotation: "1"},
		},
		"not a retry": {
			request.Retry().By("ann", "why"),
			map[string]string{user: "bob", message: "before", v1alpha1.RetryAnnotation: "true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := left().Obj()
			tt.request.ChangeRollout(rollout)
			if diff := cmp.Diff(tt.want, rollout.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyLeavesTheInputAsItIs(t *testing.T) {
	in := promotion.Input{
		Rollout: fixture.MakeRollout("shop").Obj(), ForeignAnnotations: map[string]bool{v1alpha1.DeployUserAnnotation: true},
		Gates: promotion.Gates{Gates: []v1alpha1.RolloutGate{*fixture.MakeGate("qa", "shop").Closed().Obj()}},
	}
	approved, pinned := request.Approve("qa", "1.1.0").Apply(in), request.Pin("1.1.0").Apply(in)
	if !approved.Gates.Gates[0].IsPassing() || in.Gates.Gates[0].IsPassing() {
		t.Error("the gate of the result is closed, or that of the input is open")
	}
	if pinned.Rollout.Pinned() != "1.1.0" || in.Rollout.Pinned() != "" {
		t.Error("the result is not pinned, or the input is")
	}
	if len(pinned.ForeignAnnotations) > 0 || len(approved.ForeignAnnotations) == 0 {
		t.Error("the words of a pin are its own, and those of an approval are not")
	}
}

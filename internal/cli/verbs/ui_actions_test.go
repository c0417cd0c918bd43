// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/act"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/internal/cli/web"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var shop = types.NamespacedName{Namespace: fixture.Namespace, Name: "shop"}

// page returns the actions of the page on the same objects, and what they say in the terminal.
func (m *inMemory) page(t *testing.T) (act.Page, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &said, ErrOut: &said})
	m.prepare(t, p)
	other := "elsewhere" // the namespace of the context is not that of the page
	p.Kubeconfig.Namespace = &other
	return act.Page{Program: p}, &said
}

// everything returns what the cluster has, without what differs between two clusters.
func (m *inMemory) everything(t *testing.T) []client.Object {
	t.Helper()
	rollouts, gates, approvals, quarantines := &v1alpha1.RolloutList{}, &v1alpha1.RolloutGateList{}, &v1alpha1.RolloutApprovalList{}, &v1alpha1.ReleaseQuarantineList{}
	for _, list := range []client.ObjectList{rollouts, gates, approvals, quarantines} {
		if err := m.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var all []client.Object
	for i := range rollouts.Items {
		all = append(all, &rollouts.Items[i])
	}
	for i := range gates.Items {
		all = append(all, &gates.Items[i])
	}
	for i := range approvals.Items {
		all = append(all, &approvals.Items[i])
	}
	for i := range quarantines.Items {
		all = append(all, &quarantines.Items[i])
	}
	for _, object := range all {
		object.SetName(strings.TrimSuffix(object.GetName(), strings.TrimPrefix(object.GetName(), object.GetGenerateName())))
	}
	return all
}

// generated is the end of a name that the API server makes.
var generated = regexp.MustCompile(`-[a-z0-9]{5}:`)

const why = "INC-4711: payments are down"

// heldByQA are a Rollout that runs 1.0.0 and whose gate holds 1.1.0.
func heldByQA() []client.Object {
	return append(withCandidate("shop", old()), fixture.MakeGate("qa", "shop").Closed().Obj())
}

// changed returns objects of which the Rollout is changed.
func changed(objects []client.Object, change func(*v1alpha1.Rollout)) []client.Object {
	change(objects[0].(*v1alpha1.Rollout))
	return objects
}

func failing() []client.Object {
	return []client.Object{
		fixture.MakeRollout("shop").History(fixture.MakeEntry("1.1.0").ID(2).Failed().Because("smoke answers with 502"), fixture.MakeEntry("1.0.0").ID(1).Succeeded()).Ledger("1.0.0", "1.1.0").Obj(),
		fixture.MakePolicy("shop").Latest("1.1.0").Obj(), fixture.MakeScan("shop").Obj(),
	}
}

// Case 20: what the page sends is what the command line sends, and what it shows before is what
// the command line shows.
func TestPageSendsWhatTheCommandLineSends(t *testing.T) {
	annotated := func(key string) func(*v1alpha1.Rollout) {
		return func(r *v1alpha1.Rollout) { r.Annotations = map[string]string{key: "1.1.0"} }
	}
	asking := func() []client.Object {
		gate := fixture.MakeGate("qa", "shop").Asking(fixture.AskFor(1)).Obj()
		return append(withCandidate("shop", old()), gate)
	}
	rejected := fixture.MakeApproval("alice", "shop", "1.1.0").Reject().Obj()
	for line, c := range map[string]struct {
		objects []client.Object
		reason  string
		use     web.ReasonUse
	}{
		"pin shop --version 1.1.0":                  {heldByQA(), why, web.ReasonOptional},
		"unpin shop":                                {changed(heldByQA(), func(r *v1alpha1.Rollout) { r.Spec.WantedVersion = new("1.0.0") }), "", web.ReasonNone},
		"rollback shop":                             {failing(), why, web.ReasonRequired},
		"rollback shop --to 1.0.0":                  {failing(), why, web.ReasonRequired},
		"retry shop":                                {failing(), "", web.ReasonNone},
		"unblock shop":                              {failing(), "", web.ReasonNone},
		"unblock shop --withdraw":                   {changed(failing(), annotated(v1alpha1.UnblockFailedAnnotation)), "", web.ReasonNone},
		"promote shop --version 1.1.0 --past-gates": {heldByQA(), why, web.ReasonOptional},
		"promote shop --version 1.1.0 --force":      {heldByQA(), why, web.ReasonRequired},
		"promote shop --past-gates --withdraw":      {changed(heldByQA(), annotated(v1alpha1.BypassGatesAnnotation)), "", web.ReasonNone},
		"promote shop --withdraw":                   {changed(heldByQA(), annotated(v1alpha1.ForceDeployAnnotation)), "", web.ReasonNone},
		"suspend shop":                              {heldByQA(), why, web.ReasonOptional},
		"resume shop":                               {changed(heldByQA(), func(r *v1alpha1.Rollout) { r.Spec.Suspend = true }), "", web.ReasonNone},
		"approve shop --gate qa --version 1.1.0":    {heldByQA(), why, web.ReasonOptional},
		"approve shop --version 1.1.0@" + fixture.DigestOf("1.1.0"): {asking(), why, web.ReasonOptional},
		"reject shop --version 1.1.0":                               {asking(), why, web.ReasonOptional},
		"reject shop --version 1.1.0 --withdraw":                    {append(asking(), rejected), "", web.ReasonNone},
		"override shop --version 1.1.0 --for 1h":                    {asking(), why, web.ReasonRequired},
	} {
		t.Run(line, func(t *testing.T) {
			words := strings.Fields(line)
			args := append(words, "-y")
			if c.reason != "" {
				args = append(args, "-m", c.reason)
			}
			shell, browser := newInMemory(t, c.objects...), newInMemory(t, c.objects...)
			typed := shell.run(t, args...)
			if typed.Code != 0 {
				t.Fatalf("the command line: %+v", typed)
			}
			page, terminal := browser.page(t)
			action := web.Action{Verb: words[0], Args: words[2:]}
			before := browser.everything(t)
			seen, err := page.Predict(t.Context(), shop, action)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, browser.everything(t)); diff != "" {
				t.Errorf("the prediction has changed something:\n%s", diff)
			}
			for _, effect := range seen.Effect {
				if effect = strings.ReplaceAll(effect, "…", c.reason); !strings.Contains(typed.Out, "► "+effect+"\n") {
					t.Errorf("the page shows %q, and the command line:\n%s", effect, typed.Out)
				}
			}
			if seen.Reason != c.use || !strings.Contains(seen.Command, "-n "+fixture.Namespace) {
				t.Errorf("it shows %+v", seen)
			}
			action.Reason = c.reason
			said, err := page.Send(t.Context(), shop, action, seen.Seen)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(shell.everything(t), browser.everything(t)); diff != "" {
				t.Errorf("(-command line +page)\n%s", diff)
			}
			if len(said) == 0 || !strings.Contains(generated.ReplaceAllString(typed.Out, ""), generated.ReplaceAllString(said[len(said)-1], "")) || terminal.Len() > 0 {
				t.Errorf("it says %q, and in the terminal %q", said, terminal)
			}
		})
	}
}

// Case 21: what has another effect than the one that was seen is not sent.
func TestPageSendsOnlyWhatWasSeen(t *testing.T) {
	m := newInMemory(t, heldByQA()...)
	page, _ := m.page(t)
	action := web.Action{Verb: "pin", Args: []string{"--version", "1.1.0"}}
	seen, err := page.Predict(t.Context(), shop, action)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"held so far: not passing: RolloutGate qa"}, seen.Notes); diff != "" {
		t.Error(diff)
	}
	rollout := &v1alpha1.Rollout{}
	change := func(how func()) {
		t.Helper()
		if err := m.client.Get(t.Context(), shop, rollout); err != nil {
			t.Fatal(err)
		}
		how()
		if err := m.client.Update(t.Context(), rollout); err != nil {
			t.Fatal(err)
		}
	}
	change(func() { rollout.Spec.Suspend = true })
	var another web.Another
	if _, err := page.Send(t.Context(), shop, action, seen.Seen); !errors.As(err, &another) || !strings.Contains(another.Now.Effect[0], "suspended") {
		t.Fatalf("%v", err)
	}
	if change(func() {}); rollout.Pinned() != "" {
		t.Error("it was sent")
	}
	change(func() { rollout.Labels = map[string]string{"other": "field"} })
	if _, err := page.Send(t.Context(), shop, action, another.Now.Seen); err != nil {
		t.Errorf("the same effect: %v", err)
	}
	if change(func() {}); rollout.Pinned() != "1.1.0" {
		t.Error("it was not sent")
	}
}

// What is bad about a release is said first, and wants a reason.
func TestPageWarnsOfAFailedRelease(t *testing.T) {
	m := newInMemory(t, changed(failing(), func(r *v1alpha1.Rollout) {
		r.Status.History = append([]v1alpha1.DeploymentHistoryEntry{fixture.MakeEntry("1.0.0").ID(3).Succeeded().Obj()}, r.Status.History...)
	})...)
	page, _ := m.page(t)
	action := web.Action{Verb: "pin", Args: []string{"--version", "1.1.0"}}
	seen, err := page.Predict(t.Context(), shop, action)
	if err != nil || seen.Reason != web.ReasonRequired || len(seen.Cautions) != 1 || !strings.Contains(seen.Cautions[0], "1.1.0 failed here (#2): smoke answers with 502") {
		t.Fatalf("%+v, %v", seen, err)
	}
	action.Reason = " "
	if _, err := page.Send(t.Context(), shop, action, seen.Seen); err == nil || err.Error() != "say why, in your own words" {
		t.Errorf("without a reason: %v", err)
	}
	action.Reason = why
	if _, err := page.Send(t.Context(), shop, action, seen.Seen); err != nil {
		t.Errorf("with a reason: %v", err)
	}
}

// The page asks for what its buttons ask for, and chooses neither the cluster nor the user.
func TestPageRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		action web.Action
		want   string
	}{
		"another verb":      {web.Action{Verb: "bugreport"}, `the page has no verb "bugreport"`},
		"another user":      {web.Action{Verb: "pin", Args: []string{"--version", "1.1.0", "--as", "admin"}}, "unknown flag: --as"},
		"a file":            {web.Action{Verb: "pin", Args: []string{"--version", "1.1.0", "-o", "yaml"}}, "the page does not have --output"},
		"a second Rollout":  {web.Action{Verb: "suspend", Args: []string{"other"}}, "the page does not have other"},
		"a selector":        {web.Action{Verb: "suspend", Args: []string{"-l", "a=b"}}, "the page does not have --selector"},
		"a reason twice":    {web.Action{Verb: "pin", Args: []string{"--version", "1.1.0", "-m", "x"}}, "the page does not have --message"},
		"an odd reason":     {web.Action{Verb: "pin", Args: []string{"--version", "1.1.0"}, Reason: "..."}, "say why"},
		"what is so":        {web.Action{Verb: "unpin"}, "no version is pinned: nothing was sent"},
		"what is no tag":    {web.Action{Verb: "pin", Args: []string{"--version", "a b"}}, "cannot be a tag"},
		"what is not there": {web.Action{Verb: "approve", Args: []string{"--gate", "nobody"}}, "Rollout shop has no gate nobody; it has qa"},
	} {
		m := newInMemory(t, heldByQA()...)
		page, _ := m.page(t)
		_, predicted := page.Predict(t.Context(), shop, c.action)
		_, sent := page.Send(t.Context(), shop, c.action, "")
		if predicted == nil || !strings.Contains(predicted.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, predicted, c.want)
		}
		if diff := cmp.Diff(newInMemory(t, heldByQA()...).everything(t), m.everything(t)); diff != "" {
			t.Errorf("%s was sent, %v:\n%s", name, sent, diff)
		}
	}
}

// Cases 23 and 24: what the user may not do is offered, with the right that is missing.
func TestPageNamesTheMissingRight(t *testing.T) {
	m := newInMemory(t, heldByQA()...)
	m.denied = "rollouts"
	page, _ := m.page(t)
	facts, _, err := page.Facts(t.Context(), shop.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	v, err := page.ViewIn(t.Context(), facts, shop, noon)
	if err != nil {
		t.Fatal(err)
	}
	offers, err := page.Offers(t.Context(), v, inspect.Explanation(v, inspect.Remedied))
	if err != nil || len(offers) != 2 {
		t.Fatalf("%+v, %v", offers, err)
	}
	got := map[string]string{}
	for _, of := range offers {
		for _, o := range of {
			got[o.Title] = o.Lacks
		}
	}
	const lacks = "you need patch on rollouts in " + fixture.Namespace
	want := map[string]string{"Suspend": lacks, "Pin 1.0.0": lacks, "Approve 1.1.0 in gate qa": "", "Promote 1.1.0 past gates and schedules": lacks, "Pin 1.1.0": lacks, "Promote 1.1.0 past everything": lacks}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

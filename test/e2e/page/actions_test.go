// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/browser"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

const (
	allowed = "--allow-actions"
	reason  = "it's INC-4711"
)

// acting opens the page of a Rollout that runs 1.0.0 and whose gate holds 1.1.0.
func acting(t *testing.T, user string, flags ...string) (*env.Application, *tab) {
	t.Helper()
	a := gated(t)
	o := open(t, a.CommandLine(a.Namespace+":"+user, masters), append([]string{allowed}, flags...)...)
	o.goes("/rollouts/" + a.Namespace + "/shop")
	o.shows("1.1.0 held by 1")
	return a, o
}

// press presses keys.
func (o *tab) press(keys string) {
	o.t.Helper()
	o.Do(o.t, chromedp.KeyEvent(keys))
}

// focused is the text of what has the focus, or its label.
func (o *tab) focused() string {
	o.t.Helper()
	return browser.Ask(o.t, o.Browser, chromedp.Evaluate[string](`((e) => e?.innerText || e?.closest("label")?.innerText || e?.ariaLabel || e?.tagName || "")(document.activeElement)`))
}

// tabsTo goes on by the key Tab until something with this text has the focus.
func (o *tab) tabsTo(text string) {
	o.t.Helper()
	var seen []string
	for range 60 {
		if at := o.focused(); strings.HasPrefix(at, text) {
			return
		} else {
			seen = append(seen, at)
		}
		o.press(kb.Tab)
	}
	o.t.Fatalf("by the key Tab there is no %q, but: %q", text, seen)
}

// clicks on the button with a text, in the dialog if there is one.
func (o *tab) clicks(text string) {
	o.t.Helper()
	name, err := json.Marshal(text)
	if err != nil {
		o.t.Fatal(err)
	}
	env.Eventually(o.t, "a button "+text, func() (bool, string) {
		script := fmt.Sprintf(`(() => { const b = [...(document.querySelector("dialog") ?? document).querySelectorAll("button")].find((b) => b.innerText.startsWith(%s)); b?.focus(); b?.click(); return !!b })()`, name)
		return browser.Ask(o.t, o.Browser, chromedp.Evaluate[bool](script)), o.text()
	})
}

// writesReason writes the reason into the dialog.
func (o *tab) writesReason(text string) {
	o.t.Helper()
	o.Do(o.t, chromedp.SendKeys(chromedp.CSS("dialog input"), text))
}

// Cases 20 and 38: from the list to a promotion by the keyboard alone. Nothing is sent before
// the effect was shown, nor shown as done before it is stored; then the user goes on where the
// dialog was opened.
func TestActionByTheKeyboardAlone(t *testing.T) {
	a := gated(t)
	user := a.Namespace + ":kim"
	as, between := a.CommandLine(user, masters).Through()
	o := open(t, as, allowed)
	o.goes("/?q=" + a.Namespace)
	o.shows("not passing: RolloutGate qa")
	o.tabsTo("shop")
	o.press(kb.Enter)
	o.shows("1.1.0 held by 1")
	o.tabsTo("Promote 1.1.0 past everything")
	o.press(kb.Enter)
	o.shows("1.0.0 → 1.1.0: requested with")
	if at := o.focused(); !strings.HasPrefix(at, "Why (required)") {
		t.Errorf("the focus is on %q", at)
	}
	o.picture("dialog")
	o.press(kb.Enter) // without a reason, the browser asks for one
	if n := len(patches(between)); n > 0 || a.Live().Annotations[v1alpha1.ForceDeployAnnotation] != "" {
		t.Errorf("%d were sent before there was a reason", n)
	}
	o.press(reason)
	o.press(kb.Enter)
	o.shows("The API server has stored this.")
	done := a.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	if by := done.Current().TriggeredBy; by == nil || by.Name != user || done.Current().Message == nil || *done.Current().Message != reason {
		t.Errorf("the history has %+v", done.Current())
	}
	o.tabsTo("Close")
	o.press(kb.Enter)
	o.shows("There is no newer release.")
	if at := browser.Ask(t, o.Browser, chromedp.Evaluate[string](`document.activeElement.tagName`)); at == "BODY" {
		t.Error("the focus was lost")
	}
	if sent := patches(between); len(sent) != 1 {
		t.Errorf("%d patches", len(sent))
	}
}

// patches are the changes of Rollouts that have passed.
func patches(between *wire.Wire) []wire.Entry {
	var all []wire.Entry
	for _, entry := range between.Writes() {
		if strings.Contains(entry.Resource, "kuberik.com/") {
			all = append(all, entry)
		}
	}
	return all
}

// Cases 20 and 26: with --as, the history names that user; and the command of the dialog does
// the same when it is pasted.
func TestCommandOfTheDialogDoesTheSame(t *testing.T) {
	a, o := acting(t, "lou", "--as=grace", "--as-group="+masters)
	o.clicks("Approve 1.1.0 in gate qa")
	o.shows("1.0.0 → 1.1.0")
	o.writesReason(reason)
	o.shows(`-m 'it'\''s INC-4711'`)
	command := browser.Ask(t, o.Browser, chromedp.Evaluate[string](`document.querySelector("dialog code").innerText`))
	if !strings.Contains(command, "--as=grace") {
		t.Errorf("the command is %q", command)
	}
	if answer := a.CommandLine(a.Namespace+":lou", masters).Shell(command + " --dry-run=server"); answer.Code != 0 || !strings.Contains(answer.Stdout, "1.0.0 → 1.1.0") {
		t.Errorf("%s: %+v", command, answer)
	}
	o.clicks("Approve 1.1.0 in gate qa")
	o.shows("The API server has stored this.")
	a.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "qa"}}
	a.Read(gate)
	if got := gate.Annotations[v1alpha1.ApprovalAnnotation]; got != "1.1.0 approved by grace: "+reason {
		t.Errorf("the gate has %q", got)
	}
}

// Case 21: another effect is shown before anything is sent, and the same one is sent although the
// object has changed.
func TestChangedEffectIsShownAgain(t *testing.T) {
	a, o := acting(t, "max")
	o.clicks("Pin 1.1.0")
	o.shows("1.0.0 → 1.1.0: pinned manually")
	rollout := a.Live()
	a.Change(rollout, func() { rollout.Spec.Suspend = true })
	o.clicks("Pin 1.1.0")
	o.shows("The effect is another now, and nothing was sent.")
	o.shows("once the Rollout is resumed: it is suspended")
	if pinned := a.Live().Pinned(); pinned != "" {
		t.Errorf("%s is pinned", pinned)
	}
	rollout = a.Live()
	a.Change(rollout, func() { rollout.Labels = map[string]string{"other": "field"} })
	o.clicks("Pin 1.1.0")
	o.shows("The API server has stored this.")
	if pinned := a.Live().Pinned(); pinned != "1.1.0" {
		t.Errorf("%q is pinned", pinned)
	}
}

// Case 22: a double click, and a click after an answer that was lost, are one change.
func TestDoubleClickIsOneChange(t *testing.T) {
	a := gated(t)
	as, between := a.CommandLine(a.Namespace+":pam", masters).Through()
	o := open(t, as, allowed)
	o.goes("/rollouts/" + a.Namespace + "/shop")
	o.clicks("Suspend")
	o.shows("nothing happens until it is resumed")
	between.Inject(func(r wire.Request) wire.Fault {
		if r.Verb == "patch" {
			between.Inject(nil)
			return wire.Lose() // it is stored, and the answer is lost
		}
		return wire.Fault{}
	})
	o.Do(t, chromedp.Evaluate[chromedp.Void](`(() => { const b = document.querySelector("dialog button[type=submit]"); for (const _ of [1, 2, 3]) b.click() })()`))
	o.shows("There was no answer, so nobody knows whether it was sent.")
	if !a.Live().Spec.Suspend {
		t.Error("it was not sent")
	}
	o.clicks("Suspend")
	o.shows("already suspended")
	if sent := patches(between); len(sent) != 1 {
		t.Errorf("%d patches", len(sent))
	}
}

// Case 23: who may only read sees which right is missing, and is refused by the API server.
func TestViewerSeesWhichRightIsMissing(t *testing.T) {
	a := gated(t)
	as := userWith(t, a, "viewer")
	o := open(t, as, allowed)
	o.goes("/rollouts/" + a.Namespace + "/shop")
	o.shows("you need patch on rollouts in " + a.Namespace)
	o.shows("you need patch on rolloutgates in " + a.Namespace)
	if n := browser.Ask(t, o.Browser, chromedp.Evaluate[int64](`document.querySelectorAll(".act:not([aria-disabled])").length`)); n > 0 {
		t.Errorf("%d buttons can be pressed", n)
	}
	o.clicks("Pin 1.1.0")
	if browser.Ask(t, o.Browser, chromedp.Evaluate[bool](`!!document.querySelector("dialog")`)) {
		t.Error("a button without the right opens a dialog")
	}
	got := o.posts(a, map[string]any{"verb": "pin", "args": []string{"--version", "1.1.0"}, "reason": "by hand"})
	if !strings.HasPrefix(got, "403 ") || !strings.Contains(got, "forbidden") || a.Live().Pinned() != "" {
		t.Errorf("by hand: %s", got)
	}
}

// posts sends a request by hand, with what was predicted.
func (o *tab) posts(a *env.Application, action map[string]any) string {
	o.t.Helper()
	body, err := json.Marshal(action)
	if err != nil {
		o.t.Fatal(err)
	}
	return browser.Ask(o.t, o.Browser, chromedp.Evaluate[string](fmt.Sprintf(`(async (action) => {
		const post = (path, body) => fetch("/api/v1/rollouts/%s/shop/" + path, { method: "POST", body: JSON.stringify(body), headers: {
			"Content-Type": "application/json", "Rollouts-Session": localStorage.getItem("rollouts-session"), "Idempotency-Key": "by-hand" } });
		const seen = (await (await post("predict", action)).json()).seen;
		const answer = await post("requests", { ...action, seen });
		return answer.status + " " + await answer.text();
	})(%s)`, a.Namespace, body), chromedp.EvalAwaitPromise))
}

// userWith returns a user who may read what is in the namespace of an application, with further rights.
func userWith(t *testing.T, a *env.Application, user string, further ...rbacv1.PolicyRule) *env.CommandLine {
	t.Helper()
	name := metav1.ObjectMeta{Namespace: a.Namespace, Name: user}
	reads := func(groups ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: groups, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}
	}
	ofCluster := reads("kuberik.com")
	ofCluster.Resources = []string{"clusterrolloutgates", "clusterrolloutschedules", "clusterreleasequarantines"}
	everywhere := metav1.ObjectMeta{Name: a.Namespace + "-" + user}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: a.Namespace + ":" + user}}
	a.Create(&rbacv1.Role{ObjectMeta: name, Rules: append(further, reads("*"))}, &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name}, Subjects: subjects,
	}, &rbacv1.ClusterRole{ObjectMeta: everywhere, Rules: []rbacv1.PolicyRule{ofCluster, reads("admissionregistration.k8s.io")}}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: everywhere, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: everywhere.Name}, Subjects: subjects,
	})
	as := a.CommandLine(a.Namespace + ":" + user)
	env.Eventually(t, "an API server that knows the role", func() (bool, string) {
		answer := as.Run("get", "-o", "name")
		return answer.Code == 0, answer.Stderr
	})
	return as
}

// Case 25: a pin that Git would undo is refused, and the place of its manifest named; one of a
// Rollout from Git that does not set the field stays.
func TestPinOfARolloutFromGit(t *testing.T) {
	a, o := acting(t, "ned")
	fromGit := func(pinned *string) {
		t.Helper()
		applied := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "shop", Labels: map[string]string{
			"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
		}}}
		applied.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
		applied.Spec = *a.Live().Spec.DeepCopy()
		applied.Spec.WantedVersion = pinned
		if err := plane.Client().Patch(t.Context(), applied, client.Apply, client.FieldOwner("kustomize-controller"), client.ForceOwnership); err != nil { //nolint:staticcheck // typed objects have no apply configuration here
			t.Fatal(err)
		}
	}
	fromGit(nil)
	o.clicks("Pin 1.1.0")
	o.shows("1.0.0 → 1.1.0: pinned manually")
	o.clicks("Pin 1.1.0")
	o.shows("The API server has stored this.")
	o.clicks("Close")
	for range 3 {
		fromGit(nil)
	}
	a.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	if pinned := a.Live().Pinned(); pinned != "1.1.0" {
		t.Errorf("%q is pinned", pinned)
	}
	fromGit(new("1.1.0"))
	o.clicks("End the pin")
	o.shows("comes from a manifest, by field manager kustomize-controller")
	o.shows("Kustomization flux-system/apps")
	if browser.Ask(t, o.Browser, chromedp.Evaluate[bool](`!!document.querySelector("dialog button[type=submit]")`)) {
		t.Error("it can be sent")
	}
}

// A request that waits is shown with who has asked for it, and can be taken back.
func TestRequestThatWaitsIsWithdrawn(t *testing.T) {
	a, o := acting(t, "oda")
	a.Ask(v1alpha1.DeployUserAnnotation, "mallory")
	a.Ask(v1alpha1.BypassGatesAnnotation, "9.9.9")
	o.shows("asked by mallory (claimed)")
	o.shows("let 9.9.9 past gates and schedules: refused: ")
	o.clicks("Withdraw: Promote past gates and schedules")
	o.shows("1.0.0 stays")
	o.clicks("Withdraw: Promote past gates and schedules")
	o.shows("The API server has stored this.")
	o.clicks("Close")
	if left := a.Live().Annotations[v1alpha1.BypassGatesAnnotation]; left != "" {
		t.Errorf("the request of %s stays", left)
	}
	env.Eventually(t, "a page without the request", func() (bool, string) {
		seen := o.text()
		return !strings.Contains(seen, "asked by mallory"), seen
	})
}

// Cases 14 and 38: no dialog has what a rule of WCAG 2.2 AA finds, or scrolls sideways.
func TestDialogsCanBeReadByEverybody(t *testing.T) {
	_, o := acting(t, "pia")
	for _, title := range []string{"Promote 1.1.0 past everything", "Suspend", "Approve 1.1.0 in gate qa"} {
		o.clicks(title)
		env.Eventually(t, "a dialog that shows the effect", func() (bool, string) {
			return browser.Ask(t, o.Browser, chromedp.Evaluate[bool](`!!document.querySelector("dialog .effect")`)), o.text()
		})
		o.canBeRead("dialog-" + strings.ReplaceAll(title, " ", "-"))
		o.press(kb.Escape)
		if at := o.focused(); !strings.HasPrefix(at, title) {
			t.Errorf("after Esc the focus is on %q", at)
		}
	}
}

// Case 24: an approver can approve, and nothing else. The approval is of that release: the next
// one waits again.
func TestApproverApprovesOneRelease(t *testing.T) {
	a := env.NewApplication(t, plane)
	vouched(t)
	a.Release("1.0.0")
	a.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	gate := fixture.MakeGate("qa", a.Name).Asking(fixture.AskFor(1)).Obj()
	gate.Namespace = a.Namespace
	a.Create(gate)
	a.Release("1.1.0")
	a.AwaitCandidate("1.1.0")
	as := userWith(t, a, "anna", rbacv1.PolicyRule{APIGroups: []string{"kuberik.com"}, Resources: []string{"rolloutapprovals"}, Verbs: []string{"create", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{"kuberik.com"}, Resources: []string{"rollouts"}, Verbs: []string{"approve"}})
	env.Eventually(t, "an API server that has vouched for names for long enough", func() (bool, string) {
		answer := as.Run("approve", a.Name, "--dry-run")
		return strings.Contains(answer.Stdout, "1.0.0 → 1.1.0"), answer.Stdout + answer.Stderr
	})
	o := open(t, as, allowed)
	o.goes("/rollouts/" + a.Namespace + "/shop")
	o.shows("0 of 1 approvals")
	enabled := browser.Ask(t, o.Browser, chromedp.Evaluate[string](`[...document.querySelectorAll(".act:not([aria-disabled])")].map((b) => b.innerText).join(",")`))
	if enabled != "Approve 1.1.0…,Reject 1.1.0…" {
		t.Errorf("the approver can press %s", enabled)
	}
	o.clicks("Approve 1.1.0")
	o.shows("1.0.0 → 1.1.0")
	o.picture("approval")
	o.writesReason(reason)
	o.clicks("Approve 1.1.0")
	o.shows("The API server has stored this.")
	o.clicks("Close")
	a.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	a.Release("1.2.0")
	a.AwaitCandidate("1.2.0")
	o.shows("1.2.0 held by 1")
	o.shows("0 of 1 approvals")
	if seen := o.text(); strings.Contains(seen, "Withdraw: Approve") {
		t.Errorf("an approval that was used can be withdrawn:\n%s", seen)
	}

	o.clicks("Reject 1.2.0")
	o.shows("reject 1.2.0")
	o.writesReason("leaks memory")
	o.clicks("Reject 1.2.0")
	o.shows("The API server has stored this.")
	o.clicks("Close")
	o.shows("ApprovalRejected")
	o.clicks("Withdraw: Reject 1.2.0")
	o.shows("withdraw shop-")
	o.clicks("Withdraw: Reject 1.2.0")
	o.shows("The API server has stored this.")
	o.clicks("Close")
	o.shows("0 of 1 approvals")
}

// vouched lets the API server vouch for who approves, as config/components/approvals does.
func vouched(t *testing.T) {
	t.Helper()
	for _, name := range []string{"approvals", "withdrawals"} {
		content, err := os.ReadFile("../../../config/components/approvals/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		objects, err := manifests.Decode(content)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			create(t, object)
		}
	}
}

func create(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := plane.Client().Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

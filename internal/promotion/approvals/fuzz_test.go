// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// FuzzJudge writes any values into decisions and into gates that ask for them, in any order.
// A promotion goes only if enough people let it go, or an override does, and what is said of it
// is short, on one line, and the same for each order.
func FuzzJudge(f *testing.F) {
	for seed := range byte(16) {
		some := make([]byte, 160)
		for i := range some {
			some[i] = byte(i*i)*seed + byte(i)*7 + seed
		}
		for _, text := range []string{"bob", "", "system:serviceaccount:itsm:bot", "\x00\xff", "line\nbreak", strings.Repeat("ü", 1024), "\u202edesrever"} {
			f.Add(some, text, "1.4.0", fixture.DigestOf("1.4.0"), "leaks")
			f.Add(some, text, text, text, text)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, user, version, digest, reason string) {
		d := dice{data, user, version, digest, reason}
		c, gates, a := d.promotion(), d.gates(), d.approvals()
		before := fmt.Sprintf("%#v", a.Given)
		answer := a.Judge(c, gates)
		if after := fmt.Sprintf("%#v", a.Given); before != after {
			t.Error("Judge modifies the decisions")
		}
		checkAnswer(t, c, gates, a.Given, answer)
		slices.Reverse(a.Given)
		if again := a.Judge(c, gates); !reflect.DeepEqual(answer, again) {
			t.Errorf("the order of the decisions changes %q to %q", answer.describe(), again.describe())
		}
	})
}

// longestHold is more than a gate and twenty names need.
const longestHold = 2048

func checkAnswer(t *testing.T, c Case, gates []Gate, given []v1alpha1.RolloutApproval, answer Answer) {
	t.Helper()
	if len(answer.Asked)+len(answer.Holds) > 2*len(gates) {
		t.Errorf("%d gates say too much: %q", len(gates), answer.describe())
	}
	for _, hold := range answer.Holds {
		if hold.Reason == "" || len(hold.Message) > longestHold || strings.ContainsFunc(hold.Message, unicode.IsControl) {
			t.Errorf("a hold that cannot be shown: %s: %q", hold.Reason, hold.Message)
		}
	}
	for _, by := range answer.By {
		checkUsed(t, c, &by)
	}
	if len(answer.Holds) > 0 {
		return
	}
	for _, gate := range gates {
		if gate.asksAbout(c) && !answer.Overridden && len(approvers(c, gate, given)) < wanted(c, gate) {
			t.Errorf("%s lets it go by %d of %d people: %q", gate.Name, len(approvers(c, gate, given)), wanted(c, gate), answer.describe())
		}
	}
}

// checkUsed checks a decision that lets the promotion go.
func checkUsed(t *testing.T, c Case, by *v1alpha1.RolloutApproval) {
	t.Helper()
	switch spec := by.Spec; {
	case spec.Decision != v1alpha1.DecisionApprove && spec.Decision != v1alpha1.DecisionOverride:
		t.Errorf("a decision that is no approval lets it go: %#v", spec)
	case spec.Version != c.Release.Tag, spec.Digest != "" && (c.Release.Digest == nil || spec.Digest != *c.Release.Digest):
		t.Errorf("a decision on another release lets %s go: %#v", c.Release.Tag, spec)
	case spec.RolloutRef.UID != "" && spec.RolloutRef.UID != c.Rollout.UID, by.CreationTimestamp.Before(&c.Rollout.CreationTimestamp):
		t.Errorf("a decision on another Rollout lets it go: %#v", spec)
	case c.Forgotten:
		t.Error("a decision counts that may have been used")
	}
	for _, entry := range c.Rollout.Status.History {
		if entry.Approval != nil && slices.ContainsFunc(entry.Approval.By, func(r v1alpha1.RecordedApproval) bool { return r.UID == by.UID }) {
			t.Errorf("%s is used twice", by.Name)
		}
	}
}

// wanted is how many people a gate needs: at least one.
func wanted(c Case, gate Gate) int {
	n := 1
	if count := gate.Asks.Count; count != nil {
		n = max(1, int(*count))
	}
	if c.Requested && c.Requester == "" && gate.Asks.SelfApproval != v1alpha1.SelfApprovalAllow {
		n++
	}
	return n
}

// approvers returns the different people who have said yes for a gate, whatever else they said.
func approvers(c Case, gate Gate, given []v1alpha1.RolloutApproval) map[string]bool {
	people := map[string]bool{}
	for _, a := range given {
		account, isAccount := strings.CutPrefix(a.Spec.By.Username, "system:serviceaccount:")
		valid := 168 * time.Hour
		if gate.Asks.ValidFor != nil {
			valid = gate.Asks.ValidFor.Duration
		}
		switch {
		case a.Spec.Decision != v1alpha1.DecisionApprove:
		case c.Release.Digest == nil || a.Spec.Version != c.Release.Tag || a.Spec.Digest != *c.Release.Digest && a.Spec.Digest != "":
		case gate.Asks.Role != "" && a.Spec.Role != gate.Asks.Role:
		case isAccount && !slices.Contains(gate.Asks.ServiceAccounts, strings.Replace(account, ":", "/", 1)):
		case c.Requested && gate.Asks.SelfApproval != v1alpha1.SelfApprovalAllow && a.Spec.By.Username == c.Requester:
		case c.Now.Sub(a.CreationTimestamp.Time) >= valid:
		default:
			people[a.Spec.By.Username] = true
		}
	}
	return people
}

// dice makes objects of fuzzed bytes, with zeros at their end, and texts.
type dice struct {
	data                          []byte
	user, version, digest, reason string
}

func (d *dice) roll(sides int) int {
	if len(d.data) == 0 {
		return 0
	}
	n := int(d.data[0]) % sides
	d.data = d.data[1:]
	return n
}

func (d *dice) yes() bool { return d.roll(2) == 1 }

func (d *dice) any(texts ...string) string { return texts[d.roll(len(texts))] }

func (d *dice) moment() time.Time {
	return fixture.Noon.Add(-time.Duration(d.roll(16)) * 12 * time.Hour)
}

func (d *dice) promotion() Case {
	c := promotionOf()
	if releases.IsTag(d.version) && d.yes() { // nothing else is promoted
		c.Release.Tag = d.version
	}
	if digest := d.any(fixture.DigestOf("1.4.0"), d.digest, ""); digest != "" {
		c.Release.Digest = &digest
	} else {
		c.Release.Digest = nil
	}
	c.Rollout.CreationTimestamp = metav1.NewTime(d.moment().Add(-time.Duration(d.roll(2)) * 100 * 24 * time.Hour))
	c.Older, c.Manual, c.Requested, c.Requester = d.yes(), d.yes(), d.yes(), d.any("", "alice", d.user)
	c.Forgotten = d.roll(8) == 7
	for range d.roll(3) {
		entry := v1alpha1.DeploymentHistoryEntry{Version: v1alpha1.VersionInfo{Tag: d.any("1.4.0", "1.3.0", d.version)}, Timestamp: metav1.NewTime(d.moment())}
		entry.Grounds = v1alpha1.Grounds(d.any("", string(v1alpha1.GroundsAdopted), string(v1alpha1.GroundsPinned), d.reason))
		if d.yes() {
			entry.Approval = &v1alpha1.ApprovalRecord{By: []v1alpha1.RecordedApproval{{UID: d.uid()}}}
		}
		c.Rollout.Status.History = append(c.Rollout.Status.History, entry)
	}
	return c
}

func (d *dice) uid() types.UID { return types.UID(fmt.Sprint("uid-", d.roll(8))) }

// gates may have values that the API server refuses today.
func (d *dice) gates() []Gate {
	gates := make([]Gate, d.roll(4))
	for i := range gates {
		gates[i].Name = fmt.Sprint("ClusterRolloutGate ", i)
		asks := &gates[i].Asks
		for _, set := range []func(){
			func() { asks.Count = new(int32(d.roll(13) - 1)) },
			func() { asks.Role = d.any("security", d.user) },
			func() { asks.SelfApproval = v1alpha1.SelfApproval(d.any("Allow", "Forbid", d.reason)) },
			func() { asks.ServiceAccounts = []string{d.any("itsm/bot", d.user)} },
			func() { asks.Rejections = v1alpha1.Rejections(d.any("Ignore", "Veto", d.reason)) },
			func() { asks.ValidFor = &metav1.Duration{Duration: time.Duration(d.roll(200)-1) * time.Hour} },
			func() {
				asks.AppliesTo = []v1alpha1.ApprovedPromotion{v1alpha1.ApprovedPromotion(d.any("Automatic", "Manual", d.reason))}
			},
		} {
			if d.yes() {
				set()
			}
		}
	}
	return gates
}

func (d *dice) approvals() Approvals {
	a := Approvals{Given: make([]v1alpha1.RolloutApproval, d.roll(24))}
	for i := range a.Given {
		given := fixture.MakeApproval(d.any("alice", "bob", "system:serviceaccount:itsm:bot", d.user, d.user+" "), "shop", d.any("1.4.0", d.version)).Named(fmt.Sprint(i)).
			At(d.moment()).Digest(d.any(fixture.DigestOf("1.4.0"), d.digest, "")).As(d.any("", "security", d.user)).Because(d.any("", d.reason)).OfRollout(types.UID(d.any("", "this", "gone")))
		a.Given[i] = *given.Obj()
		a.Given[i].UID = types.UID(fmt.Sprint("uid-", i))
		spec := &a.Given[i].Spec
		spec.Decision = v1alpha1.Decision(d.any("Approve", "Approve", "Reject", "Override", d.reason))
		if d.yes() {
			spec.For = &metav1.Duration{Duration: time.Duration(d.roll(200)-1) * time.Hour}
		}
		if d.yes() {
			spec.AlsoLifts = []v1alpha1.OverriddenHold{v1alpha1.OverrideGates, v1alpha1.OverriddenHold(d.reason)}
		}
	}
	return a
}

// SPDX-License-Identifier: Apache-2.0

// Package identity says whether the API server vouches for the names of people in approvals:
// whether admission policies and their bindings are those of this version, and since when.
package identity

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/config"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// The names of the policies. Each binding has the name of its policy.
const (
	Approvals   = "rollout-controller-approvals"
	Withdrawals = "rollout-controller-withdrawals"
	DeployUser  = "rollout-controller-deploy-user"
)

// Names are all of them.
var Names = []string{Approvals, Withdrawals, DeployUser}

// takesEffect is how long after a change every API server acts by it.
const takesEffect = 30 * time.Second

// Trusted is the identity if something else checks the names.
func Trusted(context.Context) approvals.Identity { return approvals.Identity{Choosers: true} }

// Unverified returns the identity of which nothing can be said.
func Unverified(because string) func(context.Context) approvals.Identity {
	return func(context.Context) approvals.Identity { return approvals.Identity{Problem: problem(because)} }
}

func problem(because string) *verdict.Problem {
	return &verdict.Problem{Reason: v1alpha1.IdentityNotVerifiedReason, Message: "no approval counts: " + because}
}

// Getter gets objects.
type Getter interface {
	Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error
}

// Policies compares the policies of a cluster with those of this version. It remembers which
// generations it has seen: what is added by an edit and removed by the next leaves no time.
type Policies struct {
	Reader Getter
	Now    func() time.Time

	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is a state of an object, and when a change of that object was seen.
type sighting struct {
	uid        types.UID
	generation int64
	changed    time.Time
}

// checked is what is known of a policy and its binding.
type checked struct {
	problem string
	since   time.Time
}

// Identity says whether the names of people count, and since when.
func (p *Policies) Identity(ctx context.Context) approvals.Identity {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := map[string]checked{}
	for _, name := range Names { // also behind a problem: what is not looked at is not remembered
		of[name] = p.pair(ctx, name)
	}
	people := of[Approvals].and(of[Withdrawals])
	if people.problem != "" {
		return approvals.Identity{Problem: problem(people.problem)}
	}
	return approvals.Identity{Since: people.since, Choosers: of[DeployUser].problem == "", ChoosersSince: of[DeployUser].since}
}

// pair checks a policy and its binding.
func (p *Policies) pair(ctx context.Context, name string) checked {
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	one := p.check(ctx, name, policy, func() string { return differences(wanted[name].policy.Spec, policy.Spec) })
	return one.and(p.check(ctx, name, binding, func() string { return differences(wanted[name].binding.Spec, binding.Spec) }))
}

// check reads an object and compares it.
func (p *Policies) check(ctx context.Context, name string, o client.Object, compare func() string) checked {
	err := p.Reader.Get(ctx, client.ObjectKey{Name: name}, o)
	named := reflect.TypeOf(o).Elem().Name() + " " + name
	if err != nil && !apierrors.IsNotFound(err) {
		return checked{problem: named + " could not be read" + unreadable.Why(err)}
	}
	changed := p.remember(named, o)
	if err != nil || !o.GetDeletionTimestamp().IsZero() {
		return checked{problem: named + " is missing: install the component approvals, or the chart with approvals.enabled"}
	}
	if differ := compare(); differ != "" {
		return checked{problem: named + " is not that of this version, its " + differ + " differs: install the component approvals of this version"}
	}
	last := lastChange(o)
	if last.IsZero() {
		return checked{problem: named + " does not say when it was changed: delete it, and create it again"}
	}
	return checked{since: later(last, changed).Add(takesEffect)}
}

// remember returns when the spec of an object was seen to change; zero if it never was. Of one that
// was created since the last look, the API server says when that was.
func (p *Policies) remember(named string, o client.Object) time.Time {
	now := sighting{uid: o.GetUID(), generation: o.GetGeneration()}
	if before, known := p.seen[named]; known && before.uid == now.uid {
		now.changed = before.changed
		if before.generation != now.generation {
			now.changed = p.Now()
		}
	}
	if p.seen == nil {
		p.seen = map[string]sighting{}
	}
	p.seen[named] = now
	return now.changed
}

// lastChange returns when an object was created or changed, by the clock of the API server;
// zero if that is not known. The times of subresources count as well: the status of a policy is
// written for each of its generations.
func lastChange(o client.Object) time.Time {
	var last time.Time
	for _, by := range o.GetManagedFields() {
		if by.Time != nil {
			last = later(last, by.Time.Time)
		}
	}
	if last.IsZero() && o.GetGeneration() > 1 {
		return time.Time{}
	}
	return later(last, o.GetCreationTimestamp().Time)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// and returns what holds for both.
func (c checked) and(other checked) checked {
	if c.problem == "" {
		c.problem = other.problem
	}
	c.since = later(c.since, other.since)
	return c
}

// differences names the first field in which two specs differ; empty if they are the same.
func differences[T any](want, got T) string {
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	for i := range w.NumField() {
		if !equality.Semantic.DeepEqual(w.Field(i).Interface(), g.Field(i).Interface()) {
			key, _, _ := strings.Cut(w.Type().Field(i).Tag.Get("json"), ",")
			return "spec." + key
		}
	}
	return ""
}

// shipped is a policy and its binding as they are in the program.
type shipped struct {
	policy  admissionv1.ValidatingAdmissionPolicy
	binding admissionv1.ValidatingAdmissionPolicyBinding
}

var wanted = parse(config.Policies())

func parse(manifests [][]byte) map[string]shipped {
	all := map[string]shipped{}
	for _, manifest := range manifests {
		var s shipped
		policy, binding, _ := strings.Cut(string(manifest), "\n---\n")
		for text, into := range map[string]any{policy: &s.policy, binding: &s.binding} {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				panic(err)
			}
		}
		all[s.policy.Name] = s
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
)

// GatesOf returns how a message ends that names a gate which the Rollout does not have.
func GatesOf(v *View) string {
	if len(v.Gates.Gates) == 0 {
		return ", and no other one"
	}
	names := make([]string, 0, len(v.Gates.Gates))
	for _, gate := range v.Gates.Gates {
		names = append(names, gate.Name)
	}
	return "; it has " + strings.Join(names, ", ")
}

// Change returns the object that a request changes, and how it is after the change.
func (v View) Change(r request.Request) (from, to client.Object, err error) {
	switch {
	case r.Quarantine != "":
		return v.lifted(r)
	case r.Gate == "":
		changed := v.Rollout.DeepCopy()
		r.ChangeRollout(changed)
		return v.Rollout, changed, nil
	}
	for i := range v.Gates.Gates {
		if gate := &v.Gates.Gates[i]; gate.Name == r.Gate {
			changed := gate.DeepCopy()
			r.ChangeGate(changed)
			return gate, changed, nil
		}
	}
	return nil, nil, NoSuchGate(v, r.Gate)
}

// lifted returns the quarantine that a request lifts, and how it is after that.
func (v View) lifted(r request.Request) (from, to client.Object, err error) {
	for i := range v.NamespaceQuarantines {
		if q := &v.NamespaceQuarantines[i]; q.Name == r.Quarantine {
			changed := q.DeepCopy()
			r.ChangeQuarantine(q.Name, &changed.Spec)
			return q, changed, nil
		}
	}
	return nil, nil, fmt.Errorf("there is no ReleaseQuarantine %s", r.Quarantine)
}

// Possible reports whether a request would last: Flux does not undo it. Where not everything
// could be read, no request counts as possible: its effect is not known.
func (v View) Possible(r request.Request) bool {
	if r.Decision != nil {
		return !v.Unread.Any() && v.Person.may(r.Decision, v.Approvals.Given)
	}
	from, to, err := v.Change(r)
	if err != nil || v.Unread.Any() {
		return false
	}
	_, manager, err := appliedField(from, to)
	return err == nil && manager == ""
}

// NoSuchGate says which gates a Rollout has.
func NoSuchGate(v View, name string) error {
	if _, unread := v.Unread["RolloutGates"]; unread {
		return errors.New("you may not read RolloutGates, so it is not known which the Rollout has")
	}
	return fmt.Errorf("Rollout %s has no gate %s%s", v.Rollout.Name, name, GatesOf(&v))
}

// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

// Unread are the kinds that a decision depends on and that the user may not read, each
// with whether its objects can only hold releases back.
type Unread map[string]bool

// Any reports whether there is one.
func (u Unread) Any() bool { return len(u) > 0 }

// OnlyHold reports whether all of them can only hold releases back. Then what does not go
// out as far as the user sees, does not go out.
func (u Unread) OnlyHold() bool {
	for _, holds := range u {
		if !holds {
			return false
		}
	}
	return true
}

func (u Unread) String() string { return show.Words(slices.Sorted(maps.Keys(u)), "and") }

// witness reads for one decision, and notes what the user may not read. That is no hold:
// a kind that can only hold releases back is read as if there was no object.
type witness struct {
	*snapshot.Snapshot
	unread Unread
}

// Get implements client.Reader.
func (w witness) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := w.Snapshot.Get(ctx, key, object, options...)
	if apierrors.IsForbidden(err) {
		w.note(object)
	}
	return err
}

// List implements client.Reader.
func (w witness) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := w.Snapshot.List(ctx, list, options...)
	if apierrors.IsForbidden(err) && w.note(list).OnlyHolds {
		return meta.SetList(list, nil)
	}
	return err
}

// note notes the kind of an object, or of the items of a list.
func (w witness) note(object any) kinds.Kind {
	kind, known := kinds.OfObject(object)
	if !known { // only the metadata of namespaces is read, and no policy lets a release go
		kind, _ = kinds.Named("namespace")
		if isPolicy(object) {
			kind.Kind, kind.OnlyHolds = "ValidatingAdmissionPolicy", true
		}
	}
	w.unread[kinds.Plural(kind.Kind)] = kind.OnlyHolds
	return kind
}

// Partly says that the verdicts are those of the controller; empty if they were reached here.
func (v View) Partly() string {
	if !v.Unread.Any() {
		return ""
	}
	written := ""
	if at := statusWritten(v.Rollout); !at.IsZero() {
		written = fmt.Sprintf(" (written %s ago)", show.Ago(at, v.Now))
	}
	return fmt.Sprintf("you may not read %s, so this is what the controller has decided, as in the status of the Rollout%s; no command was tried", v.Unread, written)
}

// statusWritten returns when the status was written last; zero if that is not known.
func statusWritten(rollout *v1alpha1.Rollout) time.Time {
	var last time.Time
	for _, entry := range rollout.ManagedFields {
		if entry.Subresource == "status" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// SayPartly says so once, apart from the answer.
func (p *Program) SayPartly(v View) {
	if said := v.Partly(); said != "" {
		p.Err.Sentence(show.Warns, "%s", said)
	}
}

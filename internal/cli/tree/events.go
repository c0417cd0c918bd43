// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// mostNamespaces is in how many namespaces events are looked for.
	mostNamespaces = 20
	// mostEvents is how many events of a namespace are read.
	mostEvents = 5000
)

// EventsKind is the kind of an [EventList].
const EventsKind = "Events"

// EventList is what happened to the objects of a tree.
type EventList struct {
	metav1.TypeMeta `json:",inline"`
	// Items are the events, the newest last.
	Items []Event `json:"items"`
	// Incomplete says which events could not be read, and why.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Event is what a controller has reported about an object.
type Event struct {
	// Time is when it happened last.
	Time metav1.Time `json:"time"`
	// Object is what it happened to.
	Object Object `json:"object"`
	// Type is Normal or Warning.
	Type string `json:"type"`
	// Reason is one word.
	Reason string `json:"reason"`
	// Message for users.
	Message string `json:"message"`
	// Count is how often it happened; at least 1.
	Count int32 `json:"count"`
}

// Events returns the events about the objects of a tree that is not folded. It needs one
// list for each namespace in which the tree has objects. The API server shows the events
// of both APIs in this list. What could not be read is in the result.
func Events(ctx context.Context, reader client.Reader, t Tree) EventList {
	all := EventList{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: EventsKind}, Items: []Event{}}
	objects := objectsIn(t.Root)
	namespaces := namespacesIn(objects)
	if more := len(namespaces) - mostNamespaces; more > 0 {
		all.Incomplete = append(all.Incomplete, fmt.Sprintf("events of %d namespaces were not read: at most %d are", more, mostNamespaces))
		namespaces = namespaces[:mostNamespaces]
	}
	read := newReading(reader, Limits{}.orDefault())
	lists, failures := make([][]Event, len(namespaces)), make([]string, len(namespaces))
	for i, namespace := range namespaces {
		read.start(func() { lists[i], failures[i] = read.events(ctx, namespace, objects) })
	}
	read.wait()
	for i := range namespaces {
		all.Items = append(all.Items, lists[i]...)
		if failures[i] != "" {
			all.Incomplete = append(all.Incomplete, failures[i])
		}
	}
	slices.SortStableFunc(all.Items, newestLast)
	return all
}

// place identifies an object without its version and UID.
type place struct{ group, kind, namespace, name string }

func placeOf(o Object) place { return place{o.Group, o.Kind, o.Namespace, o.Name} }

// objectsIn returns the objects of this cluster in a tree.
func objectsIn(root *Node) map[place]Object {
	all := map[place]Object{}
	root.Each(func(n *Node) {
		if n.Object != nil && !n.Object.Elsewhere {
			all[placeOf(*n.Object)] = *n.Object
		}
	})
	return all
}

// namespacesIn returns the namespaces in which the events are, sorted. Those of
// cluster-wide objects are in the namespace default.
func namespacesIn(objects map[place]Object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, cmp.Or(o.Namespace, metav1.NamespaceDefault))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// events returns the events of a namespace about the objects, and what is missing.
func (r *reading) events(ctx context.Context, namespace string, about map[place]Object) ([]Event, string) {
	var all []Event
	read := 0
	for next := ""; ; {
		page := &corev1.EventList{}
		if err := r.from.List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return all, fmt.Sprintf("events of namespace %s: %s", namespace, because(err))
		}
		for i := range page.Items {
			if object, ok := about[regarding(&page.Items[i])]; ok {
				all = append(all, eventOf(&page.Items[i], object))
			}
		}
		if read += len(page.Items); page.Continue == "" {
			return all, ""
		}
		if next = page.Continue; read >= mostEvents {
			return all, fmt.Sprintf("events of namespace %s: only the first %d were read", namespace, read)
		}
	}
}

// regarding returns which object an event is about.
func regarding(e *corev1.Event) place {
	o := e.InvolvedObject
	return place{o.GroupVersionKind().Group, o.Kind, o.Namespace, o.Name}
}

func eventOf(e *corev1.Event, about Object) Event {
	count := max(e.Count, 1)
	if e.Series != nil {
		count = max(e.Series.Count, count)
	}
	return Event{
		Time: metav1.NewTime(happened(e).UTC()), Object: about,
		Type: e.Type, Reason: e.Reason, Message: e.Message, Count: count,
	}
}

// happened returns when an event happened last. The two APIs use different fields.
func happened(e *corev1.Event) time.Time {
	if e.Series != nil && !e.Series.LastObservedTime.IsZero() {
		return e.Series.LastObservedTime.Time
	}
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}

func newestLast(a, b Event) int {
	return cmp.Or(a.Time.Compare(b.Time.Time), strings.Compare(a.Object.String(), b.Object.String()), strings.Compare(a.Reason, b.Reason))
}

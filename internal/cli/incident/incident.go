// SPDX-License-Identifier: Apache-2.0

// Package incident puts together what went wrong with releases in the last day: what failed,
// what was left again, and what is in quarantine. All of that is from the status of Rollouts
// and quarantines. It is sorted by content, because the same release fails in many places.
//
// It is pure: it reads nothing.
package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// Lookback is how far back it looks.
const Lookback = 24 * time.Hour

const (
	// mostLanes and mostEvents are how many are shown; the others are counted.
	mostLanes  = 100
	mostEvents = 50
)

// Kind is what happened to a release.
type Kind string

const (
	// Failed: a promotion of it failed. It ran until another one took its place.
	Failed Kind = "Failed"
	// WentBack: a Rollout left it for an older release.
	WentBack Kind = "WentBack"
	// Quarantined: it is not to be promoted.
	Quarantined Kind = "Quarantined"
)

// Lane is what happened to one release.
type Lane struct {
	// Versions are the tags under which it is known.
	Versions []string `json:"versions,omitempty"`
	Digest   string   `json:"digest,omitempty"`
	// Events are oldest first. Omitted is how many older ones are not among them.
	Events  []Event `json:"events"`
	Omitted int     `json:"omitted,omitempty"`
	// Lasts is true if one of them lasts.
	Lasts bool `json:"lasts,omitempty"`
}

// Event is what happened to a release in one place.
type Event struct {
	Kind Kind `json:"kind"`
	// Object is the kind of what has the namespace and the name.
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// From is when it began. To is when it ended: absent if it lasts, and the same as From if it
	// has no length.
	From metav1.Time  `json:"from"`
	To   *metav1.Time `json:"to,omitempty"`
	// Until is when it ends by itself; absent if it does not.
	Until *metav1.Time `json:"until,omitempty"`
	// Version is what the Rollout went back to.
	Version string `json:"version,omitempty"`
	// Why is in the words of the status, and By is who wanted it; empty if nobody did.
	Why string `json:"why,omitempty"`
	By  string `json:"by,omitempty"`
}

// Facts are what was read.
type Facts struct {
	Rollouts    []v1alpha1.Rollout
	Quarantines []v1alpha1.ReleaseQuarantine
	OfCluster   []v1alpha1.ClusterReleaseQuarantine
}

// Of returns the lanes, what lasts first and then the newest; omitted is how many others there
// are.
func Of(f Facts, now time.Time) (shown []Lane, omitted int) {
	s := sorter{since: now.Add(-Lookback), now: now, lanes: map[string]*Lane{}}
	for i := range f.Rollouts {
		s.rollout(&f.Rollouts[i])
	}
	for i := range f.Quarantines {
		q := &f.Quarantines[i]
		s.quarantine(v1alpha1.ReleaseQuarantineKind, q.ObjectMeta, &q.Spec, quarantine.Counted(q.Status, quarantine.IsManaged(q), q.CreationTimestamp.Time))
	}
	for i := range f.OfCluster {
		q := &f.OfCluster[i]
		s.quarantine(v1alpha1.ClusterReleaseQuarantineKind, q.ObjectMeta, &q.Spec.ReleaseQuarantineSpec, q.Status)
	}
	all := s.sorted()
	return all[:min(len(all), mostLanes)], max(0, len(all)-mostLanes)
}

// sorter puts events into lanes.
type sorter struct {
	since, now time.Time
	lanes      map[string]*Lane
}

// lane returns the lane of a release, which is known by its digest, or else by the tag of an
// image.
func (s sorter) lane(digest, image string, tags ...string) *Lane {
	key := digest
	if key == "" {
		key = image + ":" + strings.Join(tags, ",")
	}
	l := s.lanes[key]
	if l == nil {
		l = &Lane{Digest: digest}
		s.lanes[key] = l
	}
	for _, tag := range tags {
		if !slices.Contains(l.Versions, tag) {
			l.Versions = append(l.Versions, tag)
		}
	}
	return l
}

// rollout adds what its history says: each entry was left for the newer one.
func (s sorter) rollout(r *v1alpha1.Rollout) {
	past := request.Promotions{History: r.Status.History, Ledger: r.Status.AvailableReleases}
	for i := range past.History {
		e := &past.History[i]
		var left *metav1.Time
		if i > 0 {
			left = &past.History[i-1].Timestamp
		}
		if e.State() == v1alpha1.BakeFailed {
			from := cmp.Or(e.BakeEndTime, &e.Timestamp)
			s.add(s.release(r, e), Event{Kind: Failed, From: *from, To: left, Why: said(e.BakeStatusMessage)}, r)
		}
		if i > 0 && past.WentBack(i-1) {
			s.add(s.release(r, e), back(&past.History[i-1]), r)
		}
	}
}

// back is what a promotion says that went back.
func back(to *v1alpha1.DeploymentHistoryEntry) Event {
	event := Event{Kind: WentBack, From: to.Timestamp, To: &to.Timestamp, Version: to.Version.Tag, Why: said(to.Message)}
	if by := to.TriggeredBy; by != nil && by.Kind == v1alpha1.TriggeredByUser {
		event.By = by.Name
	}
	return event
}

func said(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// release returns how to find the lane of an entry. Releases of unknown images are not taken for
// one another.
func (s sorter) release(r *v1alpha1.Rollout, e *v1alpha1.DeploymentHistoryEntry) func() *Lane {
	return func() *Lane {
		return s.lane(said(e.Version.Digest), cmp.Or(e.Image, r.Namespace+"/"+r.Name), e.Version.Tag)
	}
}

// add adds an event of a Rollout, if it is of the last day.
func (s sorter) add(lane func() *Lane, event Event, r *v1alpha1.Rollout) {
	if event.To != nil && event.To.Time.Before(s.since) {
		return
	}
	event.Object, event.Namespace, event.Name = v1alpha1.RolloutKind, r.Namespace, r.Name
	l := lane()
	l.Events = append(l.Events, event)
}

// quarantine adds one that began, ended or had a failure within the last day. An older one is
// not news.
func (s sorter) quarantine(kind string, o metav1.ObjectMeta, spec *v1alpha1.ReleaseQuarantineSpec, status v1alpha1.ReleaseQuarantineStatus) {
	event := Event{Kind: Quarantined, Object: kind, Namespace: o.Namespace, Name: o.Name, From: o.CreationTimestamp, Why: spec.Reason}
	last := o.CreationTimestamp.Time
	if len(status.Failures) > 0 {
		last = status.Failures[0].Time.Time
		event.Why = cmp.Or(event.Why, status.Failures[0].Message)
	}
	until := quarantine.Until(spec, &status)
	switch {
	case quarantine.Phase(spec, &status, s.now) == v1alpha1.QuarantineHeld:
		if !until.IsZero() {
			event.Until = &metav1.Time{Time: until}
		}
	case status.EndedAt != nil:
		event.To = status.EndedAt
	case !until.IsZero() && !until.After(s.now):
		event.To = &metav1.Time{Time: until}
	default: // the controller has not noted yet that it was lifted
		event.To = &metav1.Time{Time: s.now}
	}
	if event.To != nil && event.To.After(last) {
		last = event.To.Time
	}
	if last.Before(s.since) {
		return
	}
	l := s.lane(spec.Digest, spec.Image, spec.Tags...)
	l.Events = append(l.Events, event)
}

// sorted returns the lanes in their order.
func (s sorter) sorted() []Lane {
	all := []Lane{}
	for _, l := range s.lanes {
		slices.Sort(l.Versions)
		slices.SortFunc(l.Events, func(a, b Event) int {
			return cmp.Or(a.From.Compare(b.From.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
		})
		l.Lasts = slices.ContainsFunc(l.Events, func(e Event) bool { return e.To == nil })
		l.Omitted = max(0, len(l.Events)-mostEvents)
		l.Events = l.Events[l.Omitted:]
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b Lane) int {
		return cmp.Or(-compareBools(a.Lasts, b.Lasts), b.newest().Compare(a.newest()), cmp.Compare(a.Digest, b.Digest), slices.Compare(a.Versions, b.Versions))
	})
	return all
}

func (l Lane) newest() time.Time { return l.Events[len(l.Events)-1].From.Time }

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// The room of the ledger in a status, in bytes of JSON. etcd takes 1.5 MiB per
// object, and whoever watches a Rollout gets all of it with every change.
const (
	// ledgerRoom is that of the whole ledger.
	ledgerRoom = 60 << 10
	// tagRoom is what the tags and dates alone may take of it.
	tagRoom = 30 << 10
	// largestTag is what a release takes of which only the tag and its date are
	// kept: a tag of 128 characters.
	largestTag = 184
	// largestMetadata is what the rest of a release may take: its digest, its
	// version and its revision.
	largestMetadata = 1024
	// usualMetadata is set aside for what is not known yet.
	usualMetadata = 256
)

// room is the part of a ledger that the status has room for.
type room struct {
	// ledger that is kept, in its order.
	ledger []v1alpha1.VersionInfo
	// full is true if there is no room for another release.
	full bool
	// bare are the tags of the releases that have no room for metadata.
	bare map[string]bool
}

// withinRoom leaves out of the ledger what the status has no room for. Those
// releases go first that matter least; of those that stay the less important
// keep only tag and date. What is promoted stays.
//
// What stays follows from the order of importance alone, and not from how large
// the next one would be: a release that was left out, and that a scan shows
// again, is left out again and costs no write.
func withinRoom(in Input, ledger []v1alpha1.VersionInfo, promoted string) room {
	if len(ledger)*(largestTag+largestMetadata) <= ledgerRoom && !slices.ContainsFunc(ledger, oversized) {
		return room{ledger: ledger}
	}
	kept := room{bare: map[string]bool{}}
	byImportance, size := rank(in, ledger, promoted), 0
	for i := range byImportance {
		if size+largestTag > tagRoom && byImportance[i].class != referredClass {
			byImportance = byImportance[:i]
			break
		}
		size += byImportance[i].tagSize()
	}
	kept.full = size+largestTag > tagRoom
	for i := range byImportance {
		r := &byImportance[i]
		if size+largestMetadata > ledgerRoom || r.metadataSize() > largestMetadata {
			r.VersionInfo = v1alpha1.VersionInfo{Tag: r.Tag, Created: r.Created}
			kept.bare[r.Tag] = true
			continue
		}
		size += r.metadataSize()
		if !learned(r.VersionInfo) {
			size += usualMetadata
		}
	}
	kept.ledger = inOrder(byImportance)
	return kept
}

func oversized(v v1alpha1.VersionInfo) bool {
	r := ranked{VersionInfo: v}
	return r.tagSize() > largestTag || r.metadataSize() > largestMetadata
}

// ranked is a release of the ledger and how much it matters.
type ranked struct {
	v1alpha1.VersionInfo
	index int  // in the ledger
	equal int  // is the same for releases of the same precedence, and higher for newer ones
	class int  // the lower, the more it matters
	known bool // stands in the status already
}

func (r *ranked) tagSize() int {
	const frame = len(`{"tag":"","created":"2026-01-01T00:00:00Z"},`)
	return frame + truncate.Size(r.Tag)
}

func (r *ranked) metadataSize() int {
	const frame = len(`"digest":"","version":"","revision":"",`)
	size := frame
	for _, text := range []*string{r.Digest, r.Version, r.Revision} {
		if text != nil {
			size += truncate.Size(*text)
		}
	}
	return size
}

// The classes of releases, the most important first.
const (
	referredClass = iota // what something refers to by its tag: stays in any case
	allowedClass         // candidates that the gates allow by version
	candidateClass
	otherClass
)

// rank sorts the ledger by importance: what is referred to, what may be promoted,
// what is newer. Where releases are taken one by one, the next is the first.
func rank(in Input, ledger []v1alpha1.VersionInfo, promoted string) []ranked {
	oneByOne := in.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext
	known, classOf := TagsOf(in.Rollout.Status.AvailableReleases), classes(in, ledger, promoted)
	all, equal, before := make([]ranked, 0, len(ledger)), 0, place{}
	for i, v := range ledger {
		at := in.Policy.Order.place(v.Tag)
		if result, ok := at.compare(before); !ok || result != 0 {
			equal++
		}
		before = at
		r := ranked{VersionInfo: v, index: i, equal: equal, class: classOf(v.Tag), known: known[v.Tag]}
		if r.tagSize() <= largestTag {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		forward := -1
		if oneByOne && a.class == candidateClass {
			forward = 1
		}
		return cmp.Or(cmp.Compare(a.class, b.class), forward*cmp.Compare(a.equal, b.equal),
			firstIf(a.known, b.known), forward*cmp.Compare(a.index, b.index))
	})
	return all
}

// classes tells how much the releases of the ledger matter.
func classes(in Input, ledger []v1alpha1.VersionInfo, promoted string) func(tag string) int {
	referred := referredTo(in)
	referred[promoted] = true
	candidates := TagsOf(Candidates(ledger, in.Rollout.Status.History, in.Policy.Order))
	oneByOne := in.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext
	return func(tag string) int {
		switch {
		case referred[tag]:
			return referredClass
		case !candidates[tag]:
			return otherClass
		case oneByOne, !allowedByVersion(in.Gates.Gates, tag):
			return candidateClass
		}
		return allowedClass
	}
}

// firstIf sorts those first for which something is true.
func firstIf(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// referredTo are the tags by which history, policy and people refer to releases.
func referredTo(in Input) map[string]bool {
	tags := map[string]bool{
		in.Rollout.Pinned(): true, in.Rollout.Forced(): true, in.Rollout.Annotations[v1alpha1.BypassGatesAnnotation]: true,
	}
	if in.Policy.Latest != nil {
		tags[in.Policy.Latest.Tag] = true
	}
	for i := range in.Rollout.Status.History {
		tags[in.Rollout.Status.History[i].Version.Tag] = true
	}
	return tags
}

func inOrder(all []ranked) []v1alpha1.VersionInfo {
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.index, b.index) })
	ledger := make([]v1alpha1.VersionInfo, 0, len(all))
	for i := range all {
		ledger = append(ledger, all[i].VersionInfo)
	}
	return ledger
}

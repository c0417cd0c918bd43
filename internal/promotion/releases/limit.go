// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"cmp"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Size limits of the known releases in a status, in bytes of JSON. etcd accepts 1.5 MiB
// per object, and every client that watches a Rollout receives all of it with every
// change.
const (
	// ledgerLimit is the limit of all known releases together.
	ledgerLimit = 60 << 10
	// tagLimit is the limit for tags and dates alone, within ledgerLimit.
	tagLimit = 30 << 10
	// largestTag is the largest size of a release of which only tag and date are kept: a tag
	// of 128 characters.
	largestTag = 184
	// largestMetadata is the largest size of the rest of a release: its digest, version,
	// revision and forward-only mark.
	largestMetadata = 1024
	// usualMetadata is reserved for metadata that is not known yet.
	usualMetadata = 256
)

// Fitted is the part of the known releases that fits into the status.
type Fitted struct {
	// Ledger contains the releases that are kept, in the original order.
	Ledger []v1alpha1.VersionInfo
	// Full is true if another release does not fit.
	Full bool
	// Omitted contains the tags of the releases whose metadata does not fit.
	Omitted map[string]bool
}

// Importance decides which releases stay if not all of them fit.
type Importance struct {
	// Rollout with the releases, the history and the requests of users.
	Rollout *v1alpha1.Rollout
	// Policy with the releases that are candidates.
	Policy Policy
	// Promoted is the tag of the release that is promoted now; empty if there is none.
	Promoted string
	// Allowed reports whether the gates allow a tag.
	Allowed func(tag string) bool
}

// Fit cuts the known releases to the size limit of the status. The least important
// releases are left out first. Of the releases that stay, the less important ones keep
// only tag and date. The promoted release stays.
//
// Only the order of importance decides what stays, not the size of the next release. If a
// scan shows a release again that was left out, it is left out again, without a write.
// Also those that keep only tag and date keep their forward-only mark.
func (m Importance) Fit(ledger []v1alpha1.VersionInfo) Fitted {
	if len(ledger)*(largestTag+largestMetadata) <= ledgerLimit && !slices.ContainsFunc(ledger, oversized) {
		return Fitted{Ledger: ledger}
	}
	kept := Fitted{Omitted: map[string]bool{}}
	byImportance, size, marks := m.rank(ledger), 0, 0
	for i := range byImportance {
		if size+largestTag > tagLimit && byImportance[i].class != referredClass {
			byImportance = byImportance[:i]
			break
		}
		size += byImportance[i].tagSize()
		marks += byImportance[i].markSize()
	}
	kept.Full = size+largestTag > tagLimit
	size += marks
	for i := range byImportance {
		r := &byImportance[i]
		if size+largestMetadata > ledgerLimit || r.metadataSize() > largestMetadata {
			r.VersionInfo = v1alpha1.VersionInfo{Tag: r.Tag, Created: r.Created, ForwardOnly: r.ForwardOnly}
			kept.Omitted[r.Tag] = true
			continue
		}
		size += r.metadataSize() - r.markSize()
		if !HasMetadata(r.VersionInfo) {
			size += usualMetadata
		}
	}
	kept.Ledger = inOrder(byImportance)
	return kept
}

func oversized(v v1alpha1.VersionInfo) bool {
	r := ranked{VersionInfo: v}
	return r.tagSize() > largestTag || r.metadataSize() > largestMetadata
}

// ranked is a known release with its importance.
type ranked struct {
	v1alpha1.VersionInfo
	index int  // position in the known releases
	equal int  // the same for releases of the same precedence, and higher for newer ones
	class int  // lower is more important
	known bool // is already in the status
}

func (r *ranked) tagSize() int {
	const frame = len(`{"tag":"","created":"2026-01-01T00:00:00Z"},`)
	return frame + truncate.Size(r.Tag)
}

func (r *ranked) metadataSize() int {
	const frame = len(`"digest":"","version":"","revision":"",`)
	size := frame + r.markSize()
	for _, text := range []*string{r.Digest, r.Version, r.Revision} {
		if text != nil {
			size += truncate.Size(*text)
		}
	}
	return size
}

func (r *ranked) markSize() int {
	if r.ForwardOnly == nil {
		return 0
	}
	return len(`"forwardOnly":false,`)
}

// The classes of releases, the most important first.
const (
	referredClass = iota // referred to by tag: always stays
	allowedClass         // candidates whose version the gates allow
	candidateClass
	otherClass
)

// rank sorts the known releases by importance: first the releases that are referred to,
// then those that may be promoted, then the newer ones. If releases are promoted one by
// one, the next candidate comes first.
func (m Importance) rank(ledger []v1alpha1.VersionInfo) []ranked {
	oneByOne := m.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext
	known, classOf := TagsOf(m.Rollout.Status.AvailableReleases), m.classes(ledger)
	all, equal, before := make([]ranked, 0, len(ledger)), 0, place{}
	for i, v := range ledger {
		at := m.Policy.Order.place(v.Tag)
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

// classes returns a function that returns the class of a release by its tag.
func (m Importance) classes(ledger []v1alpha1.VersionInfo) func(tag string) int {
	referred := referredTo(m.Rollout, m.Policy)
	referred[m.Promoted] = true
	candidates := TagsOf(Candidates(ledger, m.Rollout.Status.History, m.Policy))
	oneByOne := m.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext
	return func(tag string) int {
		switch {
		case referred[tag]:
			return referredClass
		case !candidates[tag]:
			return otherClass
		case oneByOne, !m.Allowed(tag):
			return candidateClass
		}
		return allowedClass
	}
}

// firstIf compares two conditions: true sorts before false.
func firstIf(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// referredTo returns the tags by which history, policy and users refer to releases.
func referredTo(rollout *v1alpha1.Rollout, policy Policy) map[string]bool {
	tags := map[string]bool{
		Name(rollout.Pinned()).Tag: true, rollout.Annotations[v1alpha1.ForceDeployAnnotation]: true, rollout.Annotations[v1alpha1.BypassGatesAnnotation]: true,
	}
	if policy.Latest != nil {
		tags[policy.Latest.Tag] = true
	}
	for i := range rollout.Status.History {
		tags[rollout.Status.History[i].Version.Tag] = true
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

// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// relation is how a release compares to another one.
type relation int

const (
	// Unranked: the order cannot compare them.
	Unranked relation = iota
	// Older: by the order, or else by when the images were built.
	Older
	// Newer: likewise.
	Newer
	// SameRelease: one release under two names.
	SameRelease
	// SameVersion: they are different, or may be, and nothing tells which one is newer.
	SameVersion
)

// Placed is a release with its place in an order.
type Placed struct {
	v1alpha1.VersionInfo
	place
}

// Placed returns a release with its place in the order.
func (o Order) Placed(v v1alpha1.VersionInfo) Placed { return Placed{v, o.place(v.Tag)} }

// Relation returns how a release compares to another one.
func (o Order) Relation(release, to v1alpha1.VersionInfo) relation {
	return o.Placed(release).Relation(o.Placed(to))
}

// Relation returns how the release compares to another one.
func (p Placed) Relation(to Placed) relation {
	result, ok := p.compare(to.place)
	switch {
	case !ok:
		return Unranked
	case result != 0:
		return relationBy(result)
	case p.Tag == to.Tag || IsSame(p.Digest, to.Digest):
		return SameRelease
	case p.Created == nil || to.Created == nil:
		return SameVersion
	}
	return relationBy(p.Created.Compare(to.Created.Time))
}

func relationBy(result int) relation {
	switch {
	case result < 0:
		return Older
	case result > 0:
		return Newer
	}
	return SameVersion
}

// inList compares two releases for the list of known releases, oldest first. It never
// contradicts relation, and is 0 where their order in the list stays as it is: a release
// of unknown age comes first, because a scan shows it again and again.
func (p Placed) inList(other Placed) int {
	if result, ok := p.compare(other.place); !ok || result != 0 {
		return cmp.Or(result, firstIf(other.ranked, p.ranked))
	}
	if p.Created == nil || other.Created == nil {
		return firstIf(p.Created == nil, other.Created == nil)
	}
	return p.Created.Compare(other.Created.Time)
}

// IsSame reports whether two digests are known and equal.
func IsSame(a, b *string) bool { return a != nil && b != nil && *a == *b }

// Differs reports whether two digests are known and not equal.
func Differs(a, b *string) bool { return a != nil && b != nil && *a != *b }

// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// relation is how a release compares to another one.
type relation int

const (
	// unranked: the order cannot compare them.
	unranked relation = iota
	// older and newer: by the order, or else by when the images were built.
	older
	newer
	// sameRelease: one release under two names.
	sameRelease
	// sameVersion: they are different, or may be, and nothing tells which one is newer.
	sameVersion
)

// placed is a release with its place in an order.
type placed struct {
	v1alpha1.VersionInfo
	place
}

func (o Order) placed(v v1alpha1.VersionInfo) placed { return placed{v, o.place(v.Tag)} }

// relation returns how a release compares to another one.
func (o Order) relation(release, to v1alpha1.VersionInfo) relation {
	return o.placed(release).relation(o.placed(to))
}

func (p placed) relation(to placed) relation {
	result, ok := p.compare(to.place)
	switch {
	case !ok:
		return unranked
	case result != 0:
		return relationBy(result)
	case p.Tag == to.Tag || isSame(p.Digest, to.Digest):
		return sameRelease
	case p.Created == nil || to.Created == nil:
		return sameVersion
	}
	return relationBy(p.Created.Compare(to.Created.Time))
}

func relationBy(result int) relation {
	switch {
	case result < 0:
		return older
	case result > 0:
		return newer
	}
	return sameVersion
}

// inList compares two releases for the list of known releases, oldest first. It never
// contradicts relation, and is 0 where their order in the list stays as it is: a release
// of unknown age comes first, because a scan shows it again and again.
func (p placed) inList(other placed) int {
	if result, ok := p.compare(other.place); !ok || result != 0 {
		return cmp.Or(result, firstIf(other.ranked, p.ranked))
	}
	if p.Created == nil || other.Created == nil {
		return firstIf(p.Created == nil, other.Created == nil)
	}
	return p.Created.Compare(other.Created.Time)
}

// SPDX-License-Identifier: Apache-2.0

// Package releases knows which releases there are: how an ImagePolicy ranks and filters
// their tags, which of them are newer than what is deployed, what the registry reports
// about their images, and how many of them fit into the status of a Rollout.
//
//	policy.go         what an ImagePolicy offers
//	order.go          how it ranks and filters tags
//	order_ties.go     which of the tags is newer that are equal for it
//	relation.go       how one release compares to another
//	moved_image.go    that a tag is another release in another image
//	ledger.go         which releases are known
//	candidates.go     which of them are newer than the current one
//	image.go          what the registry reports about a release
//	limit.go          which known releases fit into the status
//	limit_history.go  how much of the history fits into it
package releases

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/fluxrollouts/rollout-controller/internal/pattern"
)

// OrderKind is how an ImagePolicy ranks tags.
type OrderKind string

const (
	// BySemver ranks by semver precedence (semver.org, section 11).
	BySemver OrderKind = "semver"
	// ByNumber ranks by numerical value.
	ByNumber OrderKind = "numerical"
	// ByAlphabet ranks by the bytes of the tag.
	ByAlphabet OrderKind = "alphabetical"
	// ByAppearance cannot compare tags: a tag that appeared later is newer.
	ByAppearance OrderKind = "appearance"
)

// OrderSpec is the part of an ImagePolicy's spec that ranks and filters tags.
type OrderSpec struct {
	// Kind of comparison.
	Kind OrderKind
	// Range is the semver range of a policy that ranks by semver.
	Range string
	// Descending is true if the policy's order is "desc": then the lowest tag is the latest.
	Descending bool
	// Pattern is filterTags.pattern; empty admits every tag.
	Pattern string
	// Extract is filterTags.extract. Its result is compared instead of the tag.
	Extract string
}

// Order compares tags as an ImagePolicy does.
type Order struct {
	spec       OrderSpec
	constraint *semver.Constraints
	pattern    *regexp.Regexp
}

// NewOrder prepares an order. It fails if the range or the pattern cannot be
// parsed, or is too large.
func NewOrder(spec OrderSpec) (Order, error) {
	o := Order{spec: spec}
	err := spec.bounded()
	if err != nil {
		return Order{}, err
	}
	if spec.Kind == BySemver {
		if o.constraint, err = semver.NewConstraint(spec.Range); err != nil {
			return Order{}, fmt.Errorf("semver range %q: %w", spec.Range, err)
		}
	}
	if spec.Pattern != "" {
		if o.pattern, err = pattern.Compile(spec.Pattern); err != nil {
			return Order{}, fmt.Errorf("filterTags.pattern: %w", err)
		}
	}
	return o, nil
}

// IsKnown reports whether a policy has set the order.
func (o Order) IsKnown() bool { return o.spec.Kind != "" }

// Kind returns the kind of comparison; ByAppearance for the zero Order.
func (o Order) Kind() OrderKind {
	if o.spec.Kind == "" {
		return ByAppearance
	}
	return o.spec.Kind
}

// Admits reports whether the policy's filter and range admit the tag. A tag that the
// policy cannot rank is admitted only if no tag can be ranked. Otherwise two tags,
// neither of them newer, would replace each other forever.
func (o Order) Admits(tag string) bool {
	key, ok := o.key(tag)
	if !ok {
		return false
	}
	if o.Kind() == BySemver {
		v, err := parseSemver(key)
		return err == nil && o.constraint.Check(v)
	}
	return o.Kind() == ByAppearance || o.Comparable(tag)
}

// Comparable reports whether the order can rank the tag.
func (o Order) Comparable(tag string) bool {
	return o.place(tag).ranked
}

// Compare returns whether a is older (-1), equal (0) or newer (+1) than b. It returns
// false if the order cannot compare them. Tags that the ImagePolicy cannot tell apart may
// still differ: then the one with the later build, or with the number that is exactly
// higher, is newer.
func (o Order) Compare(a, b string) (int, bool) { return o.place(a).compare(o.place(b)) }

// Precedence returns the same as the ImagePolicy itself sees it. Of tags that are equal
// for it, it may name any.
func (o Order) Precedence(a, b string) (int, bool) { return o.place(a).precedence(o.place(b)) }

// place is the position of a tag in an order.
type place struct {
	Kind       OrderKind
	ranked     bool // the order can compare it
	descending bool
	version    *semver.Version
	number     float64
	text       string
}

func (o Order) place(tag string) place {
	p := place{Kind: o.Kind(), descending: o.spec.Descending}
	key, ok := o.key(tag)
	if !ok {
		return p
	}
	var err error
	switch p.Kind {
	case BySemver:
		p.version, err = parseSemver(key)
	case ByNumber:
		p.text = key
		p.number, err = strconv.ParseFloat(key, 64)
	case ByAlphabet:
		p.text = key
	case ByAppearance:
		return p
	}
	p.ranked = err == nil
	return p
}

// compare breaks the ties of precedence by what the tags themselves contain.
func (p place) compare(other place) (int, bool) {
	result, ok := p.precedence(other)
	if ok && result == 0 {
		result = p.signed(p.tieBreak(other))
	}
	return result, ok
}

func (p place) precedence(other place) (int, bool) {
	if !p.ranked || !other.ranked {
		return 0, false
	}
	result := 0
	switch p.Kind {
	case BySemver:
		result = p.version.Compare(other.version)
	case ByNumber:
		result = cmp.Compare(p.number, other.number)
	case ByAlphabet:
		result = strings.Compare(p.text, other.text)
	case ByAppearance:
	}
	return p.signed(result), true
}

func (p place) signed(result int) int {
	if p.descending {
		return -result
	}
	return result
}

// key returns the text that is compared: the tag, or the result of filterTags.extract.
func (o Order) key(tag string) (string, bool) {
	if o.pattern == nil {
		return tag, true
	}
	match := o.pattern.FindStringSubmatchIndex(tag)
	switch {
	case match == nil:
		return "", false
	case o.spec.Extract == "":
		return tag, true
	}
	return string(o.pattern.ExpandString(nil, o.spec.Extract, tag, match)), true
}

// parseSemver accepts what Flux accepts: strict semver, with or without a "v".
func parseSemver(tag string) (*semver.Version, error) {
	return semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
}

// IsTag reports whether s can be a tag in an OCI registry, by the grammar of the
// OCI distribution specification: [a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}.
func IsTag(s string) bool {
	const longest = 128
	if s == "" || len(s) > longest || s[0] == '.' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

// bounded returns an error if a field is so long that it takes long to prepare or to
// compare tags with. Tenants write these fields, and they are prepared in each
// reconciliation.
func (s OrderSpec) bounded() error {
	for _, part := range []struct{ field, text string }{{"semver range", s.Range}, {"filterTags.extract", s.Extract}} {
		if len(part.text) > pattern.Longest {
			return fmt.Errorf("%s: it has %d characters, and may have %d", part.field, len(part.text), pattern.Longest)
		}
	}
	return nil
}

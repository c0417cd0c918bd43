// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// field is a field of a target that belongs to its Rollout and can be written.
type field struct {
	name  string // of the variable, or the path of the value; tag or digest of a Repository
	value string // empty if it is not set
	set   bool
	gets  part
}

// part is what a field gets of a release.
type part int

const (
	theTag part = iota
	theDigest
	nothing // it is removed
)

// wanted returns the value that the field should have. The digest of a release may not be
// known: a field with the digest of another release would outrank the tag of this one, and
// a variable or value keeps what it has until the digest is known.
func (f field) wanted(release Release) string {
	switch {
	case f.gets == theTag:
		return release.Tag
	case release.Adopted && f.gets == theDigest, f.gets == theDigest && release.Digest == "" && f.name != digestField:
		return f.value
	case f.gets == theDigest:
		return release.Digest
	}
	return ""
}

// tagField and digestField are the names of the fields of a Repository.
const (
	tagField    = "tag"
	digestField = "digest"
)

func (t Target) fields() []field {
	switch {
	case t.Repository != nil:
		return t.referenceFields()
	case t.HelmRelease != nil:
		return t.valueFields()
	}
	var all []field
	for _, variable := range t.writable() {
		value, set := substitutes(t.Kustomization)[variable]
		all = append(all, field{name: variable, value: value, set: set, gets: t.partOf(variable)})
	}
	return all
}

// partOf returns what the variable or value with a name gets.
func (t Target) partOf(name string) part {
	if sortedHas(t.Digests, name) {
		return theDigest
	}
	return theTag
}

// referenceFields returns the fields of a Repository. A digest that the controller has
// written stays its own until it is removed: it would outrank every tag.
func (t Target) referenceFields() []field {
	ref := viewOf(t.Repository)
	all := []field{{name: tagField, value: ref.tag, set: ref.hasRef}}
	digest := field{name: digestField, value: ref.digest, set: ref.digest != "", gets: theDigest}
	switch {
	case len(t.Digests) > 0:
		all = append(all, digest)
	case t.leftDigest():
		digest.gets = nothing
		all = append(all, digest)
	}
	return all
}

// leftDigest reports whether an OCIRepository has a digest that the controller has written
// and that no annotation asks for any more.
func (t Target) leftDigest() bool {
	return len(t.Digests) == 0 && viewOf(t.Repository).digest != "" && t.ownsDigest()
}

// ownsDigest reports whether the controller has written spec.ref.digest.
func (t Target) ownsDigest() bool {
	for _, entry := range t.Repository.GetManagedFields() {
		if isOwn(entry) && fieldsOf(entry).Has(digestPath) {
			return true
		}
	}
	return false
}

// pathOf returns the path of one of the fields in the object.
func (t Target) pathOf(f field) fieldpath.Path {
	switch {
	case t.Repository != nil && f.name == digestField:
		return digestPath
	case t.Repository != nil:
		return tagPath
	case t.HelmRelease != nil:
		return valuePath(f.name)
	}
	return variablePath(f.name)
}

// versions returns the fields that get the tag of a release.
func (t Target) versions() []field {
	return slices.DeleteFunc(t.fields(), func(f field) bool { return f.gets != theTag })
}

// lacksOnlyDigest reports whether the target has the tag of a release, and no digest yet.
func (t Target) lacksOnlyDigest(release Release) bool {
	return !slices.ContainsFunc(t.fields(), func(f field) bool {
		return f.value != f.wanted(release) && (f.gets != theDigest || f.value != "")
	})
}

// SPDX-License-Identifier: Apache-2.0

package releases_test

import (
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

var (
	byNumber     = releases.OrderSpec{Kind: releases.ByNumber}
	byAlphabet   = releases.OrderSpec{Kind: releases.ByAlphabet}
	byAppearance = releases.OrderSpec{Kind: releases.ByAppearance}

	// stamped tags look like main-3f2a-1700000000.
	stamped = releases.OrderSpec{Kind: releases.ByNumber, Pattern: `^main-[0-9a-f]+-(?P<ts>[0-9]+)$`, Extract: "$ts"}
	// numbered tags look like 1.4.0_17: OCI does not allow a plus sign.
	numbered = releases.OrderSpec{Kind: releases.BySemver, Range: "*", Pattern: `^(?P<v>.+)_(?P<b>\d+)$`, Extract: "$v+$b"}
)

// built tags have any build metadata after an underscore.
var built = releases.OrderSpec{Kind: releases.BySemver, Range: "*", Pattern: `^([^_]+)_(.+)$`, Extract: "$1+$2"}

func descending(spec releases.OrderSpec) releases.OrderSpec {
	spec.Descending = true
	return spec
}

func TestOrderCompares(t *testing.T) {
	type answer struct {
		Order int
		Known bool
	}
	older, same, newer, unknown := answer{-1, true}, answer{0, true}, answer{1, true}, answer{0, false}
	for name, test := range map[string]struct {
		spec releases.OrderSpec
		a, b string
		want answer
	}{
		"semver compares numbers, not digits":            {anySemver, "1.9.0", "1.10.0", older},
		"a major version outranks every minor version":   {anySemver, "2.0.0", "1.99.99", newer},
		"a prerelease is older than its release":         {anySemver, "1.0.0-rc.1", "1.0.0", older},
		"prereleases compare by their numbers":           {anySemver, "1.0.0-rc.2", "1.0.0-rc.10", older},
		"beta comes before rc":                           {anySemver, "1.0.0-beta.11", "1.0.0-rc.1", older},
		"the prefix v makes no difference":               {anySemver, "v1.2.0", "1.2.0", same},
		"versions with the prefix v are compared":        {anySemver, "v1.9.0", "v1.10.0", older},
		"a range does not restrict what can be compared": {releases.OrderSpec{Kind: releases.BySemver, Range: "1.x"}, "2.0.0", "1.0.0", newer},
		"two numbers are no semantic version":            {anySemver, "1.9", "1.10.0", unknown},
		"a leading zero is no semantic version":          {anySemver, "1.01.0", "1.1.0", unknown},
		"a name cannot be ranked by semver":              {anySemver, "hotfix-bob", "1.0.0", unknown},

		"of one version, the later build is newer":    {numbered, "1.4.0_17", "1.4.0_18", older},
		"builds compare by value":                     {numbered, "1.4.0_9", "1.4.0_10", older},
		"builds may have any size":                    {numbered, "1.4.0_99999999999999999999999", "1.4.0_100000000000000000000000", older},
		"leading zeros of a build make no difference": {numbered, "1.4.0_007", "1.4.0_7", same},
		"a version outranks its build":                {numbered, "1.4.0_99", "1.4.1_1", older},
		"builds compare identifier by identifier":     {built, "1.0.0_1.9", "1.0.0_1.10", older},
		"a number of a build comes before a word":     {built, "1.0.0_99", "1.0.0_a", older},
		"words of builds compare by bytes":            {built, "1.0.0_a", "1.0.0_b", older},
		"fewer identifiers of a build come first":     {built, "1.0.0_a", "1.0.0_a.1", older},
		"extract yields the version that is compared": {numbered, "1.9.0_2", "1.10.0_1", older},
		"a tag outside the pattern cannot be ranked":  {numbered, "1.9.0", "1.10.0_1", unknown},
		"a pattern without extract compares the whole tag": {
			releases.OrderSpec{Kind: releases.BySemver, Range: "*", Pattern: `^\d+\.\d+\.\d+$`}, "1.9.0", "1.10.0", older,
		},

		"numbers compare by value":                 {byNumber, "9", "10", older},
		"numbers may have fractions":               {byNumber, "1.25", "1.5", older},
		"equal numbers are equal, however written": {byNumber, "007", "7.0", same},
		"desc makes the lower number newer":        {descending(byNumber), "9", "10", newer},
		"a word is no number":                      {byNumber, "latest", "10", unknown},
		"a number that overflows is no number":     {byNumber, "1e999", "10", unknown},
		"the extracted timestamp is what counts":   {stamped, "main-ff-1700000001", "main-00-1700000002", older},
		"numbers of one float64 compare exactly":   {byNumber, "9007199254740992", "9007199254740993", older},
		"so do fractions":                          {byNumber, "0.10000000000000000001", "0.1", newer},
		"desc reverses them":                       {descending(byNumber), "9007199254740992", "9007199254740993", newer},
		"zeros at the end make no difference":      {byNumber, "9007199254740993.0", "9007199254740993", same},
		"tiny numbers compare exactly":             {byNumber, "1e-400", "2e-400", older},
		"an exponent too long is not computed":     {byNumber, "1e-99999999", "2e-99999999", same},
		"a hexadecimal number is one, too":         {byNumber, "0x20000000000001p0", "9007199254740992", newer},
		"infinity equals itself":                   {byNumber, "Inf", "+Infinity", same},
		"the alphabet compares bytes":              {byAlphabet, "RELEASE.9", "RELEASE.10", newer},
		"dates sort by the alphabet":               {byAlphabet, "2026-02-28", "2026-03-01", older},
		"desc reverses the alphabet":               {descending(byAlphabet), "a", "b", newer},
		"equal stays equal in descending order":    {descending(byAlphabet), "a", "a", same},
		"appearance cannot know from the tags":     {byAppearance, "1.0.0", "1.1.0", unknown},
		"an order that was never set cannot know":  {releases.OrderSpec{}, "1.0.0", "1.1.0", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			o := order(test.spec)
			var got answer
			got.Order, got.Known = o.Compare(test.a, test.b)
			diff(t, test.want, got)
			got.Order, got.Known = o.Compare(test.b, test.a)
			diff(t, answer{-test.want.Order, test.want.Known}, got)
		})
	}
}

func TestOrderAdmits(t *testing.T) {
	stable := releases.OrderSpec{Kind: releases.BySemver, Range: ">=1.2.0 <2.0.0"}
	for name, test := range map[string]struct {
		spec releases.OrderSpec
		tag  string
		want bool
	}{
		"a version inside the range":                             {stable, "1.4.2", true},
		"the lower bound of the range":                           {stable, "1.2.0", true},
		"not the upper bound that the range excludes":            {stable, "2.0.0", false},
		"no prerelease, if the range does not name one":          {stable, "1.5.0-rc.1", false},
		"a prerelease, if the range does":                        {releases.OrderSpec{Kind: releases.BySemver, Range: ">=1.2.0-0"}, "1.5.0-rc.1", true},
		"a version with the prefix v":                            {stable, "v1.4.2", true},
		"no tag that is not a semantic version":                  {stable, "latest", false},
		"a tag whose extracted version is inside the range":      {numbered, "1.4.0_17", true},
		"no tag that the pattern does not match":                 {numbered, "1.4.0", false},
		"no tag whose extracted version is none":                 {numbered, "main_17", false},
		"any tag of a numerical policy that matches its pattern": {stamped, "main-ff-1700000001", true},
		"no tag of a numerical policy that does not":             {stamped, "dev-ff-1700000001", false},
		"no tag of a numerical policy that is no number":         {byNumber, "latest", false},
		"any tag of an alphabetical policy without a pattern":    {byAlphabet, "anything", true},
		"any tag where nothing can be compared":                  {byAppearance, "anything", true},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, order(test.spec).Admits(test.tag))
		})
	}
}

func TestOrderThatCannotBeParsedIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		spec releases.OrderSpec
		want string
	}{
		"a range that is none":        {releases.OrderSpec{Kind: releases.BySemver, Range: "newest"}, `semver range "newest"`},
		"an empty range":              {releases.OrderSpec{Kind: releases.BySemver}, `semver range ""`},
		"a pattern that never closes": {releases.OrderSpec{Kind: releases.ByNumber, Pattern: "("}, "filterTags.pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := releases.NewOrder(test.spec)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got error %v, want one about %s", err, test.want)
			}
			o.Admits("1.0.0") // code that uses it anyway must not crash
		})
	}
}

func TestOrderKind(t *testing.T) {
	diff(t, releases.ByAppearance, releases.Order{}.Kind())
	diff(t, releases.BySemver, order(anySemver).Kind())
}

func TestIsTag(t *testing.T) {
	for tag, want := range map[string]bool{
		"1.0.0":                  true,
		"v1.0.0-rc.1":            true,
		"_hidden":                true,
		"UPPER_lower-0.9":        true,
		strings.Repeat("a", 128): true,
		strings.Repeat("a", 129): false,
		"":                       false,
		"1.0.0+build":            false,
		".dot":                   false,
		"-dash":                  false,
		"a b":                    false,
		"a/b":                    false,
		"a:b":                    false,
		"1.0.0\n":                false,
		"größe":                  false,
	} {
		t.Run(tag, func(t *testing.T) { diff(t, want, releases.IsTag(tag)) })
	}
}

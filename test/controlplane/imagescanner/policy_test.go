// SPDX-License-Identifier: Apache-2.0

package imagescanner

import (
	"errors"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func semverPolicy(versions string) imagev1.ImagePolicySpec {
	return imagev1.ImagePolicySpec{Policy: imagev1.ImagePolicyChoice{SemVer: &imagev1.SemVerPolicy{Range: versions}}}
}

func numericalPolicy(order string) imagev1.ImagePolicySpec {
	return imagev1.ImagePolicySpec{Policy: imagev1.ImagePolicyChoice{Numerical: &imagev1.NumericalPolicy{Order: order}}}
}

func alphabeticalPolicy(order string) imagev1.ImagePolicySpec {
	return imagev1.ImagePolicySpec{Policy: imagev1.ImagePolicyChoice{Alphabetical: &imagev1.AlphabeticalPolicy{Order: order}}}
}

func filtered(spec imagev1.ImagePolicySpec, pattern, extract string) imagev1.ImagePolicySpec {
	spec.FilterTags = &imagev1.TagFilter{Pattern: pattern, Extract: extract}
	return spec
}

func TestPolicyChooses(t *testing.T) {
	for name, test := range map[string]struct {
		spec imagev1.ImagePolicySpec
		tags []string
		want string
	}{
		"the highest version, not the highest text":       {semverPolicy("*"), []string{"1.9.0", "1.10.0"}, "1.10.0"},
		"a version with a leading v as it is written":     {semverPolicy(">=1.0.0"), []string{"v1.3.0", "1.1.0"}, "v1.3.0"},
		"no pre-release unless the range has one":         {semverPolicy(">=1.0.0"), []string{"1.2.0-rc.1", "1.1.0"}, "1.1.0"},
		"a pre-release when the range has one":            {semverPolicy(">=1.0.0-0"), []string{"1.2.0-rc.1", "1.1.0"}, "1.2.0-rc.1"},
		"no shortened versions":                           {semverPolicy("*"), []string{"2", "1.5", "1.0.0"}, "1.0.0"},
		"the last of the alphabet":                        {alphabeticalPolicy("asc"), []string{"a", "c", "b"}, "c"},
		"the first of the alphabet when descending":       {alphabeticalPolicy("desc"), []string{"b", "a", "c"}, "a"},
		"the greatest number":                             {numericalPolicy(""), []string{"9", "10", "8.5"}, "10"},
		"the smallest number when descending":             {numericalPolicy("desc"), []string{"9", "10", "8.5"}, "8.5"},
		"only from what the filter matches":               {filtered(semverPolicy("*"), `^1\.`, ""), []string{"1.1.0", "2.0.0"}, "1.1.0"},
		"the whole tag by what the filter extracts of it": {filtered(numericalPolicy("asc"), `^main-(?P<n>\d+)$`, "$n"), []string{"main-9", "main-10", "x"}, "main-10"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := latest(test.spec, test.tags); err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestPolicyThatFindsNothingFails(t *testing.T) {
	for name, test := range map[string]struct {
		spec imagev1.ImagePolicySpec
		tags []string
		want error
	}{
		"no version in range":        {semverPolicy(">=9.0.0"), []string{"1.0.0"}, errNoVersion},
		"nothing passes the filter":  {filtered(alphabeticalPolicy("asc"), "^x", ""), []string{"a"}, errNoTags},
		"an invalid range":           {semverPolicy("not a range"), []string{"1.0.0"}, invalidPolicyError{}},
		"an invalid filter":          {filtered(semverPolicy("*"), "(", ""), []string{"1.0.0"}, invalidPolicyError{}},
		"an unknown order":           {numericalPolicy("sideways"), []string{"1"}, invalidPolicyError{}},
		"a policy that says nothing": {imagev1.ImagePolicySpec{}, []string{"1.0.0"}, invalidPolicyError{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := latest(test.spec, test.tags)
			var invalid invalidPolicyError
			if errors.As(test.want, &invalid) != errors.As(err, &invalid) || (!errors.As(err, &invalid) && !errors.Is(err, test.want)) {
				t.Errorf("got %q, %v; want the error %v", got, err, test.want)
			}
		})
	}
}

// The expected checksum was computed by the original for these tags.
func TestScanResultDescribesTagsAsTheOriginalDoes(t *testing.T) {
	found := []string{"0.9.0", "1.0.0", "1.1.0", "1.2.0-rc.1", "latest", "sha256-abc.sig", "v1.3.0"}
	tags, err := without(found, []string{`^.*\.sig$`})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := checksum(tags)
	if err != nil || revision != "2028604480" {
		t.Errorf("got the checksum %s, %v; want 2028604480", revision, err)
	}
}

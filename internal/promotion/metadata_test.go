// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// description builds the metadata that the registry reports for a release.
type description struct{ releases.Metadata }

// described returns an image with a revision that was built at eleven.
func described(tag, digest string) description {
	return description{releases.Metadata{
		Tag: tag, Digest: "sha256:" + digest, Revision: "rev-" + digest, Created: eleven, ArtifactType: "application/example",
	}}
}

// bareImage returns an image of which the registry reports only the digest.
func bareImage(tag, digest string) description {
	return description{releases.Metadata{Tag: tag, Digest: "sha256:" + digest}}
}

// at sets the creation time, relative to noon.
func (d description) at(shift time.Duration) description {
	d.Created = noon.Add(shift)
	return d
}

// knows sets the metadata known from the registry.
func (s *situation) knows(all ...description) *situation {
	for _, d := range all {
		s.input.Metadata = append(s.input.Metadata, d.Metadata)
	}
	return s
}

// full returns the release that a described image results in.
func full(tag, digest string) v1alpha1.VersionInfo {
	return release(tag).Digest("sha256:" + digest).Revision("rev-" + digest).Created(eleven).Obj()
}

func sha(tag, digest string) v1alpha1.VersionInfo {
	return release(tag).Digest("sha256:" + digest).Obj()
}

func TestMetadataIsFilledIn(t *testing.T) {
	type result struct {
		Ledger, Candidates, Entries []v1alpha1.VersionInfo
	}
	for name, test := range map[string]struct {
		given *situation
		want  result
	}{
		"into ledger, candidates and entries": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Succeeded())).gates(gate("qa").Closed()).
				knows(described("1.0.0", "aa"), described("1.1.0", "bb")),
			result{
				Ledger:     []v1alpha1.VersionInfo{full("1.0.0", "aa"), full("1.1.0", "bb")},
				Candidates: []v1alpha1.VersionInfo{full("1.1.0", "bb")},
				Entries:    []v1alpha1.VersionInfo{full("1.0.0", "aa")},
			},
		},
		"into the entry that is just made": {
			given(rollout().Ledger("1.0.0")).knows(described("1.0.0", "aa")),
			result{
				Ledger:     []v1alpha1.VersionInfo{full("1.0.0", "aa")},
				Candidates: []v1alpha1.VersionInfo{full("1.0.0", "aa")},
				Entries:    []v1alpha1.VersionInfo{full("1.0.0", "aa")},
			},
		},
		"while the policy names nothing": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded())).namesNothing().knows(described("1.0.0", "aa")),
			result{
				Ledger:  []v1alpha1.VersionInfo{full("1.0.0", "aa")},
				Entries: []v1alpha1.VersionInfo{full("1.0.0", "aa")},
			},
		},
		"into an entry that the ledger does not know": {
			given(rollout().Ledger("1.0.0").Pin("0.1.0").History(entry("0.1.0").Succeeded())).knows(described("0.1.0", "cc")),
			result{
				Ledger:     fixture.Releases("1.0.0"),
				Candidates: fixture.Releases("1.0.0"),
				Entries:    []v1alpha1.VersionInfo{full("0.1.0", "cc")},
			},
		},
		"and never over what is known": {
			given(rollout().Releases(release("1.0.0").Revision("main").Obj()).History(entry("1.0.0").Succeeded())).
				knows(described("1.0.0", "aa")),
			result{
				Ledger:  []v1alpha1.VersionInfo{release("1.0.0").Digest("sha256:aa").Revision("main").Created(eleven).Obj()},
				Entries: []v1alpha1.VersionInfo{full("1.0.0", "aa")},
			},
		},
		"not if it is about another image": {
			given(rollout().Releases(sha("1.0.0", "aa")).History(entry("1.0.0").Succeeded().Version(sha("1.0.0", "aa")))).
				knows(described("1.0.0", "bb"), described("1.1.0", "aa")),
			result{
				Ledger:  []v1alpha1.VersionInfo{sha("1.0.0", "aa")},
				Entries: []v1alpha1.VersionInfo{sha("1.0.0", "aa")},
			},
		},
		"anew for a tag that moved, whose entry stays what was deployed": {
			given(rollout().Releases(full("1.0.0", "aa")).History(entry("1.0.0").Succeeded().Version(full("1.0.0", "aa")))).
				names(sha("1.0.0", "bb")).knows(described("1.0.0", "bb")),
			result{
				Ledger:  []v1alpha1.VersionInfo{full("1.0.0", "bb")},
				Entries: []v1alpha1.VersionInfo{full("1.0.0", "aa")},
			},
		},
		"as far as the image says anything": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded())).knows(bareImage("1.0.0", "aa")),
			result{
				Ledger:  []v1alpha1.VersionInfo{sha("1.0.0", "aa")},
				Entries: []v1alpha1.VersionInfo{sha("1.0.0", "aa")},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.in()
			d := promotion.Decide(in)
			history, err := promotion.Record(in, d)
			if err != nil {
				t.Fatal(err)
			}
			status := &v1alpha1.RolloutStatus{AvailableReleases: d.Ledger, History: history}
			promotion.ResolveMetadata(in, status)
			got := result{Ledger: d.Ledger}
			for _, c := range d.Candidates {
				got.Candidates = append(got.Candidates, c.Release)
			}
			for _, e := range status.History {
				got.Entries = append(got.Entries, e.Version)
			}
			diff(t, test.want, got)
		})
	}
}

// When the registry is asked, the tag may point to other content than the one that runs.
// Then the entry would claim that Flux has not deployed its content.
func TestEntrySaysOnlyWhatIsKnownOfItsOwnContent(t *testing.T) {
	unknown := func(more ...*fixture.EntryBuilder) *situation {
		s := given(rollout().Ledger("1.1.0").History(append([]*fixture.EntryBuilder{entry("1.1.0").Deploying()}, more...)...))
		s.input.Policy.Image = image
		return s
	}
	waits := pulls(image, "")
	waits.State = v1alpha1.TargetPending
	tag := v1alpha1.VersionInfo{Tag: "1.1.0"}
	for name, test := range map[string]struct {
		given *situation
		want  []v1alpha1.VersionInfo
	}{
		"the content that Flux has pulled":                  {unknown().targets(pulls(image, "sha256:aaa")), []v1alpha1.VersionInfo{full("1.1.0", "aaa")}},
		"pushed again after Flux pulled it":                 {unknown().targets(pulls(image, "sha256:old")), []v1alpha1.VersionInfo{tag}},
		"before Flux has pulled it, what the tag points to": {unknown().targets(waits), []v1alpha1.VersionInfo{full("1.1.0", "aaa")}},
		"Flux pulls another image":                          {unknown().targets(pulls("registry.example/manifests", "sha256:mmm")), []v1alpha1.VersionInfo{full("1.1.0", "aaa")}},
		"nothing of an entry whose tag was pushed again": {
			unknown(entry("1.1.0").Cancelled(), entry("1.0.0").Succeeded()).targets(pulls(image, "sha256:aaa")).knows(described("1.0.0", "zzz")),
			[]v1alpha1.VersionInfo{full("1.1.0", "aaa"), tag, full("1.0.0", "zzz")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			known := described("1.1.0", "aaa")
			in := test.given.knows(known).at(noon).in()
			status := in.Rollout.Status.DeepCopy()
			promotion.ResolveMetadata(in, status)
			var got []v1alpha1.VersionInfo
			for _, e := range status.History {
				got = append(got, e.Version)
			}
			diff(t, test.want, got)
			in.Rollout.Status.History = status.History
			in.Rollout.Status.AvailableReleases = []v1alpha1.VersionInfo{full("1.1.0", "aaa")}
			in.Rollout.Status.ArtifactType = to(known.ArtifactType)
			if d := promotion.Decide(in); d.MetadataResolved {
				t.Error("what was resolved is resolved again")
			}
		})
	}
}

func TestNewestReleaseDescribesTheRollout(t *testing.T) {
	words := to[string]
	before := v1alpha1.RolloutStatus{Title: words("Old"), Source: words("https://example.com/old")}
	newest := described("1.1.0", "bb")
	newest.Title, newest.Description = "Shop", "Sells things."
	for name, test := range map[string]struct {
		known []description
		want  v1alpha1.RolloutStatus
	}{
		"once it is known": {
			[]description{described("1.0.0", "aa"), newest},
			v1alpha1.RolloutStatus{ArtifactType: words("application/example"), Title: words("Shop"), Description: words("Sells things.")},
		},
		"until then the one before does": {[]description{described("1.0.0", "aa")}, before},
	} {
		t.Run(name, func(t *testing.T) {
			status := before
			status.AvailableReleases = fixture.Releases("1.0.0", "1.1.0")
			promotion.ResolveMetadata(given(rollout().Ledger("1.0.0", "1.1.0")).knows(test.known...).in(), &status)
			status.AvailableReleases = nil
			diff(t, test.want, status)
		})
	}
}

func TestMetadataRequests(t *testing.T) {
	describes := func(r *fixture.RolloutBuilder) *situation {
		s := given(r)
		s.input.Rollout.Status.ArtifactType = to("application/example")
		return s
	}
	for name, test := range map[string]struct {
		given *situation
		want  []v1alpha1.VersionInfo
	}{
		"the releases of the ledger, the newest first, then those of the history": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Succeeded(), entry("0.9.0").Succeeded())).latest("1.2.0"),
			fixture.Releases("1.2.0", "1.1.0", "1.0.0", "0.9.0"),
		},
		"nothing once all is known": {
			describes(rollout().Releases(full("1.0.0", "aa")).History(entry("1.0.0").Succeeded().Version(full("1.0.0", "aa")))), nil,
		},
		"the newest as long as nothing describes the Rollout": {
			given(rollout().Releases(full("1.0.0", "aa"), full("1.1.0", "bb"))), []v1alpha1.VersionInfo{full("1.1.0", "bb")},
		},
		"a tag that moved": {
			describes(rollout().Releases(full("1.0.0", "aa")).History(entry("1.0.0").Succeeded().Version(full("1.0.0", "aa")))).
				names(sha("1.0.0", "bb")), []v1alpha1.VersionInfo{sha("1.0.0", "bb")},
		},
		"of a tag that moved both images, while neither is known": {
			describes(rollout().Releases(sha("1.0.0", "aa")).History(entry("1.0.0").Succeeded().Version(sha("1.0.0", "aa")))).
				names(sha("1.0.0", "bb")), []v1alpha1.VersionInfo{sha("1.0.0", "bb"), sha("1.0.0", "aa")},
		},
		"what has either a revision or an age": {
			describes(rollout().Releases(release("1.0.0").Revision("main").Obj(), release("1.1.0").Created(eleven).Obj())), nil,
		},
		"nothing that cannot be a tag": {
			describes(rollout().History(entry("not a tag").Succeeded())), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, promotion.MissingMetadata(test.given.in()))
		})
	}
}

func TestMetadataIsWorthAWrite(t *testing.T) {
	type result struct {
		MetadataResolved bool
		RecheckAt        time.Time
	}
	deploying := func() *situation {
		return given(rollout().Ledger("1.0.0").History(entry("1.0.0").Deploying())).targets(pending("shop"))
	}
	for name, test := range map[string]struct {
		given *situation
		want  result
	}{
		"at once where nothing is under way": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded())).knows(described("1.0.0", "aa")),
			result{MetadataResolved: true},
		},
		"not if it says nothing new": {
			given(rollout().Releases(sha("1.0.0", "aa")).History(entry("1.0.0").Succeeded().Version(sha("1.0.0", "aa")))).
				knows(bareImage("1.0.0", "aa")),
			result{},
		},
		"a while after a promotion has begun": {
			deploying().knows(described("1.0.0", "aa")).at(eleven.Add(time.Second)),
			result{RecheckAt: eleven.Add(10 * time.Second)},
		},
		"by itself if that is still under way then": {
			deploying().knows(described("1.0.0", "aa")).at(eleven.Add(10 * time.Second)),
			result{MetadataResolved: true},
		},
		"and nothing is to be looked at if nothing is known": {
			deploying().at(eleven.Add(time.Second)), result{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, result{d.MetadataResolved, d.RecheckAt})
		})
	}
}

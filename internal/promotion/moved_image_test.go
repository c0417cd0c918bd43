// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	oldImage = "registry.example.com/old"
	newImage = "registry.example.com/new"
)

// contentOf are digests of one tag in the two images.
var contentOf = map[string]string{"old": badDigest, "new": "sha256:" + strings.Repeat("ab", 32)}

// of sets the image that the policy ranks.
func (s *situation) of(image string) *situation {
	s.input.Policy.Image = image
	return s
}

// named sets the image of the release that the policy names.
func (s *situation) named(image string) *situation {
	s.input.Policy.LatestImage = image
	return s
}

// moved is a Rollout whose ImageRepository has another image now, with smaller numbers.
func moved() *fixture.RolloutBuilder {
	return rollout().Ledger("9.8.0", "9.9.9").History(entry("9.9.9").Image(oldImage).Succeeded(), entry("9.8.0").Image(oldImage).Succeeded())
}

func TestMovedImage(t *testing.T) {
	unknown := "ImagePolicy shop ranks registry.example.com/new, and 9.9.9 is of registry.example.com/old: pin the release to continue from"
	for name, test := range map[string]struct {
		given    *situation
		promotes string
		messages map[string]string // of the only hold; empty without one
		ledger   []string
	}{
		"every candidate is held, and nothing is known of the old image": {
			given(moved()).of(newImage).latest("1.1.0").scanned("1.0.0", "1.1.0"), "",
			map[string]string{"1.1.0": unknown, "1.0.0": unknown}, []string{"1.0.0", "1.1.0"},
		},
		"with Next, too": {
			given(moved().Strategy(v1alpha1.ReleaseNext)).of(newImage).latest("1.1.0").scanned("1.0.0", "1.1.0"), "",
			map[string]string{"1.1.0": unknown, "1.0.0": unknown}, []string{"1.0.0", "1.1.0"},
		},
		"a higher number is held, too": {
			given(moved()).of(newImage).latest("10.0.0"), "", map[string]string{"10.0.0": unknown}, []string{"10.0.0"},
		},
		"the same tag of the new image is held, too": {
			given(moved()).of(newImage).latest("9.9.9"), "", map[string]string{"9.9.9": unknown}, []string{"9.9.9"},
		},
		"a pin goes on from the new image": {
			given(moved().Pin("1.0.0")).of(newImage).latest("1.0.0"), "1.0.0", nil, []string{"1.0.0"},
		},
		"so does a pin to the same tag": {
			given(moved().Pin("9.9.9")).of(newImage).latest("9.9.9"), "9.9.9", nil, []string{"9.9.9"},
		},
		"after that, only the new image counts": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Image(newImage).Succeeded(), entry("9.9.9").Image(oldImage).Succeeded())).
				of(newImage).latest("1.1.0"), "1.1.0", map[string]string{"1.1.0": ""}, []string{"1.0.0", "1.1.0"},
		},
		"a custom build of the new image does not bring the old one back": {
			given(rollout().Ledger("1.0.0").History(entry("hotfix").Image(newImage).Succeeded(), entry("9.9.9").Image(oldImage).Succeeded())).
				of(newImage).latest("1.0.0"), "1.0.0", map[string]string{"1.0.0": ""}, []string{"1.0.0"},
		},
		"a failure of the old image is none of the new one": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Image(newImage).Succeeded(), entry("1.1.0").Image(oldImage).Failed())).
				of(newImage).latest("1.1.0"), "1.1.0", map[string]string{"1.1.0": ""}, []string{"1.0.0", "1.1.0"},
		},
		"an image written differently is the same": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Image("docker.io/acme/shop").Succeeded())).
				of("index.docker.io/acme/shop").latest("1.1.0"), "1.1.0", map[string]string{"1.1.0": ""}, []string{"1.0.0", "1.1.0"},
		},
		"entries without an image count as before": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded())).of(newImage).latest("1.1.0"), "1.1.0",
			map[string]string{"1.1.0": ""}, []string{"1.0.0", "1.1.0"},
		},
		"while the policy still names a release of the old image, nothing has moved": {
			given(moved().Ledger("9.9.9", "10.0.0")).of(newImage).named(oldImage).latest("10.0.0"), "10.0.0",
			map[string]string{"10.0.0": ""}, []string{"9.9.9", "10.0.0"},
		},
		"while the image of the policy is not known, it counts as the same": {
			given(moved()).latest("10.0.0"), "10.0.0", map[string]string{"10.0.0": ""}, []string{"9.8.0", "9.9.9", "10.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.promotes, d.Release.Tag)
			diff(t, test.ledger, tags(d.Ledger))
			if test.messages == nil {
				return
			}
			got := map[string]string{}
			for _, verdict := range d.Candidates {
				got[verdict.Release.Tag] = ""
				for _, hold := range verdict.Holds {
					diff(t, v1alpha1.PositionUnknownReason, hold.Reason)
					got[verdict.Release.Tag] += hold.Message
				}
			}
			diff(t, test.messages, got)
		})
	}
}

func TestRequestsForATagThatIsDeployedFromAnotherImage(t *testing.T) {
	baking := func() *fixture.RolloutBuilder {
		return rollout().BakeTime(2 * time.Hour).Ledger("9.9.9").History(entry("9.9.9").Image(oldImage).Baking(eleven))
	}
	for name, test := range map[string]struct {
		given *situation
		want  settled
	}{
		"a force promotes it": {
			given(moved().Annotate(force, "9.9.9")), settled{Does: "Promote 9.9.9", Consumed: []string{force}},
		},
		"a force supersedes it": {
			given(baking().Annotate(force, "9.9.9")), settled{Does: "Supersede 9.9.9", Consumed: []string{force}},
		},
		"to promote it waits for what holds it": {
			given(moved().Annotate(v1alpha1.PromoteAnnotation, "9.9.9")).environments(prod().manual()), settled{Does: "Nothing"},
		},
		"also while the other one bakes": {
			given(baking().Annotate(v1alpha1.PromoteAnnotation, "9.9.9")).environments(prod().manual()), settled{Does: "Wait"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, settledBy(promotion.Decide(test.given.of(newImage).latest("9.9.9").in())))
		})
	}
}

func TestMovedImageIsNoMovedTag(t *testing.T) {
	shop := rollout().Releases(release("1.0.0").Digest(contentOf["old"]).Obj()).History(entry("1.0.0").Version(release("1.0.0").Digest(contentOf["old"]).Obj()).Image(oldImage).Succeeded())
	d := promotion.Decide(given(shop).of(newImage).names(release("1.0.0").Digest(contentOf["new"]).Obj()).in())
	if len(d.Notes) > 0 {
		t.Errorf("notes: %v", d.Notes)
	}
	diff(t, []v1alpha1.VersionInfo{release("1.0.0").Digest(contentOf["new"]).Obj()}, d.Ledger)
}

func TestPromotionsRecordTheirImage(t *testing.T) {
	for image, want := range map[string]string{
		newImage: newImage, "": "", "registry.example.com/" + strings.Repeat("a", 600): "", // the API server would reject it
	} {
		in := given(rollout().Ledger("1.0.0")).of(image).in()
		history, err := promotion.Record(in, promotion.Decide(in))
		if err != nil {
			t.Fatal(err)
		}
		diff(t, want, history[0].Image)
	}
}

func TestRollbackNeverGoesToATagOfAnotherImage(t *testing.T) {
	failed := func(image string) *fixture.EntryBuilder {
		return entry("1.1.0").Image(image).Failed().Due(v1alpha1.CauseHealthCheckFailed, noon)
	}
	for name, test := range map[string]struct {
		policy  string
		history []*fixture.EntryBuilder
		want    string
	}{
		"but to the last one of the same image": {
			newImage, []*fixture.EntryBuilder{failed(newImage), entry("9.9.9").Image(oldImage).Succeeded(), entry("1.0.0").Image(newImage).Succeeded()}, "1.0.0",
		},
		"nor if there is no other": {
			newImage, []*fixture.EntryBuilder{failed(newImage), entry("9.9.9").Image(oldImage).Succeeded()}, "",
		},
		"nor after the image has moved": {
			newImage, []*fixture.EntryBuilder{failed(oldImage), entry("9.9.9").Image(oldImage).Succeeded()}, "",
		},
		"nor while the policy cannot be read": {
			"", []*fixture.EntryBuilder{failed(newImage), entry("9.9.9").Image(oldImage).Succeeded()}, "",
		},
		"but to one whose image is not known": {
			newImage, []*fixture.EntryBuilder{failed(newImage), entry("0.9.0").Succeeded()}, "0.9.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			shop := rollout().RollsBack().
				Ledger("0.9.0", "1.0.0", "1.1.0").History(test.history...)
			d := promotion.Decide(given(shop).of(test.policy).latest("1.1.0").in())
			diff(t, test.want, d.Release.Tag)
		})
	}
}

func TestFailureOfAnotherImageIsReportedAsThatOfItsOwn(t *testing.T) {
	report := func(failed *fixture.EntryBuilder) *quarantined.Report {
		shop := rollout().Quarantine().Releases(release("1.0.0").Digest(contentOf["new"]).Obj()).History(failed.BakeEnd(noon).Due(v1alpha1.CauseHealthCheckFailed, noon))
		return promotion.DueReport(given(shop).of(newImage).names(release("1.0.0").Digest(contentOf["new"]).Obj()).in())
	}
	known := report(entry("1.0.0").Version(release("1.0.0").Digest(contentOf["old"]).Obj()).Image(oldImage).Failed())
	if known == nil || known.Digest != contentOf["old"] || known.Image != oldImage {
		t.Errorf("report: %+v", known)
	}
	if unknown := report(entry("1.0.0").Image(oldImage).Failed()); unknown != nil {
		t.Errorf("the content of the new image is reported: %+v", unknown)
	}
}

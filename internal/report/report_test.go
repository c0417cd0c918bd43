// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var (
	noon    = &metav1.Time{Time: fixture.Noon}
	staging = report.Source{Application: "shop", Environment: "staging", Cluster: "staging-eu", Namespace: "shop", Rollout: "shop"}
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func soaked(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}

// everything is a report that uses each field.
func everything() report.Report {
	return report.Report{
		Source: staging, ClusterUID: "5f2c", Sequence: 1788000123, Created: *noon,
		Upstreams: []environmentsv1.Relationship{{Environment: "dev", Type: environmentsv1.After}},
		Releases: []environmentsv1.Release{
			{Tag: "1.4.0", Digest: digestOf("1.4.0"), Revision: "main@sha1:4", ID: 4, State: v1alpha1.BakeSucceeded, Since: noon,
				Evidence: environmentsv1.EvidenceBaked, Current: true, Soaked: soaked(26 * time.Hour), LongestSoak: soaked(28 * time.Hour)},
			{Tag: "1.3.0", Digest: digestOf("1.3.0"), ID: 3, State: v1alpha1.BakeFailed, Since: noon, Message: "3 of 9 tests fail"},
			{Tag: "1.2.0", Digest: digestOf("1.2.0"), ID: 2, State: v1alpha1.BakeSucceeded, Evidence: environmentsv1.EvidenceApplied,
				Soaked: soaked(0), Withdrawn: "went back to 1.1.0, by bob", Unhealthy: "HealthCheck shop/smoke"},
			{Tag: "1.1.0", ID: 1, State: v1alpha1.BakeInProgress, Since: noon, Until: noon},
			{Tag: "1.0.0", State: v1alpha1.BakeDeploying},
		},
	}
}

func sign(t *testing.T, r report.Report, key report.SigningKey) []byte {
	t.Helper()
	envelope, err := report.Sign(r, key)
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

func TestReportSaysTheSameOnTheOtherSide(t *testing.T) {
	for name, r := range map[string]report.Report{
		"everything":         everything(),
		"nothing is running": {Source: staging, Sequence: 1},
	} {
		for kind, key := range signers(t) {
			t.Run(name+", "+kind, func(t *testing.T) {
				got, err := report.Verify(sign(t, r, key), key.Trusted(), report.Expected{Source: staging, Sequence: r.Sequence})
				diff(t, nil, err)
				diff(t, []string{key.String()}, got.SignedBy)
				got.SignedBy = nil
				diff(t, r, got)
			})
		}
	}
}

// TestStatement shows a report as other tools for in-toto see it.
func TestStatement(t *testing.T) {
	r := everything()
	r.Releases = r.Releases[:1]
	var envelope struct {
		PayloadType, Payload string
		Signatures           []struct{ KeyID, Sig string }
	}
	if err := json.Unmarshal(sign(t, r, ed25519Key(t, 1)), &envelope); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	diff(t, nil, err)
	diff(t, "application/vnd.in-toto+json", envelope.PayloadType)
	diff(t, 1, len(envelope.Signatures))
	var statement any
	diff(t, nil, json.Unmarshal(payload, &statement))
	diff(t, map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"name": "1.4.0", "digest": map[string]any{"sha256": digestOf("1.4.0")[7:]}}},
		"predicateType": "https://github.com/fluxrollouts/rollout-controller/report/v1",
		"predicate": map[string]any{
			"application": "shop", "environment": "staging", "cluster": "staging-eu", "clusterUID": "5f2c",
			"namespace": "shop", "rollout": "shop", "sequence": 1788000123., "createdTime": fixture.Noon.UTC().Format(time.RFC3339),
			"upstreams": []any{map[string]any{"environment": "dev", "type": "After"}},
			"releases": []any{map[string]any{
				"tag": "1.4.0", "digest": digestOf("1.4.0"), "revision": "main@sha1:4", "id": 4., "state": "Succeeded",
				"since": fixture.Noon.UTC().Format(time.RFC3339), "evidence": "Baked", "current": true, "healthyFor": "26h0m0s", "longestSoak": "28h0m0s",
			}},
		},
	}, statement)
}

func TestSameReportHasTheSameBytes(t *testing.T) {
	for kind, key := range signers(t) {
		t.Run(kind, func(t *testing.T) {
			diff(t, string(sign(t, everything(), key)), string(sign(t, everything(), key)))
		})
	}
}

func TestDigestIsThatOfWhatIsSaid(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*report.Report)
		same   bool
	}{
		"a later number":   {func(r *report.Report) { r.Sequence++ }, true},
		"a later time":     {func(r *report.Report) { r.Created = metav1.Time{Time: fixture.Noon.Add(time.Hour)} }, true},
		"the soak goes on": {func(r *report.Report) { r.Releases[0].Soaked = soaked(27 * time.Hour) }, true},
		"the soak was interrupted": {func(r *report.Report) {
			r.Releases[0].Soaked, r.Releases[0].HealthySince = soaked(0), &metav1.Time{Time: fixture.Noon}
		}, false},
		"its longest soak no longer counts": {func(r *report.Report) { r.Releases[0].LongestSoak = nil }, false},
		"another soak of a release":         {func(r *report.Report) { r.Releases[2].Soaked = soaked(time.Second) }, false},
		"another state":                     {func(r *report.Report) { r.Releases[0].State = v1alpha1.BakeFailed }, false},
		"it is unhealthy":                   {func(r *report.Report) { r.Releases[0].Unhealthy = "HealthCheck shop/smoke" }, false},
		"one release less":                  {func(r *report.Report) { r.Releases = r.Releases[:4] }, false},
		"another upstream":                  {func(r *report.Report) { r.Upstreams[0].Environment = "qa" }, false},
		"another environment":               {func(r *report.Report) { r.Environment = "prod" }, false},
		"another cluster":                   {func(r *report.Report) { r.ClusterUID = "6a1d" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := everything()
			before := r.Digest()
			test.change(&r)
			diff(t, test.same, before == r.Digest())
		})
	}
	r := everything()
	_ = r.Digest()
	diff(t, everything(), r)
}

func TestLargeReportLosesItsOldestReleases(t *testing.T) {
	r := report.Report{Source: staging, Sequence: 1}
	for i := range environment.MostReleases {
		long := fmt.Sprint(i) + strings.Repeat("<é>", 300)
		r.Releases = append(r.Releases, environmentsv1.Release{
			Tag: fmt.Sprintf("1.%d.0-%s", 99-i, strings.Repeat("x", 100)), Digest: digestOf(long), Revision: long, Current: i == 0,
			State: v1alpha1.BakeSucceeded, Message: long, Unhealthy: long, Withdrawn: long,
		})
	}
	key := ed25519Key(t, 1)
	envelope := sign(t, r, key)
	got, err := report.Verify(envelope, key.Trusted(), report.Expected{Source: staging})
	diff(t, nil, err)
	if len(envelope) > report.MostBytes || len(got.Releases) < 15 || len(got.Releases) == len(r.Releases) {
		t.Errorf("%d releases in %d bytes", len(got.Releases), len(envelope))
	}
	for i, release := range got.Releases {
		diff(t, r.Releases[i].Tag, release.Tag)
		diff(t, r.Releases[i].Digest, release.Digest)
	}
}

func TestSignWritesNothingThatOthersRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*report.Report)
		want   string
	}{
		"an unknown state": {
			func(r *report.Report) { r.Releases[0].State = "Paused" },
			`others would refuse the report: 1.4.0 is in state "Paused", which is unknown here: upgrade this controller`,
		},
		"no tag": {
			func(r *report.Report) { r.Releases[0].Tag = "" }, `others would refuse the report: "" cannot be a tag`,
		},
		"a long name": {
			func(r *report.Report) { r.Environment = strings.Repeat("x", report.MostBytes) },
			"encode the envelope: it has 88138 bytes, and only 65536 are read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := everything()
			test.change(&r)
			_, err := report.Sign(r, ed25519Key(t, 1))
			diff(t, test.want, fmt.Sprint(err))
		})
	}
	_, err := report.Sign(everything(), report.SigningKey{})
	diff(t, "sign the report: there is no key", fmt.Sprint(err))
}

func TestTag(t *testing.T) {
	long := strings.Repeat("shop.", 40) + "web"
	for _, test := range []struct{ namespace, rollout, want string }{
		{"shop", "shop", "shop.shop"},
		{"shop", "web.eu", "shop.web.eu"},
		{"shop", strings.Repeat("w", 123), "shop." + strings.Repeat("w", 123)},
		{"shop", long, "shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop.shop._915627aad1fc53f034bd2e988e59043d"},
	} {
		got := report.Tag(test.namespace, test.rollout)
		diff(t, test.want, got)
		if len(got) > 128 {
			t.Errorf("%s has %d characters", got, len(got))
		}
	}
	if report.Tag("shop", long) == report.Tag("shop", long+"s") {
		t.Error("two Rollouts have one tag")
	}
}

func TestSequenceOnlyGrows(t *testing.T) {
	for name, test := range map[string]struct{ previous, want int64 }{
		"the first report":           {0, fixture.Noon.Unix()},
		"an hour later":              {fixture.Noon.Unix() - 3600, fixture.Noon.Unix()},
		"in the same second":         {fixture.Noon.Unix(), fixture.Noon.Unix() + 1},
		"after a clock was set back": {fixture.Noon.Unix() + 3600, fixture.Noon.Unix() + 3601},
		"after a clock was in 2099":  {fixture.Noon.AddDate(70, 0, 0).Unix(), fixture.Noon.Unix()},
		"after the highest number":   {math.MaxInt64, fixture.Noon.Unix()},
	} {
		t.Run(name, func(t *testing.T) { diff(t, test.want, report.Sequence(test.previous, fixture.Noon)) })
	}
}

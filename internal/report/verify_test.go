// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const inToto = "application/vnd.in-toto+json"

// seal signs any payload, as somebody with a key can.
func seal(tb testing.TB, kind string, payload []byte, keys ...report.SigningKey) []byte {
	tb.Helper()
	var signers []dsse.Signer
	for _, key := range keys {
		signers = append(signers, key)
	}
	signer, err := dsse.NewEnvelopeSigner(signers...)
	if err != nil {
		tb.Fatal(err)
	}
	envelope, err := signer.SignPayload(tb.Context(), kind, payload)
	if err != nil {
		tb.Fatal(err)
	}
	return encoded(tb, envelope)
}

func encoded(tb testing.TB, value any) []byte {
	tb.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// changed returns an envelope in which something was changed after it was signed.
func changed(t *testing.T, change func(*dsse.Envelope)) []byte {
	t.Helper()
	envelope := &dsse.Envelope{}
	if err := json.Unmarshal(sign(t, everything(), ed25519Key(t, 1)), envelope); err != nil {
		t.Fatal(err)
	}
	change(envelope)
	return encoded(t, envelope)
}

// written returns a signed report whose Statement was written by others. Texts are
// replaced in pairs.
func written(tb testing.TB, replaced ...string) []byte {
	tb.Helper()
	envelope := &dsse.Envelope{}
	text, err := report.Sign(everything(), ed25519Key(tb, 1))
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(text, envelope); err != nil {
		tb.Fatal(err)
	}
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		tb.Fatal(err)
	}
	other := strings.NewReplacer(replaced...).Replace(string(payload))
	if len(replaced) > 0 && other == string(payload) {
		tb.Fatalf("%s does not contain %s", payload, replaced[0])
	}
	return seal(tb, inToto, []byte(other), ed25519Key(tb, 1))
}

func unsigned(e *dsse.Envelope) { e.Signatures = nil }

func expecting(change func(*report.Expected)) report.Expected {
	expected := report.Expected{Source: staging, Sequence: everything().Sequence}
	change(&expected)
	return expected
}

func TestVerifyRefuses(t *testing.T) {
	many := func(e *dsse.Envelope) {
		for range 9 {
			e.Signatures = append(e.Signatures, e.Signatures[0])
		}
	}
	as := func(change func(*report.Expected)) func(*report.Expected) { return change }
	releases := `{"tag":"1.0.0","state":"Deploying"}`
	for name, test := range map[string]struct {
		envelope []byte
		expected func(*report.Expected)
		reason   report.Reason
		message  string
	}{
		"too large":    {[]byte(strings.Repeat(" ", 65<<10)), nil, report.TooLarge, "it has 66560 bytes, and only 65536 are read"},
		"nothing":      {nil, nil, report.Unreadable, "it is not a signed envelope"},
		"other JSON":   {[]byte(`["a"]`), nil, report.Unreadable, "it is not a signed envelope"},
		"no JSON":      {[]byte(`<html>`), nil, report.Unreadable, "it is not a signed envelope"},
		"another type": {seal(t, "text/plain", []byte("x"), ed25519Key(t, 1)), nil, report.Unreadable, `it contains "text/plain", not application/vnd.in-toto+json`},
		"unsigned":     {changed(t, unsigned), nil, report.Unsigned, "it is not signed"},
		"many signatures": {
			changed(t, many), nil, report.Untrusted, "it has 10 signatures, and only 8 are read",
		},
		"another key": {sign(t, everything(), ed25519Key(t, 3)), nil, report.Untrusted, "no key of promotion-keys for cluster staging-eu signed it"},
		"another key by the name of a trusted one": {
			changed(t, func(e *dsse.Envelope) {
				var other dsse.Envelope
				_ = json.Unmarshal(sign(t, everything(), ed25519Key(t, 3)), &other)
				e.Signatures[0].Sig = other.Signatures[0].Sig
			}), nil, report.Untrusted, "no key of promotion-keys for cluster staging-eu signed it",
		},
		"changed afterwards": {
			changed(t, func(e *dsse.Envelope) { e.Payload = "e30=" }), nil, report.Untrusted, "no key of promotion-keys for cluster staging-eu signed it",
		},
		"no base64": {
			changed(t, func(e *dsse.Envelope) { e.Payload = "?" }), nil, report.Untrusted, "no key of promotion-keys for cluster staging-eu signed it",
		},
		"a signature that is none": {
			changed(t, func(e *dsse.Envelope) { e.Signatures[0].Sig = "" }), nil, report.Untrusted, "no key of promotion-keys for cluster staging-eu signed it",
		},
		"no Statement":          {seal(t, inToto, []byte(`[]`), ed25519Key(t, 1)), nil, report.Unreadable, "it is not an in-toto Statement"},
		"an older Statement":    {written(t, "Statement/v1", "Statement/v0.1"), nil, report.Unreadable, `it is of type "https://in-toto.io/Statement/v0.1", not https://in-toto.io/Statement/v1`},
		"another Statement":     {written(t, "https://github.com/fluxrollouts/rollout-controller/report/v1", "https://slsa.dev/provenance/v1"), nil, report.Unreadable, `it is a Statement of type "https://slsa.dev/provenance/v1", not a report`},
		"a newer format":        {written(t, "report/v1", "report/v2"), nil, report.NewerFormat, `it is a report of format "v2", which is unknown here: upgrade this controller`},
		"a predicate of no use": {written(t, `"sequence":1788000123`, `"sequence":"x"`), nil, report.Unreadable, "it is not a report of format v1"},

		"another application": {written(t), as(func(e *report.Expected) { e.Application = "mail" }), report.OtherSource, `it is about application "shop", not "mail"`},
		"another environment": {written(t), as(func(e *report.Expected) { e.Environment = "qa" }), report.OtherSource, `it is about environment "staging", not "qa"`},
		"another cluster":     {written(t), as(func(e *report.Expected) { e.Cluster = "staging-us" }), report.OtherSource, `it is about cluster "staging-eu", not "staging-us"`},
		"another namespace":   {written(t), as(func(e *report.Expected) { e.Namespace = "mail" }), report.OtherSource, `it is about namespace "shop", not "mail"`},
		"another Rollout":     {written(t), as(func(e *report.Expected) { e.Rollout = "web" }), report.OtherSource, `it is about Rollout "shop", not "web"`},
		"the name of a cluster in another case": {
			written(t, `"cluster":"staging-eu"`, `"cluster":"Staging-EU"`), nil, report.OtherSource, `it is about cluster "Staging-EU", not "staging-eu"`,
		},
		"a long name": {
			written(t, `"cluster":"staging-eu"`, `"cluster":"`+strings.Repeat("x", 1000)+`"`), nil, report.OtherSource,
			`it is about cluster "` + strings.Repeat("x", 41) + " … " + strings.Repeat("x", 20) + `", not "staging-eu"`,
		},
		"an older one": {
			written(t), as(func(e *report.Expected) { e.Sequence++ }), report.Outdated,
			"its sequence 1788000123 is lower than 1788000124, which was verified before",
		},
		"a number below zero": {
			written(t, `"sequence":1788000123`, `"sequence":-1`), as(func(e *report.Expected) { e.Sequence = 0 }), report.Outdated,
			"its sequence -1 is lower than 0, which was verified before",
		},

		"an unknown state": {
			written(t, `"state":"InProgress"`, `"state":"Canary"`), nil, report.NewerFormat,
			`1.1.0 is in state "Canary", which is unknown here: upgrade this controller`,
		},
		"no state": {
			written(t, `"state":"InProgress"`, `"state":""`), nil, report.NewerFormat,
			`1.1.0 is in state "", which is unknown here: upgrade this controller`,
		},
		"an unknown evidence": {
			written(t, `"evidence":"Baked"`, `"evidence":"Burned"`), nil, report.NewerFormat,
			`1.4.0 succeeded with evidence "Burned", which is unknown here: upgrade this controller`,
		},
		"an unknown relationship": {
			written(t, `"type":"After"`, `"type":"Before"`), nil, report.NewerFormat,
			`it has an upstream of type "Before", which is unknown here: upgrade this controller`,
		},
		"many releases": {
			written(t, releases, strings.Repeat(releases+",", 27)+releases), nil, report.Unreadable, "it has 32 releases, and only 30 are read",
		},
		"many upstreams": {
			written(t, `{"environment":"dev","type":"After"}`, strings.Repeat(`{"environment":"dev","type":"After"},`, 16)+`{}`), nil,
			report.Unreadable, "it has 17 upstreams, and only 16 are read",
		},
		"no tag": {
			written(t, `"tag":"1.1.0"`, `"tag":"../1"`), nil, report.Unreadable, `"../1" cannot be a tag`,
		},
		"no digest": {
			written(t, `"digest":"`+digestOf("1.3.0")+`"`, `"digest":"sha256:00"`), nil, report.Unreadable,
			`"sha256:00", the digest of 1.3.0, cannot be a digest`,
		},
		"a digest twice": {
			written(t, digestOf("1.3.0"), digestOf("1.4.0")), nil, report.Unreadable,
			"it has two releases with the digest " + digestOf("1.4.0"),
		},
		"another current release": {
			written(t, `"state":"Failed"`, `"state":"Failed","current":true`), nil, report.Unreadable,
			"1.3.0 is current, and not the first release",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.expected == nil {
				test.expected = func(*report.Expected) {}
			}
			keys := trust(t, map[string][]byte{"any.pub": publicPEM(t, private(1)), "qa.pub": publicPEM(t, private(2))})
			got, err := report.Verify(test.envelope, keys, expecting(test.expected))
			diff(t, report.Report{}, got)
			var refusal *report.Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("got %v", err)
			}
			diff(t, report.Refusal{Reason: test.reason, Message: test.message}, *refusal)
		})
	}
}

func TestNoKeyTrustsNothing(t *testing.T) {
	for _, keys := range []report.TrustedKeys{{}, report.SigningKey{}.Trusted()} {
		if _, err := report.Verify(written(t), keys, expecting(func(*report.Expected) {})); err == nil {
			t.Errorf("%v trusts a report", keys)
		}
	}
}

func TestVerifyAcceptsWhatALaterVersionAdds(t *testing.T) {
	envelope := written(t, `"sequence"`, `"later":{"a":[1]},"sequence"`, `"tag":"1.1.0"`, `"later":1,"tag":"1.1.0"`)
	got, err := report.Verify(envelope, ed25519Key(t, 1).Trusted(), report.Expected{Source: staging})
	diff(t, nil, err)
	got.SignedBy = nil
	diff(t, everything(), got)
}

func TestVerifyAcceptsAReportOfAVersionThatKnewLess(t *testing.T) {
	envelope := written(t, `,"longestSoak":"28h0m0s"`, ``)
	got, err := report.Verify(envelope, ed25519Key(t, 1).Trusted(), report.Expected{Source: staging})
	diff(t, nil, err)
	diff(t, (*metav1.Duration)(nil), got.Releases[0].LongestSoak)
	diff(t, 26*time.Hour, got.Releases[0].Longest())
}

func TestVerifyAcceptsASecondSignature(t *testing.T) {
	envelope := &dsse.Envelope{}
	diff(t, nil, json.Unmarshal(written(t), envelope))
	payload, err := envelope.DecodeB64Payload()
	diff(t, nil, err)
	both := seal(t, inToto, payload, ed25519Key(t, 3), ed25519Key(t, 1))
	_, err = report.Verify(both, ed25519Key(t, 1).Trusted(), report.Expected{Source: staging})
	diff(t, nil, err)
}

func TestTextsAndTimesOfAReportCanBeStored(t *testing.T) {
	long, forever := strings.Repeat("x", 2000), `"since":"9999-12-31T23:59:59-23:59"`
	envelope := written(t,
		"3 of 9 tests fail", long, "main@sha1:4", long, "HealthCheck shop/smoke", long, "went back to 1.1.0, by bob", long,
		`"clusterUID":"5f2c"`, `"clusterUID":"`+long+`"`, `"environment":"dev"`, `"environment":"`+long+`"`,
		`"createdTime":"`, `"createdTime":"0001-01-01T00:00:00Z","x":"`, `"healthyFor":"26h0m0s"`, `"healthyFor":"2000000h"`, `"longestSoak":"28h0m0s"`, `"longestSoak":"2000000h"`,
		`"healthyFor":"0s"`, `"healthyFor":"-1h"`, `"until":"`, forever+`,"x":"`)
	got, err := report.Verify(envelope, ed25519Key(t, 1).Trusted(), report.Expected{Source: staging})
	diff(t, nil, err)
	checkStorable(t, got)
	diff(t, 256, len([]rune(got.Releases[1].Message)))
	diff(t, time.Duration(0), got.Releases[2].Soaked.Duration)
	diff(t, 10*365*24*time.Hour, got.Releases[0].Soaked.Duration)
	diff(t, 10*365*24*time.Hour, got.Releases[0].LongestSoak.Duration)
	diff(t, (*metav1.Time)(nil), got.Releases[3].Since)
	diff(t, true, got.Created.IsZero())
}

func checkStorable(t *testing.T, r report.Report) {
	t.Helper()
	if size := len(encoded(t, r.Releases)); size > environment.MostReleases*2400 || len(r.Releases) > environment.MostReleases {
		t.Errorf("%d releases have %d bytes", len(r.Releases), size)
	}
	if len(r.Upstreams) > 16 || len(r.ClusterUID) > 2000 {
		t.Errorf("%d upstreams, %d bytes of UID", len(r.Upstreams), len(r.ClusterUID))
	}
	for _, release := range r.Releases {
		for _, at := range []*metav1.Time{release.Since, release.Until} {
			if at != nil && (at.UTC().Year() < 1970 || at.UTC().Year() > 9999) {
				t.Errorf("%s cannot be stored", at)
			}
		}
		if release.Soaked != nil && release.Soaked.Duration < 0 || release.State == "" {
			t.Errorf("%+v cannot be", release)
		}
	}
}

// FuzzVerify passes anything to the reader, as whoever can write to the registry does. It
// has no key.
func FuzzVerify(f *testing.F) {
	good := written(f)
	f.Add(good)
	for _, text := range []string{``, `{}`, `null`, `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":""},{"keyid":"x"}]}`} {
		f.Add([]byte(text))
	}
	keys := ed25519Key(f, 1).Trusted()
	f.Fuzz(func(t *testing.T, envelope []byte) {
		got, err := report.Verify(envelope, keys, report.Expected{Source: staging})
		if err == nil {
			got.SignedBy = nil
			diff(t, everything(), got) // nobody can say anything else without the key
		}
		if claim, err := report.Peek(envelope); err != nil && claim != (report.Claim{}) {
			t.Error(claim, err)
		}
	})
}

// FuzzStatement passes anything to the reader that a trusted key has signed.
func FuzzStatement(f *testing.F) {
	envelope := &dsse.Envelope{}
	if err := json.Unmarshal(written(f), envelope); err != nil {
		f.Fatal(err)
	}
	good, err := envelope.DecodeB64Payload()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, text := range []string{`{}`, `null`, `[]`, `{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://github.com/fluxrollouts/rollout-controller/report/v1"}`} {
		f.Add([]byte(text))
	}
	f.Add([]byte(strings.ReplaceAll(string(good), fixture.Noon.UTC().Format(time.RFC3339), "9999-12-31T23:59:59-23:59")))
	key := ed25519Key(f, 1)
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, err := report.Verify(seal(t, inToto, payload, key), key.Trusted(), report.Expected{Source: staging})
		var refusal *report.Refusal
		switch {
		case err == nil:
			diff(t, staging, got.Source)
			checkStorable(t, got)
			_ = got.Digest()
		case !errors.As(err, &refusal) || refusal.Reason == "" || len(refusal.Message) > 1024:
			t.Errorf("%v is no refusal", err)
		}
	})
}

// Each state and each evidence that this version can record can be reported.
func TestEveryStateCanBeReported(t *testing.T) {
	for _, state := range []v1alpha1.BakeStatus{
		v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled,
	} {
		for _, evidence := range []environmentsv1.Evidence{
			"", environmentsv1.EvidenceNone, environmentsv1.EvidenceApplied, environmentsv1.EvidenceHealthy, environmentsv1.EvidenceBaked,
		} {
			t.Run(fmt.Sprint(state, evidence), func(t *testing.T) {
				r := report.Report{Source: staging, Releases: []environmentsv1.Release{{Tag: "1.0.0", State: state, Evidence: evidence}}}
				key := ed25519Key(t, 1)
				got, err := report.Verify(sign(t, r, key), key.Trusted(), report.Expected{Source: staging})
				diff(t, nil, err)
				got.SignedBy = nil
				diff(t, r, got)
			})
		}
	}
}

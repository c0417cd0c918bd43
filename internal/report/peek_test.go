// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/fluxrollouts/rollout-controller/internal/report"
)

func TestPeekTellsWhoseReportItIs(t *testing.T) {
	for name, envelope := range map[string][]byte{
		"by a known key":                   sign(t, everything(), ed25519Key(t, 1)),
		"by an unknown":                    sign(t, everything(), ed25519Key(t, 3)),
		"by a signature of something else": changed(t, func(e *dsse.Envelope) { e.Signatures[0].Sig = "AAAA" }),
	} {
		t.Run(name, func(t *testing.T) {
			claim, err := report.Peek(envelope)
			diff(t, nil, err)
			diff(t, report.Claim{Source: staging, ClusterUID: everything().ClusterUID}, claim)
		})
	}
	long := strings.Repeat("x", 300)
	claim, err := report.Peek(written(t, `"cluster":"staging-eu"`, `"cluster":"`+long+`"`))
	diff(t, nil, err)
	diff(t, strings.Repeat("x", 167)+" … "+strings.Repeat("x", 83), claim.Cluster)
}

func TestPeekReadsNoMoreThanVerify(t *testing.T) {
	for name, test := range map[string]struct {
		envelope []byte
		want     report.Reason
	}{
		"too large":       {[]byte(strings.Repeat(" ", 65<<10)), report.TooLarge},
		"no envelope":     {[]byte("<html>"), report.Unreadable},
		"unsigned":        {changed(t, unsigned), report.Unsigned},
		"broken content":  {changed(t, func(e *dsse.Envelope) { e.Payload = "?" }), report.Unreadable},
		"another content": {seal(t, inToto, []byte("[]"), ed25519Key(t, 1)), report.Unreadable},
		"a newer format":  {written(t, "report/v1", "report/v2"), report.NewerFormat},
	} {
		t.Run(name, func(t *testing.T) {
			claim, err := report.Peek(test.envelope)
			diff(t, report.Claim{}, claim)
			var refusal *report.Refusal
			if !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			diff(t, test.want, refusal.Reason)
		})
	}
}

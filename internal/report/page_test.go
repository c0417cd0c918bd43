// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// TestReportOnThePageIsOne reads the Statement on the page about the format, and writes it
// again: so the page shows each field as it is.
func TestReportOnThePageIsOne(t *testing.T) {
	page, err := os.ReadFile("../../docs/spec/environments/v1alpha1/reports.md")
	diff(t, nil, err)
	block := regexp.MustCompile("(?s)## The Statement\n\n```json\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no Statement")
	}
	key := ed25519Key(t, 1)
	read, err := report.Verify(seal(t, inToto, block[1], key), key.Trusted(), report.Expected{Source: staging})
	diff(t, nil, err)
	var envelope struct{ Payload string }
	diff(t, nil, json.Unmarshal(sign(t, read, key), &envelope))
	written, err := base64.StdEncoding.DecodeString(envelope.Payload)
	diff(t, nil, err)
	var want, got any
	diff(t, nil, json.Unmarshal(block[1], &want))
	diff(t, nil, json.Unmarshal(written, &got))
	diff(t, want, got)
}

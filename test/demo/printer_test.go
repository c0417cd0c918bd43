// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCommandsStayOnOneLine(t *testing.T) {
	var out bytes.Buffer
	p := &printer{out: &out, begun: time.Now()}
	command := "$ kubectl " + strings.Repeat("argument ", 20) + "end"
	p.show(line{you, order, command})
	if got := out.String(); !strings.HasSuffix(got, command+"\n") {
		t.Errorf("a command to be copied was broken up:\n%s", got)
	}
}

func TestLongLinesAreIndentedBelowTheirActor(t *testing.T) {
	var out bytes.Buffer
	p := &printer{out: &out, begun: time.Now()}
	p.show(line{rollout, plain, strings.Repeat("word ", 40)})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || len(lines[0]) > textWidth || !strings.HasPrefix(lines[1], margin+"word") {
		t.Errorf("got\n%s", out.String())
	}
	if at := strings.Index(lines[0], "word"); at != len(margin) {
		t.Errorf("the text begins in column %d, its next line in column %d", at, len(margin))
	}
}

func TestPlainOutputHasNoColours(t *testing.T) {
	var out bytes.Buffer
	p := &printer{out: &out, begun: time.Now()}
	p.step(1, "title", "intro")
	p.show(line{rollout, bad, "text"})
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("got %q", out.String())
	}
}

// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/pattern"
)

func TestOnly(t *testing.T) {
	for expression, want := range map[string]string{
		`^latest$`:                    "latest",
		`\Alatest\z`:                  "latest",
		`(?m)^latest$`:                "latest",
		`^(?P<tag>latest)$`:           "latest",
		`(^stable$)`:                  "stable",
		`^(?:^main$)$`:                "main",
		`^v1\.2$`:                     "v1.2",
		`^[l]atest$`:                  "latest",
		`^la{1}test$`:                 "latest",
		`^(ab){2}$`:                   "abab",
		`^(latest|latest)$`:           "latest",
		`^\blatest\b$`:                "latest",
		`(?i)^1-2$`:                   "1-2",
		`^(^latest$|^latest$)$`:       "latest",
		`latest`:                      "",
		`^latest`:                     "",
		`latest$`:                     "",
		`^latest|stable$`:             "",
		`^(latest|stable)$`:           "",
		`^latest?$`:                   "",
		`^lates.$`:                    "",
		`^[Ll]atest$`:                 "",
		`(?i)^latest$`:                "",
		`^(latest)*$`:                 "",
		`^a{1,2}$`:                    "",
		`^main-[0-9a-f]+$`:            "",
		`^la\btest$`:                  "",
		`^la^test$`:                   "",
		`^la$test$`:                   "",
		`^[^\x00-\x{10FFFF}]latest$`:  "",
		``:                            "",
		`(`:                           "",
		`^(((a{1000}){1000}){1000})$`: "",
	} {
		got, ok := pattern.Only(expression)
		if !ok {
			got = ""
		}
		if got != want || ok != (want != "") {
			t.Errorf("%s: only %q (%t), want %q", expression, got, ok, want)
		}
	}
}

// FuzzOnly checks that an expression of which one text is known matches that text, and none
// that is a little different.
func FuzzOnly(f *testing.F) {
	for _, expression := range []string{`^latest$`, `^(a|a)b{2}$`, `^[Ll]atest$`, `(?i)^x$`, `^\bx\b$`, `^(?:^x$)$`, `^x|x$`} {
		f.Add(expression, "latest")
	}
	f.Fuzz(func(t *testing.T, expression, other string) {
		only, ok := pattern.Only(expression)
		if !ok {
			return
		}
		re := regexp.MustCompile(expression)
		if !re.MatchString(only) {
			t.Errorf("%s does not match %q", expression, only)
		}
		for _, text := range []string{other, only + "x", "x" + only, only + only, ""} {
			if text != only && !strings.Contains(text, "\n") && re.MatchString(text) {
				t.Errorf("%s matches %q, and not only %q", expression, text, only)
			}
		}
	})
}

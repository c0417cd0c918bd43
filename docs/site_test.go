// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

var element = regexp.MustCompile(`<([a-zA-Z]+)[^>]*>`)

// The site evaluates what is between double braces, and cannot be built if it is none of
// its expressions. It leaves blocks of code alone, and code in a text where it is set up to.
func TestPagesHaveNoExpressionOfTheSite(t *testing.T) {
	inline := regexp.MustCompile("(?s)`[^`]+`")
	leavesCodeAlone := strings.Contains(readFile(t, "hack", "site", ".vitepress", "config.mjs"), "md.renderer.rules.code_inline")
	for name, text := range documents(t) {
		text = fence.ReplaceAllString(text, "")
		if leavesCodeAlone {
			text = inline.ReplaceAllString(text, "")
		}
		if !strings.HasPrefix(name, "docs/") {
			continue
		}
		if strings.Contains(text, "{{") {
			t.Errorf("%s has {{ outside of code: the site evaluates it", name)
		}
		for _, tag := range element.FindAllStringSubmatch(inline.ReplaceAllString(text, ""), -1) {
			if tag[1] != "br" {
				t.Errorf("%s has %s outside of code: the site takes it for an element that never ends", name, tag[0])
			}
		}
	}
}

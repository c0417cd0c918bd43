// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns a text that cannot control a terminal. Control characters and those that
// change the direction of text become visible ("\x1b"), line breaks and tabs become
// spaces, and bytes that are no UTF-8 the replacement character. See CVE-2021-25743 for
// what happens otherwise.
func Clean(text string) string {
	if !strings.ContainsFunc(text, isUnsafe) && utf8.ValidString(text) {
		return text
	}
	var clean strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			clean.WriteByte(' ')
		case isUnsafe(r):
			clean.WriteString(escape(r))
		default:
			clean.WriteRune(r)
		}
	}
	return clean.String()
}

// isUnsafe reports whether a character is a control or a format character (Unicode
// categories Cc and Cf, which has the bidirectional marks), or separates lines.
func isUnsafe(r rune) bool {
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) && r != zeroWidthJoiner ||
		unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// zeroWidthJoiner combines the parts of an emoji.
const zeroWidthJoiner = '\u200d'

func escape(r rune) string {
	const digits = "0123456789abcdef"
	if r < 0x100 {
		return `\x` + string(digits[r>>4]) + string(digits[r&15])
	}
	return `\u` + string(digits[r>>12&15]) + string(digits[r>>8&15]) + string(digits[r>>4&15]) + string(digits[r&15])
}

// Words returns some words with commas, and another word before the last one: "a, b and c".
func Words(all []string, last string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " " + last + " " + all[len(all)-1]
}

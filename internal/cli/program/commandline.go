// SPDX-License-Identifier: Apache-2.0

package program

import (
	"regexp"
	"strings"
)

// plainWord needs no quotes in any shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// CommandLine returns a command that can be copied to a shell. It names the namespace if
// the user did.
func (p *Program) CommandLine(namespace string, args ...string) string {
	words := []string{p.Called}
	for _, arg := range args {
		words = append(words, quote(arg))
	}
	if given := p.Kubeconfig.Namespace; given != nil && *given != "" {
		words = append(words, "-n", quote(namespace))
	}
	return strings.Join(words, " ")
}

// quote quotes a word for a POSIX shell.
func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

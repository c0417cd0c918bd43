// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longestReason is how many characters of CEL's own text a problem contains.
const longestReason = 200

// refusal is an error whose text is this project's own.
type refusal string

func (r refusal) Error() string { return string(r) }

const tooExpensive = refusal("it is too expensive: use fewer or smaller lists, or a simpler expression")

// failures are the errors of CEL that have an explanation. CEL's own text may quote the
// body of a response, so it is never shown.
var failures = []struct{ text, means string }{
	{"cost limit exceeded", string(tooExpensive)},
	{"interrupted", "it takes too long: use fewer or smaller lists"},
	{"no such attribute", "it uses a field that does not exist"},
	{"optional.none() dereference", "it uses an optional value that is empty: use orValue to say what then holds"},
	{"no such overload", "it uses a value of another type than it expects"},
	{"type conversion error", "it converts a value to a type that it does not fit"},
	{"divi", "it divides by zero"},
	{"modulus by zero", "it divides by zero"},
	{"overflow", "a number is too large"},
	{"index out of", "it uses an element that a list or text does not have"},
	{"error parsing regexp", "it uses an invalid regular expression"},
}

// inWords returns the error of an evaluation in the words of this project.
func (e *Expression) inWords(err error) error {
	var own refusal
	if errors.As(err, &own) {
		return own
	}
	text := err.Error()
	if _, key, found := strings.Cut(text, "no such key: "); found {
		return e.missing(key)
	}
	for _, failure := range failures {
		if strings.Contains(text, failure.text) {
			return refusal(failure.means)
		}
	}
	return refusal("it cannot be evaluated with the values that were measured")
}

// missing shows the key only if the expression contains it. Another key is computed, and
// may be text of another server.
func (e *Expression) missing(key string) error {
	if key == "" || len(key) > 64 || !strings.Contains(e.source, key) {
		return refusal("it uses a key that does not exist")
	}
	return refusal(fmt.Sprintf("it uses the key %q, which does not exist", key))
}

// firstOf returns the first of the errors of a compilation, and where it is.
func firstOf(issues *cel.Issues) error {
	all := issues.Errors()
	if len(all) == 0 {
		return refusal("it cannot be compiled")
	}
	first := all[0]
	message, _, _ := strings.Cut(first.Message, " (in container")
	message, _, _ = strings.Cut(message, " expecting {")
	message = truncate.Text(strings.ToValidUTF8(message, "?"), longestReason)
	if first.Location.Line() < 1 {
		return refusal(message)
	}
	return refusal(fmt.Sprintf("%s (line %d, column %d)", message, first.Location.Line(), first.Location.Column()+1))
}

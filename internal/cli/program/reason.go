// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// reason is the value of a flag that says why. Suggested commands have it empty, so that
// users write their own.
type reason struct{ text *string }

// ReasonVar adds the flag -m. It must say something.
func ReasonVar(flags *pflag.FlagSet, text *string, usage string) {
	flags.VarP(reason{text}, "message", "m", usage)
}

// Set implements pflag.Value.
func (r reason) Set(text string) error {
	if slices.Contains([]string{"", "...", "…"}, strings.TrimSpace(text)) {
		return errors.New("say why, in your own words")
	}
	*r.text = text
	return nil
}

func (r reason) String() string {
	if r.text == nil {
		return ""
	}
	return *r.text
}

// Type implements pflag.Value.
func (reason) Type() string { return "string" }

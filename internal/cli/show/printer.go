// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"io"
)

// Printer writes lines in a style.
type Printer struct {
	Style
	Out io.Writer
}

// Line writes a line. The format is that of package fmt. Arguments are cleaned, except a
// [Text] and numbers.
func (p Printer) Line(format string, args ...any) {
	safe := make([]any, len(args))
	for i, arg := range args {
		safe[i] = cleaned(arg)
	}
	fmt.Fprintf(p.Out, format+"\n", safe...)
}

func cleaned(arg any) any {
	switch arg := arg.(type) {
	case Text, int, int32, int64, bool:
		return arg
	case string:
		return Clean(arg)
	default: // errors, fmt.Stringers, named strings
		return Clean(fmt.Sprint(arg))
	}
}

// Sentence writes a line that begins with a sign.
func (p Printer) Sentence(sign Sign, format string, args ...any) {
	p.Line("%s "+format, append([]any{p.Sign(sign)}, args...)...)
}

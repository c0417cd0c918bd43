// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// man returns the man pages of section 1: one for the program, and one for each verb. They
// name the version and the day of made.
func man(root *cobra.Command, version string, made time.Time) map[string]string {
	verbs := verbsOf(root)
	whole := verbOf(root)
	title := func(name string) string {
		return fmt.Sprintf(".TH \"%s\" 1 \"%s\" \"%s\" \"Rollout Controller\"\n", roff(strings.ToUpper(name)), made.UTC().Format(time.DateOnly), roff(version))
	}
	program := root.Name()
	pages := map[string]string{program + ".1": title(program) + whole.man(program, "FLAGS OF ALL VERBS") + listed(program, verbs)}
	for _, v := range verbs {
		name := program + "-" + v.file()
		pages[name+".1"] = title(name) + v.man(name, "FLAGS") + seeAlso(program)
	}
	return pages
}

func (v verb) man(name, flags string) string {
	var text strings.Builder
	fmt.Fprintf(&text, ".SH NAME\n%s \\- %s\n", roff(name), roff(v.short))
	fmt.Fprintf(&text, ".SH SYNOPSIS\n\\fB%s\\fR\n", roff(v.usage))
	fmt.Fprintf(&text, ".SH DESCRIPTION\n%s\n", paragraphs(v.description()))
	if v.example != "" {
		fmt.Fprintf(&text, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(v.example))
	}
	if len(v.flags) > 0 {
		fmt.Fprintf(&text, ".SH %s\n", flags)
	}
	for _, f := range v.flags {
		fmt.Fprintf(&text, ".TP\n\\fB%s\\fR\n%s\n", roff(f.written()), roff(f.described()))
	}
	return text.String()
}

// listed names the verbs with their pages.
func listed(program string, verbs []verb) string {
	var text strings.Builder
	text.WriteString(".SH VERBS\n")
	for _, v := range verbs {
		fmt.Fprintf(&text, ".TP\n\\fB%s\\fR(1)\n%s\n", roff(program+"-"+v.file()), roff(v.short))
	}
	return text.String()
}

func seeAlso(program string) string {
	return fmt.Sprintf(".SH SEE ALSO\n\\fB%s\\fR(1) has the flags of all verbs.\n", roff(program))
}

// paragraphs divides a text at empty lines.
func paragraphs(text string) string {
	return strings.ReplaceAll(roff(text), "\n\n", "\n.PP\n")
}

// roff keeps each sign of a text as it is. A line that begins with a dot or an apostrophe
// would be read as a command.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

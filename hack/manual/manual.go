// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// verb is what a page says of a command. Its name is what follows that of the program, such
// as "sell" or "keys create".
type verb struct {
	name, command, usage string
	short, long, example string
	aliases              []string
	flags                []flag
}

// flag is what a page says of a flag.
type flag struct {
	// short is the form with one letter; empty if there is none.
	short, name string
	// value stands for what the user gives; empty if nothing is given.
	value string
	usage string
	// standard is the value without the flag; empty if it says nothing.
	standard string
}

// verbsOf returns the verbs that users see, by their names. A command that only groups
// others has no page of its own.
func verbsOf(root *cobra.Command) []verb {
	var all []verb
	for _, command := range root.Commands() {
		switch {
		case !command.IsAvailableCommand() || command.Name() == "help":
		case command.HasAvailableSubCommands():
			all = append(all, verbsOf(command)...)
		default:
			all = append(all, verbOf(command))
		}
	}
	slices.SortFunc(all, func(a, b verb) int { return cmp.Compare(a.name, b.name) })
	return all
}

// nameOf returns what follows the name of the program.
func nameOf(command *cobra.Command) string {
	if parent := command.Parent(); parent != nil && parent.HasParent() {
		return nameOf(parent) + " " + command.Name()
	}
	return command.Name()
}

// file returns the name of a page, without its ending.
func (v verb) file() string { return strings.ReplaceAll(v.name, " ", "-") }

func verbOf(command *cobra.Command) verb {
	v := verb{
		name: nameOf(command), command: command.CommandPath(), usage: strings.TrimSuffix(command.UseLine(), " [flags]"),
		short: command.Short, long: command.Long, example: withoutIndent(command.Example), aliases: command.Aliases,
	}
	command.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			v.flags = append(v.flags, flagOf(f))
		}
	})
	return v
}

func flagOf(f *pflag.Flag) flag {
	value, usage := pflag.UnquoteUsage(f)
	is := flag{short: f.Shorthand, name: f.Name, value: value, usage: usage, standard: f.DefValue}
	switch f.DefValue {
	case "false", "[]", "0", "0s":
		is.standard = ""
	}
	return is
}

// written returns the flag as a user writes it.
func (f flag) written() string {
	text := "--" + f.name
	if f.short != "" {
		text = "-" + f.short + ", " + text
	}
	if f.value != "" {
		text += " " + f.value
	}
	return text
}

// described returns what the flag means, and its standard value.
func (f flag) described() string {
	if f.standard == "" || strings.Contains(f.usage, "default") {
		return f.usage
	}
	return f.usage + " (default " + f.standard + ")"
}

// description returns the long text of a verb, or its short one as a sentence.
func (v verb) description() string {
	if v.long != "" {
		return strings.TrimSpace(v.long)
	}
	return v.short + "."
}

// withoutIndent removes the indentation that examples have in the help.
func withoutIndent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

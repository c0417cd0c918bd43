// SPDX-License-Identifier: Apache-2.0

// Command pictures draws a step of what the demo prints as an SVG file: a terminal in
// which the lines appear in the order, and roughly at the times, in which they were
// printed.
//
//	bin/demo --once > demo.txt
//	go run ./test/cmd/pictures -step "3. A bad release" -in demo.txt -out picture.svg
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
)

func main() {
	in := flag.String("in", "", "The file with what the demo printed.")
	out := flag.String("out", "", "The file to write.")
	title := flag.String("step", "", "The title of the step.")
	command := flag.String("command", "make demo", "The command that printed it.")
	only := flag.String("only", "", "A regular expression of the lines to draw, without their times; what continues a line is drawn with it.")
	flag.Parse()
	if err := run(*in, *out, *title, *command, *only); err != nil {
		fmt.Fprintln(os.Stderr, "draw a picture:", err)
		os.Exit(1)
	}
}

func run(in, out, title, command, only string) error {
	printed, err := os.ReadFile(in)
	if err != nil {
		return fmt.Errorf("read what the demo printed: %w", err)
	}
	lines, err := step(string(printed), title)
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if err := os.WriteFile(out, []byte(draw(command, onlyOf(lines, wanted))), 0o644); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

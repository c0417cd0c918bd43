// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/cmd/internal/gotest"
)

// longest is how many tests of a package the table names.
const longest = 3

// timed is a package and the resources that its tests used.
type timed struct {
	gotest.Suite
	usage
}

// writeTable writes the table. The packages that took longest are first.
func writeTable(to io.Writer, suites []timed) {
	fmt.Fprintln(to, "| Package | Time | CPU time | Control planes | Longest tests |")
	fmt.Fprintln(to, "| --- | ---: | ---: | ---: | --- |")
	slices.SortStableFunc(suites, func(a, b timed) int { return cmp.Compare(b.Took, a.Took) })
	var took, cpu time.Duration
	var planes int
	for _, s := range suites {
		took, cpu, planes = took+s.Took, cpu+s.CPU, planes+s.Planes
		name := s.Name
		if s.Failed {
			name += " FAILED"
		}
		fmt.Fprintf(to, "| %s | %s | %s | %d | %s |\n", name, seconds(s.Took), seconds(s.CPU), s.Planes, slowest(s.Tests))
	}
	fmt.Fprintf(to, "| all | %s | %s | %d | |\n", seconds(took), seconds(cpu), planes)
}

func slowest(tests []gotest.Test) string {
	sorted := slices.SortedStableFunc(slices.Values(tests), func(a, b gotest.Test) int { return cmp.Compare(b.Took, a.Took) })
	var named []string
	for _, t := range sorted[:min(longest, len(sorted))] {
		if t.Took >= time.Second {
			named = append(named, fmt.Sprintf("%s %s", t.Name, seconds(t.Took)))
		}
	}
	return strings.Join(named, ", ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

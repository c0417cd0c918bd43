// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// repeats is how often each command is measured, and starts how often the start of the
	// program is.
	repeats, starts = 5, 20
	// pageOfRollouts is how many Rollouts the command line and kubectl request at a time.
	pageOfRollouts = 500
)

// commandLine is the command line and the real kubectl, with a home directory of their own.
type commandLine struct {
	*bench

	path, kubectl, home string
	environment         []string
}

func (b *bench) newCommandLine(ctx context.Context) (*commandLine, error) {
	path, err := scenario.BuildCommandLine(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	found, err := parts.Build(ctx, os.Stderr, parts.Kubectl)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "performance-home-*")
	return &commandLine{b, path, found[parts.Kubectl], home, []string{"HOME=" + home, "KUBECONFIG=" + b.plane.Kubeconfig()}}, err
}

// measureCommandLine measures what a user waits for while the controller is at rest.
func (b *bench) measureCommandLine(ctx context.Context, p plan, m measured) error {
	if !p.CommandLine {
		return nil
	}
	c, err := b.newCommandLine(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(c.home) }()
	for _, step := range []func(context.Context, measured) error{c.measureStart, c.measureGet, c.measureExplain, c.measureSimulate, c.measurePage} {
		if err := step(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// command returns a function that runs the command line.
func (c *commandLine) command(args ...string) func(context.Context) (call, error) {
	return func(ctx context.Context) (call, error) { return runProgram(ctx, c.environment, c.path, args...) }
}

// series are several runs of one command.
type series []call

// repeat runs commands in turn. The first run of each is not measured: it reads the files
// of the program, and kubectl asks which kinds there are.
func repeat(ctx context.Context, times int, commands ...func(context.Context) (call, error)) ([]series, error) {
	all := make([]series, len(commands))
	for n := range 1 + times {
		for i, command := range commands {
			one, err := command(ctx)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				all[i] = append(all[i], one)
			}
		}
	}
	return all, nil
}

// median returns the median of a value of the runs.
func (s series) median(of func(call) float64) float64 {
	values := make([]float64, len(s))
	for i, one := range s {
		values[i] = of(one)
	}
	return median(values)
}

func firstByte(c call) float64 { return millis(c.first) }
func wholeTime(c call) float64 { return seconds(c.whole) }
func resident(c call) float64  { return c.memory }

func (c *commandLine) measureStart(ctx context.Context, m measured) error {
	all, err := repeat(ctx, starts, c.command("version", "--client"))
	if err != nil {
		return err
	}
	m["cli.start"] = 1000 * all[0].median(wholeTime)
	c.print("command line: starts in %.0f ms", m["cli.start"])
	return nil
}

// measureGet lists all Rollouts, in turn with kubectl.
func (c *commandLine) measureGet(ctx context.Context, m measured) error {
	get := c.command("get", "-A")
	requests, err := c.requestsOf(ctx, get)
	if err != nil {
		return err
	}
	all, err := repeat(ctx, repeats, c.complete(get), c.complete(func(ctx context.Context) (call, error) {
		return runProgram(ctx, c.environment, c.kubectl, "get", "rollouts.kuberik.com", "-A", fmt.Sprintf("--chunk-size=%d", pageOfRollouts))
	}))
	if err != nil {
		return err
	}
	m["cli.get.pages"] = float64(requests) / float64((c.rollouts+pageOfRollouts-1)/pageOfRollouts)
	compareLists(all[0], all[1], m)
	c.print("get -A: first byte after %.0f ms, all after %.3g s, %.0f MiB; kubectl %.3g s, %.0f MiB",
		m["cli.get.first"], m["cli.get.time"], m["cli.get.memory"], m["cli.kubectl.time"], m["cli.kubectl.memory"])
	return nil
}

func compareLists(ours, kubectl series, m measured) {
	m["cli.get.first"] = ours.median(firstByte)
	m["cli.get.time"], m["cli.kubectl.time"] = ours.median(wholeTime), kubectl.median(wholeTime)
	m["cli.get.memory"], m["cli.kubectl.memory"] = ours.median(resident), kubectl.median(resident)
	m["cli.get.ratio"] = m["cli.get.time"] / m["cli.kubectl.time"]
	m["cli.get.memoryratio"] = m["cli.get.memory"] / m["cli.kubectl.memory"]
}

// complete makes it an error if a list lacks a Rollout.
func (c *commandLine) complete(list func(context.Context) (call, error)) func(context.Context) (call, error) {
	return func(ctx context.Context) (call, error) {
		one, err := list(ctx)
		if want := 1 + c.rollouts; err == nil && one.lines != want {
			err = fmt.Errorf("a list of %d Rollouts has %d lines, want %d", c.rollouts, one.lines, want)
		}
		return one, err
	}
}

// requestsOf returns how many requests for objects a command makes.
func (c *commandLine) requestsOf(ctx context.Context, command func(context.Context) (call, error)) (int, error) {
	before, err := c.quiet(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := command(ctx); err != nil {
		return 0, err
	}
	after, err := c.requests(ctx)
	return after.Since(before).Count(all), err
}

func (c *commandLine) measureExplain(ctx context.Context, m measured) error {
	explain := c.command("explain", c.fleet.name(0), "-n", c.fleet.namespace(0))
	requests, err := c.requestsOf(ctx, explain)
	if err != nil {
		return err
	}
	all, err := repeat(ctx, repeats, explain)
	if err != nil {
		return err
	}
	m["cli.explain.requests"], m["cli.explain.time"] = float64(requests), 1000*all[0].median(wholeTime)
	c.print("explain: %d requests, %.0f ms", requests, m["cli.explain.time"])
	return nil
}

// workingHours is a schedule that is open on working days only.
const workingHours = `apiVersion: kuberik.com/v1alpha1
kind: RolloutSchedule
metadata: {name: working-hours}
spec:
  rolloutSelector: {}
  timezone: Europe/Berlin
  action: Allow
  rules:
  - {name: weekdays, daysOfWeek: [Monday, Tuesday, Wednesday, Thursday, Friday], timeRange: {start: "08:00", end: "17:00"}}
`

// year returns the arguments that simulate a year with a release in each week, at another
// hour each time, and with a schedule.
func (c *commandLine) year(schedule string) []string {
	const days, hours = 366, 7*24 + 5
	args := []string{"simulate", c.fleet.name(0), "-n", c.fleet.namespace(0), "--next", fmt.Sprintf("%dd", days), "-f", schedule}
	for at := 1; at < days*24; at += hours {
		args = append(args, "--release", fmt.Sprintf("9.0.%d@+%dh", at, at))
	}
	return args
}

func (c *commandLine) measureSimulate(ctx context.Context, m measured) error {
	schedule := filepath.Join(c.home, "schedule.yaml")
	if err := os.WriteFile(schedule, []byte(workingHours), 0o600); err != nil {
		return err
	}
	one, err := repeat(ctx, repeats, c.command(c.year(schedule)...))
	if err != nil {
		return err
	}
	fleet, err := repeat(ctx, 1, c.command("simulate", "-A", "--next", "7d"))
	if err != nil {
		return err
	}
	m["cli.simulate.year"] = one[0].median(wholeTime)
	m["cli.simulate.fleet"], m["cli.simulate.memory"] = fleet[0].median(wholeTime), fleet[0].median(resident)
	c.print("simulate: a year of one in %.3g s, a week of all in %.3g s with %.0f MiB", m["cli.simulate.year"], m["cli.simulate.fleet"], m["cli.simulate.memory"])
	return nil
}

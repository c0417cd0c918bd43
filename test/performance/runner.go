// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// smallest is the fleet that others are compared with.
var smallest = size{100, 1}

// yardstick is the plan for the smallest fleet.
var yardstick = plan{size: smallest, Waves: 5, Singles: 20, Bakes: bakes, Storm: flaps, Rest: 5 * time.Second}

// whole is the whole benchmark. Each of the largest fleets is between two of the
// smallest, because the speed of the machine may be different an hour later.
var whole = []plan{
	yardstick,
	againstFloor(size{10000, 1}, 1),
	yardstick,
	againstFloor(tenThousandSpread, 1).andCommandLine(),
	yardstick,
	againstFloor(size{1000, 1}, thousandWaves),
	againstFloor(thousandSpread, thousandWaves),
	onEnvironments(smallest),
	onEnvironments(thousandSpread),
	onEnvironments(tenThousandSpread),
	onMeasurements(smallest),
	onMeasurements(thousandSpread),
}

// bakes and flaps are the number of bakes and the size of the storm. They are the same
// for all fleets, because the fleets are compared.
const bakes, flaps = 5, 20

// thousandWaves is how many waves a fleet of a thousand has.
const thousandWaves = 3

// againstFloor returns the plan for a fleet other than the smallest.
func againstFloor(s size, waves int) plan {
	return plan{size: s, Waves: waves, Floor: true, Singles: 100, Bakes: bakes, Storm: flaps, Rest: 20 * time.Second}
}

// tenThousandSpread is the fleet with which the command line is measured: of the two largest
// the one that users have, because explain reads a namespace. It is the largest with which
// Environments are measured.
var tenThousandSpread = size{10000, 100}

// andCommandLine returns the plan with the command line.
func (p plan) andCommandLine() plan {
	p.CommandLine = true
	return p
}

// onEnvironments returns the plan that measures Environments with a fleet.
func onEnvironments(s size) plan { return plan{size: s, Environments: true} }

// thousandSpread is the largest fleet with which HealthChecks that are measured are
// measured.
var thousandSpread = size{1000, 100}

// onMeasurements returns the plan that measures HealthChecks that are measured with a fleet.
func onMeasurements(s size) plan { return plan{size: s, Measurements: true} }

// isAlone reports whether the plan measures only the one thing that has fleets of its own.
func (p plan) isAlone() bool { return p.Environments || p.Measurements }

// history returns how many releases each Rollout was promoted to before.
func (p plan) history() int {
	if p.isAlone() {
		return fullHistory
	}
	return 1
}

// memory returns the GOMEMLIMIT of the controller.
func (p plan) memory() string {
	if p.Environments {
		return environmentsLimit
	}
	return memoryLimit
}

// runner measures one fleet after the other, checks the results and reports them.
type runner struct {
	plans          []plan
	partial        bool // some measurements are left out
	logs, profiles string
	progress       io.Writer
}

// choose selects the plans of some fleets instead of all. A fleet that has no plan is
// measured like one of a thousand.
func (r *runner) choose(fleets string) error {
	if fleets == "" {
		return nil
	}
	r.plans, r.partial = nil, true
	for _, text := range strings.Split(fleets, ",") {
		var s size
		if _, err := fmt.Sscanf(text, "%d/%d", &s.Rollouts, &s.Namespaces); err != nil || s.Rollouts < 1 || s.Namespaces < 1 {
			return fmt.Errorf("%q is no fleet: want rollouts/namespaces, such as 1000/1", text)
		}
		p := againstFloor(s, thousandWaves)
		if i := slices.IndexFunc(whole, func(p plan) bool { return p.size == s }); i >= 0 {
			p = whole[i]
		}
		r.plans = append(r.plans, p)
	}
	return nil
}

// commandLineOnly is the scenario of the command line, environmentsOnly that of
// Environments, and measurementsOnly that of HealthChecks that are measured. Each has a
// section of the report.
const commandLineOnly, environmentsOnly, measurementsOnly = "cli", "environments", "measurements"

// alone are the scenarios that have fleets of their own, with the plan for a fleet.
var alone = map[string]func(size) plan{environmentsOnly: onEnvironments, measurementsOnly: onMeasurements}

// scenarios are the scenarios that can be left out.
var scenarios = []string{"waves", "floor", "rest", "singles", "bake", "storm", commandLineOnly, environmentsOnly, measurementsOnly}

// only removes the scenarios that are not named from the plans. The floor includes waves,
// and a storm includes a bake.
func (r *runner) only(names string) error {
	if names == "" {
		return nil
	}
	if planOf, ok := alone[names]; ok {
		r.onlyAlone(planOf)
		return nil
	}
	wanted := map[string]bool{}
	for _, name := range strings.Split(names, ",") {
		if !slices.Contains(scenarios, name) {
			return fmt.Errorf("there is no scenario %q: there are %s", name, strings.Join(scenarios, ", "))
		}
		wanted[name] = true
	}
	for name := range alone {
		if wanted[name] {
			return fmt.Errorf("%s has fleets of its own: give -only %s alone", name, name)
		}
	}
	r.plans, r.partial = slices.DeleteFunc(slices.Clone(r.plans), plan.isAlone), true
	for i := range r.plans {
		r.plans[i] = r.plans[i].with(wanted)
	}
	return nil
}

// onlyAlone measures a scenario that has fleets of its own, with the chosen fleets or with
// those of the whole benchmark.
func (r *runner) onlyAlone(planOf func(size) plan) {
	var plans []plan
	for _, p := range r.plans {
		if r.partial || p == planOf(p.size) {
			plans = append(plans, planOf(p.size))
		}
	}
	r.plans, r.partial = plans, true
}

// with returns the plan with only the wanted scenarios.
func (p plan) with(wanted map[string]bool) plan {
	if !wanted["floor"] {
		p.Floor = false
	}
	if !wanted["waves"] && !p.Floor {
		p.Waves = 0
	}
	if !wanted["rest"] {
		p.Rest = 0
	}
	if !wanted["singles"] {
		p.Singles = 0
	}
	if !wanted["storm"] {
		p.Storm = 0
	}
	p.CommandLine = wanted[commandLineOnly]
	if !wanted["bake"] {
		p.Bakes = min(p.Bakes, p.Storm, 1)
	}
	return p
}

func (r *runner) run(ctx context.Context) error {
	expectations, err := readRanges(rangeFile)
	if err != nil {
		return err
	}
	began, before := time.Now(), load()
	path, err := scenario.BuildController(ctx, os.Stderr)
	if err != nil {
		return err
	}
	found := report{expectations: expectations}
	var programs string
	var failed error
	for _, p := range r.plans {
		if failed = r.measure(ctx, p, path, &found, &programs); failed != nil {
			break
		}
	}
	relate(found.results)
	found.results = bySize(found.results)
	found.machine = describe(began, programs)
	found.Load = before
	return errors.Join(failed, r.conclude(found, failed == nil && !r.partial))
}

func (r *runner) measure(ctx context.Context, p plan, path string, found *report, programs *string) error {
	began := time.Now()
	p.Profiles = r.profiles
	_, _ = fmt.Fprintf(r.progress, "==> %s\n", p.size)
	b, err := newBench(ctx, setting{p.Rollouts, p.Namespaces, r.logs, time.Second, p.history(), p.memory()}, path, r.progress)
	if err != nil {
		return fmt.Errorf("%s: %w", p.size, err)
	}
	b.print("made the fleet in %s", time.Since(began))
	*programs = filepath.Base(b.plane.Part(parts.APIServer).Path) + ", " + filepath.Base(b.plane.Part(parts.Etcd).Path)
	figures, err := b.measure(ctx, p)
	found.results = append(found.results, result{size: p.size, Figures: figures})
	if err = errors.Join(err, b.close()); err != nil {
		return fmt.Errorf("%s: %w", p.size, err)
	}
	b.print("done in %s", time.Since(began))
	return nil
}

// conclude prints the tables, stores the report and returns the figures out of range.
func (r *runner) conclude(found report, complete bool) error {
	_, _ = fmt.Fprintln(r.progress)
	err := found.writeText(r.progress)
	var text bytes.Buffer
	err = errors.Join(err, found.writePage(&text), r.store(text.Bytes()))
	for _, wrong := range check(found.expectations, found.results, complete) {
		err = errors.Join(err, errors.New(wrong))
	}
	return err
}

func (r *runner) store(text []byte) error {
	file := filepath.Join(parts.Root(), "bin", "performance.md")
	_, _ = fmt.Fprintf(r.progress, "\nThe report is in %s.\n", file)
	return os.WriteFile(file, text, 0o644)
}

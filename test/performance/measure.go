// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// plan defines what is measured with one fleet.
type plan struct {
	size
	// Waves is how many releases all Rollouts get at once.
	Waves int
	// Floor defines whether the bare client makes the writes of each wave as well.
	Floor bool
	// Singles is how many releases there are for one Rollout at a time.
	Singles int
	// Bakes is how many releases with a bake there are.
	Bakes int
	// Storm is how often each HealthCheck and gate changes. It needs Bakes.
	Storm int
	// CommandLine defines whether the command line is measured as well.
	CommandLine bool
	// Environments defines whether Environments are measured, and nothing else.
	Environments bool
	// Measurements defines whether HealthChecks that are measured are measured, and nothing
	// else.
	Measurements bool
	// Rest is how long nothing happens.
	Rest time.Duration
	// Profiles is the folder for profiles. There are none if it is empty.
	Profiles string
}

// mebi is the number of bytes of a mebibyte.
const mebi = 1 << 20

// bakeTime is the bake time of the Rollouts that bake.
const bakeTime = 2 * time.Second

// measure measures everything in the plan.
func (b *bench) measure(ctx context.Context, p plan) (measured, error) {
	m := measured{}
	took, err := b.begin(ctx)
	if err != nil {
		return m, err
	}
	b.print("began: ready after %s", took)
	switch {
	case p.Environments:
		return b.measureEnvironments(ctx, p)
	case p.Measurements:
		return b.measureMeasurements(ctx, p)
	}
	for _, step := range []func(context.Context, plan, measured) error{
		b.measureWaves, b.measureRest, b.measureSingles, b.measureBakes, b.measureStorm, b.measureCommandLine, b.measureRestart,
	} {
		if err := step(ctx, p, m); err != nil {
			return m, err
		}
	}
	most, err := b.program.mostMemory()
	if err != nil {
		return m, err
	}
	m["memory.peak"], m["memory.resident"] = float64(most.Own)/mebi, float64(most.Resident)/mebi
	scraped, err := b.program.scrape(ctx)
	m["metrics.size"] = float64(scraped) / 1e6
	return m, err
}

func (b *bench) measureWaves(ctx context.Context, p plan, m measured) error {
	if p.Waves == 0 {
		return nil
	}
	var own, bare laps
	var total cost
	for range p.Waves {
		w, spent, err := b.profiled(ctx, p, b.publish(), "", b.some(b.rollouts))
		if err == nil {
			b.print("wave: %s", spent.each(b.rollouts))
			total.add(spent)
			err = b.lap(&own, "wave", w)
		}
		if err == nil && p.Floor {
			err = b.lapFloor(ctx, &bare, w)
		}
		if err != nil {
			return err
		}
	}
	own.show(m)
	if p.Floor {
		own.compare(bare, m)
	}
	promotions := p.Waves * b.rollouts
	total.show(m, "wave", promotions)
	m["wave.garbage"] = total.allocated / float64(promotions) / 1000
	for key, n := range counted(total.requests) {
		m["wave."+key] = float64(n) / float64(promotions)
	}
	m["wave.others"] += m["wave.checks"] + m["wave.records"]
	delete(m, "wave.checks")
	delete(m, "wave.records")
	return nil
}

// profiled promotes a release for some Rollouts and saves profiles of the controller if
// the plan asks for them.
func (b *bench) profiled(ctx context.Context, p plan, r release, title string, some []int) (*wave, cost, error) {
	if p.Profiles == "" {
		return b.promote(ctx, r, some)
	}
	saved, name := make(chan error, 1), fmt.Sprintf("%d-in-%d-%s%s", b.rollouts, b.namespaces, r.tag, title)
	go func() { saved <- b.profiles(ctx, p.Profiles, name, profileSeconds) }()
	w, spent, err := b.promote(ctx, r, some)
	if failed := <-saved; err == nil {
		err = failed
	}
	return w, spent, err
}

func (b *bench) measureRest(ctx context.Context, p plan, m measured) error {
	if p.Rest == 0 {
		return nil
	}
	spent, err := b.costOf(ctx, func() error { return pause(ctx, p.Rest) })
	b.print("rest: %v", spent.requests)
	m["rest.requests"] = float64(spent.requests.Count(all))
	return err
}

func (b *bench) measureSingles(ctx context.Context, p plan, m measured) error {
	if p.Singles == 0 {
		return nil
	}
	latencies, err := b.singles(ctx, p.Singles)
	if err != nil {
		return err
	}
	m["single.p50"], m["single.p99"] = millis(percentile(latencies, 50)), millis(percentile(latencies, 99))
	b.print("singles: median %.0f ms, 99%% %.0f ms", m["single.p50"], m["single.p99"])
	return nil
}

func (b *bench) measureBakes(ctx context.Context, p plan, m measured) error {
	if p.Bakes == 0 {
		return nil
	}
	some := b.few()
	if err := b.protect(ctx, some, bakeTime); err != nil {
		return err
	}
	var times []float64
	var total cost
	late := 0
	for range p.Bakes {
		w, spent, err := b.releaseFor(ctx, some)
		if err != nil {
			return err
		}
		b.print("wave with a bake: targets %s, all %s, %s", w.targets(), w.all(), spent.each(len(some)))
		times = append(times, seconds(w.targets()))
		total.add(spent)
		late += b.observer.late(w)
	}
	m["bake.time"] = median(times)
	promotions := p.Bakes * len(some)
	total.show(m, "bake", promotions)
	counts := counted(total.requests)
	counts["status"] -= late
	for _, key := range []string{"status", "events", "checks", "reads"} {
		m["bake."+key] = float64(counts[key]) / float64(promotions)
	}
	return nil
}

// few returns the Rollouts that bake and that the storm is about. There are no more than
// in the smallest fleet. Thus all fleets have the same work.
func (b *bench) few() []int { return b.some(smallest.Rollouts) }

func (b *bench) measureStorm(ctx context.Context, p plan, m measured) error {
	if p.Storm == 0 {
		return nil
	}
	some := b.few()
	spent, err := b.storm(ctx, some, p.Storm)
	if err != nil {
		return err
	}
	b.print("storm: CPU %s, %v", spent.cpu, spent.requests)
	spent.show(m, "storm", 2*p.Storm*len(some))
	m["storm.writes"] = float64(spent.requests.Count(controlplane.Request.IsWrite))
	return nil
}

func (b *bench) measureRestart(ctx context.Context, _ plan, m measured) error {
	took, spent, err := b.restart(ctx)
	if err != nil {
		return err
	}
	b.print("restart: ready after %s, CPU %s, %v", took, spent.cpu, spent.requests)
	m["restart.ready"], m["restart.cpu"] = seconds(took), seconds(spent.cpu)
	m["restart.writes"] = float64(writesOf(spent.requests))
	return nil
}

// print prints the progress.
func (b *bench) print(format string, args ...any) {
	for i, arg := range args {
		if d, ok := arg.(time.Duration); ok {
			args[i] = d.Round(time.Millisecond)
		}
	}
	_, _ = fmt.Fprintf(b.progress, "    "+format+"\n", args...)
}

// since returns the cost since an earlier one, at the given pace of the machine.
func (c cost) since(before cost, pace time.Duration) cost {
	cpu := c.cpu - before.cpu
	return cost{c.requests.Since(before.requests), cpu, float64(cpu) / float64(pace), c.allocated - before.allocated}
}

func (c *cost) add(other cost) {
	c.cpu, c.work, c.allocated = c.cpu+other.cpu, c.work+other.work, c.allocated+other.allocated
	if c.requests == nil {
		c.requests = controlplane.Requests{}
	}
	for request, n := range other.requests {
		c.requests[request] += n
	}
}

// show adds the figures of the CPU time that each of n things took.
func (c cost) show(m measured, title string, n int) {
	m[title+".cpu"], m[title+".work"] = millis(c.cpu)/float64(n), c.work/float64(n)
}

// each formats the CPU time of n promotions.
func (c cost) each(n int) string {
	return fmt.Sprintf("CPU %s, per promotion %.3g of the pace", c.cpu.Round(time.Millisecond), c.work/float64(n))
}

// counted counts the controller's requests by purpose.
func counted(requests controlplane.Requests) map[string]int {
	counts := map[string]int{"status": 0, "repository": 0, "kustomization": 0, "events": 0, "checks": 0, "records": 0, "reads": 0, "others": 0}
	for request, n := range requests {
		counts[purpose(request)] += n
	}
	return counts
}

// written has the purposes of writes, by what is written.
var written = map[controlplane.Request]string{
	{Resource: rollouts.name, Subresource: "status"}:     "status",
	{Resource: environments.name, Subresource: "status"}: "records",
	{Resource: ociRepositories.name}:                     "repository",
	{Resource: kustomizations.name}:                      "kustomization",
	{Resource: events.name}:                              "events",
	{Resource: healthChecks.name}:                        "checks",
	{Resource: healthChecks.name, Subresource: "status"}: "checks",
}

// addresses are read at most once a minute, and not for a promotion: they say where the
// API server is, which no request of a tenant may reach.
var addresses = []string{"services", "endpointslices"}

func purpose(r controlplane.Request) string {
	switch {
	case !r.IsWrite() && slices.Contains(addresses, r.Resource):
		return "addresses"
	case !r.IsWrite():
		return "reads"
	}
	if known, ok := written[controlplane.Request{Resource: r.Resource, Subresource: r.Subresource}]; ok {
		return known
	}
	return "others"
}

func all(controlplane.Request) bool { return true }

// leading is how many events report the leader after a restart.
const leading = 1

// writesOf returns the number of writes that a restart has caused. It counts neither
// access reviews, which are POST requests that change nothing, nor the event that reports
// the leader.
func writesOf(restart controlplane.Requests) int {
	reported := restart.Count(func(r controlplane.Request) bool { return r.Resource == events.name })
	writes := restart.Count(func(r controlplane.Request) bool { return r.IsWrite() && r.Group != "authorization.k8s.io" })
	return writes - min(reported, leading)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// size is the size of a fleet.
type size struct{ Rollouts, Namespaces int }

// String returns the size as the head of a column.
func (s size) String() string {
	if s.Namespaces == 1 {
		return thousands(s.Rollouts) + " in 1 namespace"
	}
	return fmt.Sprintf("%s in %d namespaces", thousands(s.Rollouts), s.Namespaces)
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// measured are the figures of one fleet, by their keys.
type measured map[string]float64

// result contains the figures of one fleet.
type result struct {
	size
	Figures measured
	again   int // how many fleets of the same size were measured before
}

// String returns the head of the result's column.
func (r result) String() string {
	if r.again == 0 {
		return r.size.String()
	}
	return fmt.Sprintf("%s (%d)", r.size, r.again+1)
}

// figure is something that the benchmark measures.
type figure struct {
	key     string // in the range file
	unit    string
	title   string // in the table
	meaning string // below it
}

// catalogue contains the figures of the controller, in the order in which they are shown.
var catalogue = []figure{
	{"wave.time", "s", "wave: all targets written", "From the moment when the first ImagePolicy is about to name the release until a watch has shown the release in every target. The median of the waves."},
	{"wave.floor", "s", "wave: the same by a bare client", "The same time when the bare client makes the writes: see *The floor*."},
	{"wave.pace", "ms", "pace of the machine in the waves", "How much CPU time the same piece of work took, which is done every half second."},
	{"floor.pace", "ms", "pace of the machine in those of the bare client", "As above."},
	{"wave.ratio", "", "wave: ratio of the two times", "The first time divided by the second, each divided by the pace of the machine meanwhile."},
	{"wave.whole", "", "wave: ratio until all have succeeded", "The same ratio, of the times until a watch has shown every Rollout `Succeeded`."},
	{"wave.p50", "s", "wave: one promotion, median", "From the moment when the Rollout's own ImagePolicy is about to name the release until both of its targets carry it. In a wave that is time in a queue."},
	{"wave.p99", "s", "wave: one promotion, 99th percentile", "Of the same."},
	{"wave.cpu", "ms", "wave: CPU per promotion", "CPU time of the controller's process, from before the wave until all is quiet, divided by the promotions."},
	{"wave.work", "", "wave: CPU, to the pace of the machine", "CPU time per promotion, divided by the pace of the machine meanwhile."},
	{"wave.cpuratio", "", "wave: the same, to that among 100", "Divided by the same figure of a fleet of 100 in one namespace: by the mean of the one measured last before and of the one next after, or by the only one of them."},
	{"wave.garbage", "kB", "wave: memory allocated per promotion", "All that the controller has allocated meanwhile, whether freed or not, divided by the promotions. It does not depend on the machine."},
	{"wave.garbageratio", "", "wave: the same, to that among 100", "As above."},
	{"wave.status", "", "wave: status writes per promotion", "`PATCH rollouts/status` by the API server's own count, divided by the promotions."},
	{"wave.repository", "", "wave: writes of OCIRepositories", "`PATCH ocirepositories`, per promotion."},
	{"wave.kustomization", "", "wave: writes of Kustomizations", "`PATCH kustomizations`, per promotion."},
	{"wave.events", "", "wave: events", "`POST events`, and `PATCH`, per promotion."},
	{"wave.reads", "", "wave: reads", "`GET` and `LIST`, per promotion."},
	{"wave.others", "", "wave: other writes", "All other writes by the controller, per promotion."},
	{"bake.time", "s", "wave with a bake: all targets written", fmt.Sprintf("As above, for the first %d Rollouts of the fleet, which have a bake time of %s and a HealthCheck, selected by a label. All fleets have the same %d releases, one after the other.", smallest.Rollouts, bakeTime, bakes)},
	{"bake.cpu", "ms", "wave with a bake: CPU per promotion", "As above."},
	{"bake.work", "", "wave with a bake: CPU, to the pace of the machine", "As above."},
	{"bake.cpuratio", "", "wave with a bake: the same, to that among 100", "As above."},
	{"bake.status", "", "wave with a bake: status writes", fmt.Sprintf("As above, per promotion. If a promotion takes longer than %s, up to two more are not counted: that it waits for its HealthCheck, and what the registry says of the release.", promotion.Patience)},
	{"bake.events", "", "wave with a bake: events", "As above, per promotion."},
	{"bake.checks", "", "wave with a bake: writes of HealthChecks", "`PATCH healthchecks` and `healthchecks/status` by the controller, per promotion: the reset, and the mark that it was made."},
	{"bake.reads", "", "wave with a bake: reads", "`GET` and `LIST`, per promotion."},
	{"single.p50", "ms", "one release at rest, median", "From the moment when the ImagePolicy is about to name the release until a watch has shown it in both targets, one Rollout after the other while all others rest."},
	{"single.p99", "ms", "one release at rest, 99th percentile", "Of the same."},
	{"rest.requests", "", "requests at rest", "All requests by the controller within the time at rest, by the API server's own count; renewals of the lease, and watches that are opened anew, aside."},
	{"storm.cpu", "ms", "storm: CPU per event", fmt.Sprintf("The HealthChecks of the same %d Rollouts say the same in other words, and their gates are annotated, %d times each: CPU time of the controller, divided by the events.", smallest.Rollouts, flaps)},
	{"storm.work", "", "storm: CPU, to the pace of the machine", "As above, per event."},
	{"storm.cpuratio", "", "storm: the same, to that among 100", "As above."},
	{"storm.writes", "", "storm: writes", "All writes by the controller during the storm."},
	{"restart.ready", "s", "restart: ready after", "From the start of the process until it leads, every Rollout was looked at and nothing is left to do."},
	{"restart.writes", "", "restart: writes", "All writes by the controller since then but those of its lease: events about the lease, and questions about its own rights, change nothing."},
	{"restart.cpu", "s", "restart: CPU", "CPU time of the controller until all is quiet."},
	{"memory.peak", "MiB", "peak memory", "The most memory of its own that a process of the controller had (`RssAnon`, every 50 ms), in all of the above: what a container needs at least."},
	{"memory.resident", "MiB", "peak memory, with the program", "Likewise (`VmHWM`), with those pages of the program's file that are in memory. The kernel drops and reads them as it likes."},
	{"metrics.size", "MB", "size of a scrape", "The text of `/metrics` at the end, uncompressed."},
}

// commandLineFigures are the figures of the command line, in the order in which they are
// shown.
var commandLineFigures = []figure{
	{"cli.start", "ms", "`version --client`: from start to end", "What every command takes at least."},
	{"cli.get.first", "ms", "`get -A`: first line", "From the start of the process to the first byte of the list."},
	{"cli.get.time", "s", "`get -A`: whole list", "From the start to the end of the process."},
	{"cli.kubectl.time", "s", "`kubectl get rollouts -A`", "The same list by kubectl, in pages of the same size. The two programs run in turn."},
	{"cli.get.ratio", "", "`get -A`: ratio of the two times", "The first time divided by the second."},
	{"cli.get.pages", "", "`get -A`: requests per page", fmt.Sprintf("All requests for objects, by the API server's own count, for each %d Rollouts.", pageOfRollouts)},
	{"cli.get.memory", "MiB", "`get -A`: memory", "The most resident memory (`VmHWM`), with those pages of the program's file that are in memory."},
	{"cli.kubectl.memory", "MiB", "`kubectl get rollouts -A`: memory", "As above."},
	{"cli.get.memoryratio", "", "`get -A`: ratio of the two", "The memory of the command line divided by that of kubectl."},
	{"cli.explain.time", "ms", "`explain`: time", "From the start to the end of the process, for one Rollout."},
	{"cli.explain.requests", "", "`explain`: requests", "All requests for objects, by the API server's own count. One more, which is not counted, is for the served version of Flux's image API."},
	{"cli.simulate.year", "s", "`simulate --next 366d`: time", "One Rollout that gets a release each week, at another hour each time, and a schedule that is open on working days. The schedule is in a file."},
	{"cli.simulate.fleet", "s", "`simulate -A --next 7d`: time", "All Rollouts of the fleet."},
	{"cli.simulate.memory", "MiB", "`simulate -A --next 7d`: memory", "As above."},
	{"page.load", "ms", "the page: first rows", "From the first request of a browser with an empty cache to the frame that shows rows. The server has read the fleet."},
	{"page.bytes", "kB", "the page: first load", "All that is sent to the browser until then, compressed."},
	{"page.typing", "ms", "the page: a search", fmt.Sprintf("The longest time from a key to the frame that shows its result, of %d keys.", typed)},
	{"page.nodes", "", "the page: nodes", "The elements of the list."},
	{"page.tab", "MiB", "the page: memory of the tab", "What its scripts use."},
	{"page.memory", "MiB", "the page: memory of the server", "Anonymous memory (`RssAnon`) of `ui`, with a tab that shows the list."},
	{"page.requests", "", "the page: requests at rest", fmt.Sprintf("All requests in %s while the tab shows the list.", pageRest)},
}

// environmentFigures are the figures of Environments, in the order in which they are shown.
var environmentFigures = []figure{
	{"environments.reads", "", "reads per promotion", "`GET` and `LIST`, per promotion to production: its upstream is read past the cache."},
	{"environments.status", "", "status writes per promotion", "`PATCH rollouts/status`, per promotion to production."},
	{"environments.events", "", "events", "`POST events`, and `PATCH`, per promotion to production."},
	{"environments.records", "", "status writes of Environments", "`PATCH environments/status`, per promotion of any Rollout."},
	{"environments.hold", "", "writes when a hold begins", fmt.Sprintf("A release comes to at most %d Rollouts of production before staging has it: all writes by the controller, per Rollout.", smallest.Rollouts/2)},
	{"environments.held", "", "requests while it does not change", fmt.Sprintf("Then the ImagePolicies, and the Rollouts and Environments of both, are annotated %d times: all requests by the controller.", nudges)},
	{"environments.alone.cpu", "ms", "CPU per promotion, without Environments", "CPU time of the controller's process, from before each wave until all is quiet, divided by the promotions of both halves."},
	{"environments.cpu", "ms", "CPU per promotion, with them", "As above."},
	{"environments.cpuratio", "", "CPU: ratio", "The CPU times, each divided by the pace of the machine meanwhile, with Environments divided by without."},
	{"environments.productionratio", "", "CPU: ratio in production", "The same of the second half alone."},
	{"environments.garbageratio", "", "memory allocated: ratio", "All that the controller has allocated in both halves, likewise."},
	{"environments.alone.heap", "MiB", "memory, without Environments", "What the controller keeps (`go_memstats_heap_alloc_bytes` after a collection)."},
	{"environments.heap", "MiB", "memory, with them", "As above."},
	{"environments.heapratio", "", "memory: ratio", "The second divided by the first."},
	{"environments.alone.peak", "MiB", "peak memory, without Environments", "The most memory of its own that the process had in both halves (`RssAnon`, every 50 ms)."},
	{"environments.peak", "MiB", "peak memory, with them", "As above."},
}

// measurementFigures are the figures of HealthChecks that are measured, in the order in which
// they are shown.
var measurementFigures = []figure{
	{"measurements.asked", "", "queries of Prometheus per promotion", "The first measurement makes the HealthCheck Healthy. There is another one after each interval of 5 seconds, until the bake of 5 seconds is over."},
	{"measurements.lag", "s", "longest lag", fmt.Sprintf("For how long a measurement was due (`rollout_probe_lag_seconds`, read every %s).", lagPace)},
	{"measurements.status", "", "status writes per promotion", fmt.Sprintf("`PATCH rollouts/status`, per promotion. If a promotion takes longer than %s, up to two more are not counted: that it waits for its HealthCheck, and what the registry says of the release.", promotion.Patience)},
	{"measurements.events", "", "events", "`POST events`, and `PATCH`, per promotion."},
	{"measurements.reads", "", "reads per promotion", "`GET` and `LIST`, per promotion."},
	{"measurements.alone.checks", "", "writes of HealthChecks, written by others", "`PATCH healthchecks` and `healthchecks/status` by the controller, per promotion: the reset, and the mark that it was made."},
	{"measurements.checks", "", "writes of HealthChecks, measured", "As above, and the result. The others change nothing, and are not written within a minute."},
	{"measurements.alone.cpu", "ms", "CPU per promotion, written by others", "CPU time of the controller's process, from before the wave until all is quiet, divided by the promotions."},
	{"measurements.cpu", "ms", "CPU per promotion, measured", "As above."},
	{"measurements.cpuratio", "", "CPU: ratio", "The CPU times, each divided by the pace of the machine meanwhile: measured divided by written by others."},
	{"measurements.garbageratio", "", "memory allocated: ratio", "All that the controller has allocated, likewise."},
	{"measurements.alone.heap", "MiB", "memory, written by others", "What the controller keeps (`go_memstats_heap_alloc_bytes` after a collection)."},
	{"measurements.heap", "MiB", "memory, measured", "As above, when the wave is over."},
	{"measurements.heapratio", "", "memory: ratio", "The second divided by the first."},
}

// figureOf returns the figure with a key.
func figureOf(key string) (figure, bool) {
	for _, f := range slices.Concat(catalogue, commandLineFigures, environmentFigures, measurementFigures) {
		if f.key == key {
			return f, true
		}
	}
	return figure{}, false
}

func seconds(d time.Duration) float64 { return d.Seconds() }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// lagPace is how often the lag is read. The controller answers with all of its metrics.
const lagPace = time.Second

// prometheus answers every query at once with the number 1, and counts them.
type prometheus struct {
	server *httptest.Server
	asked  atomic.Int64
}

func startPrometheus() *prometheus {
	p := &prometheus{}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,"1"]}]}}`, time.Now().Unix())
	}))
	return p
}

// judgedBake is the bake time of Rollouts with measured HealthChecks: it must be at least an
// interval.
const judgedBake = 5 * time.Second

// judged is what a release for all Rollouts costs that each of them bakes.
type judged struct {
	promotions int
	cost
	late  int           // how many Rollouts said that they wait for a HealthCheck
	asked int64         // queries of Prometheus
	lag   time.Duration // the longest that was seen
	heap  float64       // memory afterwards, in mebibytes
}

// measureMeasurements measures the same fleet with HealthChecks that others write, and
// with HealthChecks that are measured.
func (b *bench) measureMeasurements(ctx context.Context, p plan) (measured, error) {
	m := measured{}
	if err := b.protect(ctx, b.some(b.rollouts), judgedBake); err != nil {
		return m, err
	}
	alone, err := b.releaseJudged(ctx, p, "-written")
	if err != nil {
		return m, err
	}
	if _, err := b.costOf(ctx, func() error { return b.askPrometheus(ctx) }); err != nil {
		return m, err
	}
	asked, err := b.releaseJudged(ctx, p, "-measured")
	if err != nil {
		return m, err
	}
	asked.show(m)
	asked.compare(alone, m)
	return m, nil
}

// askPrometheus makes the HealthChecks ones of the class prometheus.
func (b *bench) askPrometheus(ctx context.Context) error {
	const spec = `{"spec":{"class":"prometheus","delay":"0s","interval":"5s","prometheus":{"query":"error_rate{version=\"$(version)\"}","condition":"value <= 1.0"}}}`
	return forEach(ctx, namers, b.rollouts, func(ctx context.Context, i int) error {
		return b.admin.patch(ctx, healthChecks, b.fleet.namespace(i), b.fleet.name(i), "", "kustomize-controller", []byte(spec))
	})
}

// releaseJudged releases for all Rollouts at once.
func (b *bench) releaseJudged(ctx context.Context, p plan, title string) (j judged, err error) {
	j.promotions = b.rollouts
	before, lag := b.prometheus.asked.Load(), b.watchLag(ctx)
	w, spent, err := b.profiled(ctx, p, b.publish(), title, b.some(b.rollouts))
	j.cost, j.lag = spent, lag()
	if err != nil {
		return j, err
	}
	j.asked, j.late = b.prometheus.asked.Load()-before, b.observer.late(w)
	j.heap, err = b.heap(ctx)
	b.print("%s%s: %s, %d queries, lag %s, %.0f MiB, %v", w.release.tag, title, spent.each(b.rollouts), j.asked, j.lag, j.heap, spent.requests)
	return j, err
}

// watchLag reads until it is stopped for how long the measurement that waits longest has
// been due. Stopping it returns the longest that was seen.
func (b *bench) watchLag(ctx context.Context) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	var most time.Duration
	var reading sync.WaitGroup
	reading.Go(func() {
		for pause(ctx, lagPace) == nil {
			if families, err := scenario.Metrics(ctx, b.program.metrics); err == nil {
				seen := scenario.Total(families["rollout_probe_lag_seconds"].GetMetric())
				most = max(most, time.Duration(seen*float64(time.Second)))
			}
		}
	})
	return func() time.Duration {
		cancel()
		reading.Wait()
		return most
	}
}

// show adds the figures of a fleet whose HealthChecks are measured.
func (j judged) show(m measured) {
	each, counts := float64(j.promotions), counted(j.requests)
	counts["status"] -= j.late
	for _, key := range []string{"status", "events", "checks", "reads"} {
		m["measurements."+key] = float64(counts[key]) / each
	}
	m["measurements.asked"] = float64(j.asked) / each
	m["measurements.lag"] = seconds(j.lag)
	m["measurements.cpu"], m["measurements.heap"] = millis(j.cpu)/each, j.heap
}

// compare compares with the same fleet whose HealthChecks others write.
func (j judged) compare(alone judged, m measured) {
	m["measurements.alone.checks"] = float64(counted(alone.requests)["checks"]) / float64(alone.promotions)
	m["measurements.alone.cpu"], m["measurements.alone.heap"] = millis(alone.cpu)/float64(alone.promotions), alone.heap
	m["measurements.cpuratio"] = j.work / alone.work
	m["measurements.garbageratio"] = j.allocated / alone.allocated
	m["measurements.heapratio"] = j.heap / alone.heap
}

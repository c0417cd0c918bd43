// SPDX-License-Identifier: Apache-2.0

// Package measurements asks a real Prometheus what HealthChecks of the class prometheus
// ask. Its samples have times of their own, so no test waits for any.
package measurements

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/health/class/prometheus"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

const (
	// promoted and reset are how long ago 1.4.0 was promoted, and the check was reset.
	promoted = 11 * time.Minute
	reset    = 10 * time.Minute
	// every is the interval of the samples.
	every = 15 * time.Second
)

// history is what an application exposes: samples of the last half hour, with their times.
type history struct{ now time.Time }

func (h history) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for at := h.now.Add(-30 * time.Minute); !at.After(h.now); at = at.Add(every) {
		h.sample(w, at)
	}
	for i := range 150 {
		fmt.Fprintf(w, "many{number=\"%d\"} 1 %d\n", i, h.now.UnixMilli())
	}
}

// sample writes the samples of one moment. The error rate grows at the promotion, and a
// metric of the old release ends just before the reset.
func (h history) sample(w http.ResponseWriter, at time.Time) {
	version, rate := "1.3.0", 0.004
	if at.After(h.now.Add(-promoted)) {
		version, rate = "1.4.0", 0.031
	}
	fmt.Fprintf(w, "error_rate{version=%q} %g %d\n", version, rate, at.UnixMilli())
	fmt.Fprintf(w, "age_minutes %g %d\n", h.now.Sub(at).Minutes(), at.UnixMilli())
	if at.Before(h.now.Add(-reset)) {
		fmt.Fprintf(w, "old 1 %d\n", at.UnixMilli())
	}
}

// start starts Prometheus, and returns a client for it when it has the samples.
func start(t *testing.T, now time.Time) *prometheus.Server {
	t.Helper()
	g := NewWithT(t)
	application := httptest.NewServer(history{now})
	t.Cleanup(application.Close)
	running, err := controlplane.StartPrometheus(t.Context(), t.TempDir(), map[string]string{"shop": strings.TrimPrefix(application.URL, "http://")})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(running.Stop()).To(Succeed()) })
	server := open(t, running.URL)
	g.Eventually(func() (*float64, error) {
		return server.Ask(t.Context(), prometheus.Question{Query: "count(many)", At: now, Timeout: 10 * time.Second})
	}, 30*time.Second, 100*time.Millisecond).Should(Equal(new(150.0)))
	return server
}

func open(t *testing.T, url string) *prometheus.Server {
	t.Helper()
	g := NewWithT(t)
	list, err := destination.List{}.With(url)
	g.Expect(err).NotTo(HaveOccurred())
	target, err := list.Allowed("spec.prometheus.address", url)
	g.Expect(err).NotTo(HaveOccurred())
	guard := destination.Guard{AllowLoopback: true, Protected: func(context.Context) ([]netip.Addr, error) { return nil, nil }}
	server, err := prometheus.Open(t.Context(), guard, time.Now, probe.Options{Target: target})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(server.Close)
	return server
}

func TestPrometheusAnswers(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	server := start(t, now)
	question := func(query string) prometheus.Question {
		return prometheus.Question{Query: query, At: now, Since: now.Add(-reset), Timeout: 10 * time.Second}
	}
	value := func(t *testing.T, q prometheus.Question) *float64 {
		t.Helper()
		value, err := server.Ask(t.Context(), q)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return value
	}
	atReset := func(query string, after time.Duration) prometheus.Question {
		q := question(query)
		q.At = q.Since.Add(after)
		return q
	}

	t.Run("an instant query", func(t *testing.T) {
		NewWithT(t).Expect(value(t, question(`error_rate{version="1.4.0"}`))).To(Equal(new(0.031)))
	})
	t.Run("a time since the reset that is not whole", func(t *testing.T) {
		g := NewWithT(t)
		for _, since := range []time.Duration{7900 * time.Millisecond, 900500 * time.Microsecond, time.Microsecond} {
			q := question(`error_rate{version="1.4.0"}`)
			q.Since, q.Timeout = now.Add(-since), 2500*time.Millisecond
			g.Expect(value(t, q)).To(Equal(new(0.031)), since.String())
		}
	})
	t.Run("a scalar, no number and infinity", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(value(t, question("scalar(age_minutes)"))).To(Equal(new(0.0)))
		g.Expect(value(t, question("age_minutes / 0"))).To(BeNil())
		g.Expect(value(t, question("vector(1) / 0"))).To(Equal(new(math.Inf(1))))
		g.Expect(value(t, question("no_such_metric"))).To(BeNil())
	})
	t.Run("a remark that is no warning", func(t *testing.T) {
		NewWithT(t).Expect(value(t, question("sum(rate(age_minutes[5m])) * 0"))).To(Equal(new(0.0)), "Prometheus remarks that it may not be a counter")
	})
	t.Run("nothing from before the reset", func(t *testing.T) {
		g := NewWithT(t)
		q := atReset("old", time.Minute)
		g.Expect(value(t, q)).To(BeNil())
		q.Since = time.Time{}
		g.Expect(value(t, q)).To(Equal(new(1.0)), "it is there for who looks further back")
	})
	t.Run("a baseline at the promotion", func(t *testing.T) {
		g := NewWithT(t)
		before := func(version string) prometheus.Question {
			return prometheus.Question{Query: fmt.Sprintf("error_rate{version=%q}", version), At: now.Add(-promoted), Timeout: 10 * time.Second}
		}
		g.Expect(value(t, before("1.3.0"))).To(Equal(new(0.004)))
		g.Expect(value(t, before("1.2.0"))).To(BeNil())
	})
	for query, want := range map[string]string{
		"many":                     "the query returns several series: aggregate them to one, for example with sum(…) or max(…)",
		"old[5m]":                  "the query returns a range of samples: use a function of it, for example max_over_time(…)",
		"quantile(2, age_minutes)": "the answer has warnings, so it may not be complete: run the query in Prometheus to see them",
		"sum(":                     "Prometheus answers 400 Bad Request (bad_data)",
		`"text"`:                   "the answer is not one of Prometheus: check its address, and that the query returns numbers",
		"many * on() many":         "Prometheus answers 422 Unprocessable Entity (execution)",
	} {
		t.Run(query, func(t *testing.T) {
			q := question(query)
			q.Since = time.Time{}
			_, err := server.Ask(t.Context(), q)
			NewWithT(t).Expect(probe.Cause(err)).To(Equal(want))
		})
	}
}

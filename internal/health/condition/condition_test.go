// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
)

// marker is text of another server, which must not be in any error.
const marker = "s3cr3t"

func TestPrometheusConditions(t *testing.T) {
	one := func(value float64) condition.Sample { return condition.Sample{Value: value} }
	before := func(baseline, value float64) condition.Sample {
		return condition.Sample{Value: value, Baseline: &baseline}
	}
	dated := one(1)
	dated.Release = condition.Release{Tag: "1.4.0", Version: "1.4"}
	dated.Elapsed = 3 * time.Minute
	for name, tt := range map[string]struct {
		source string
		in     condition.Sample
		want   bool
		err    string
	}{
		"a value":                          {"value <= 0.01", one(0.004), true, ""},
		"a value that is bad":              {"value <= 0.01", one(0.04), false, ""},
		"an integer":                       {"value <= 1", one(1), true, ""},
		"infinity is a number":             {"value > 1e300", one(math.Inf(1)), true, ""},
		"with a baseline":                  {"value <= baseline.orValue(0.01) * 1.2", before(0.5, 0.55), true, ""},
		"without a baseline":               {"value <= baseline.orValue(0.01) * 1.2", one(0.55), false, ""},
		"the release and the time":         {"release.tag == '1.4.0' && elapsed > duration('2m')", dated, true, ""},
		"functions of texts":               {"'a-b'.replace('-', '+') == 'a+b' && 'a,b'.split(',').join(' ') == 'a b'", one(1), true, ""},
		"format":                           {"'%.2f %s'.format([1.0, 'x']) == '1.00 x'", one(1), true, ""},
		"sets":                             {"sets.contains([1, 2], [2]) && !sets.intersects([1], [2])", one(1), true, ""},
		"an encoder":                       {"base64.encode(b'x') == 'eA=='", one(1), true, ""},
		"a regular expression":             {"'v1.4.0'.matches('^v[0-9.]+$')", one(1), true, ""},
		"lists are added":                  {"[1] + [2] == [1, 2] && ([1] + [2])[1] == 2 && 3 in [1] + [3]", one(1), true, ""},
		"texts and numbers are added":      {"'a' + 'b' == 'ab' && 1 + 2 == 3 && duration('1s') + duration('1s') == duration('2s')", one(1), true, ""},
		"a map":                            {"{'a': 1} != {'a': 2} && 'a' in {'a': 1}", one(1), true, ""},
		"macros":                           {"[value, 2.0].map(v, v * 2.0).filter(v, v > 2.0) == [4.0]", one(1), true, ""},
		"an empty baseline that is needed": {"value < baseline.value()", one(1), false, "it uses an optional value that is empty: use orValue to say what then holds"},
		"a division":                       {"1 / int(value) == 1", one(0), false, "it divides by zero"},
		"a list that is shorter":           {"[value][3] == 1.0", one(0), false, "it uses an element that a list or text does not have"},
		"a value of another type":          {"[dyn('x')].all(x, x < 1)", one(0), false, "it uses a value of another type than it expects"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e, err := condition.Prometheus(tt.source)
			g.Expect(err).NotTo(HaveOccurred())
			got, err := e.Holds(t.Context(), tt.in)
			if tt.err != "" {
				g.Expect(err).To(MatchError(tt.err))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestHTTPConditions(t *testing.T) {
	response := condition.Response{
		Status: 200, Body: `{"ok":true,"queue":{"depth":7},"name":"` + marker + `"}`, Latency: 120 * time.Millisecond,
		Headers: map[string][]string{"Content-Type": {"application/json"}, "X-A": {marker}},
	}
	text := response
	text.Body = marker
	for name, tt := range map[string]struct {
		source string
		in     condition.Response
		want   bool
		err    string
	}{
		"the default":              {"", response, true, ""},
		"the default, bad":         {"", condition.Response{Status: 301}, false, ""},
		"JSON and latency":         {"json.ok && latency < duration('500ms')", response, true, ""},
		"JSON alone":               {"json.ok", response, true, ""},
		"a number in JSON":         {"json.queue.depth <= 7", response, true, ""},
		"a header":                 {"headers['content-type'][0].startsWith('application/')", response, true, ""},
		"a body":                   {"body.contains('queue')", response, true, ""},
		"presence":                 {"has(json.queue) && !has(json.other)", response, true, ""},
		"null":                     {"json == null", condition.Response{Body: "null"}, true, ""},
		"JSON of another type":     {"json.queue", response, false, "the result is not true or false"},
		"no JSON":                  {"json.ok", text, false, "json is not defined, because the body is not a JSON document"},
		"a key that is missing":    {"json.other", response, false, `it uses the key "other", which does not exist`},
		"a key from the body":      {"json[body]", response, false, "it uses a key that does not exist"},
		"a key from a header":      {"headers[headers['x-a'][0]].size() == 0", response, false, "it uses a key that does not exist"},
		"a conversion of the body": {"int(body) == 1", text, false, "it converts a value to a type that it does not fit"},
		"a duration of the body":   {"duration(body) < duration('1s')", text, false, "it converts a value to a type that it does not fit"},
		"an expression of a body":  {"body.matches('(' + body)", text, false, "it uses an invalid regular expression"},
		"a large body":             {"true", condition.Response{Body: strings.Repeat("x", health.MostOfBody+1)}, false, "the body has more than 65536 bytes"},
		"large headers":            {"true", condition.Response{Headers: map[string][]string{"A": {strings.Repeat("x", 1<<16)}}}, false, "the headers have more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e, err := condition.HTTP(tt.source)
			g.Expect(err).NotTo(HaveOccurred())
			got, err := e.Holds(t.Context(), tt.in)
			if tt.err != "" {
				g.Expect(err).To(MatchError(tt.err))
				g.Expect(err.Error()).NotTo(ContainSubstring(marker))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func nested(open string, times int, closed string) string {
	return strings.Repeat(open, times) + strings.Repeat(closed, times)
}

func TestCompileProblems(t *testing.T) {
	for source, want := range map[string]string{
		"valu < 1.0":              "spec.prometheus.condition: undeclared reference to 'valu' (line 1, column 1)",
		"true &&\n  status == 1":  "spec.prometheus.condition: undeclared reference to 'status' (line 2, column 3)",
		"value":                   "spec.prometheus.condition: its result is double, and must be true or false",
		"[value]":                 "spec.prometheus.condition: its result is list(double), and must be true or false",
		"series.size() == 1":      "spec.prometheus.condition: undeclared reference to 'series' (line 1, column 1)",
		"value < 'x'":             "spec.prometheus.condition: found no matching overload for '_<_' applied to '(double, string)' (line 1, column 7)",
		"release.tags == ''":      `spec.prometheus.condition: release has no field "tags": use tag, digest, version or revision`,
		"value <":                 "spec.prometheus.condition: Syntax error: mismatched input '<EOF>' (line 1, column 8)",
		strings.Repeat("x", 2049): "spec.prometheus.condition: it has 2049 characters, and may have 2048",
		"":                        "spec.prometheus.condition: it is empty",
		strings.Repeat("[1].all(x, x>0)&&", 45) + "true": "spec.prometheus.condition: it has 586 values, fields and calls, with those of its macros, and may have 500: use a simpler expression",
		"baseline * 1.2 > value":                         "spec.prometheus.condition: found no matching overload for '_*_' applied to '(optional_type(double), double)' (line 1, column 10)",
		nested("[", 26, "]"):                             "spec.prometheus.condition: its lists, maps and macros contain each other more than 25 times",
		nested("optional.of(", 26, ")"):                  "spec.prometheus.condition: its lists, maps and macros contain each other more than 25 times",
		"[1]" + nested(".map(x, x)", 26, ""):             "spec.prometheus.condition: its lists, maps and macros contain each other more than 25 times",
		"[1, 'a'].size() == 2":                           "spec.prometheus.condition: expected type 'int' but found 'string' (line 1, column 5)",
		strings.Repeat("(", 400) + "true" + ")":          "spec.prometheus.condition: expression recursion limit exceeded: 250",
	} {
		t.Run(source[:min(len(source), 20)], func(t *testing.T) {
			g := NewWithT(t)
			_, err := condition.Prometheus(source)
			g.Expect(err).To(MatchError(want))
		})
	}
}

func TestExpressionsThatUseTheRelease(t *testing.T) {
	for source, want := range map[string]bool{
		"value < 1.0": false, "value < baseline.orValue(1.0)": true, "release.tag == ''": true, "elapsed > duration('1s')": false,
	} {
		g := NewWithT(t)
		e, err := condition.Prometheus(source)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e.UsesRelease()).To(Equal(want), source)
	}
}

// A whole number is no double. The problem says what to write, by the types of the
// expression, whatever CEL says about it.
func TestProblemOfAWholeNumberSaysWhatToWrite(t *testing.T) {
	for source, want := range map[string]string{
		"value <= baseline.orValue(0.01) * 2":               "write 2.0",
		"value <= baseline.orValue(1)":                      "write 1.0",
		"value <= baseline.orValue(1) * 2":                  "write 1.0",
		"value - -3 < 1.0":                                  "write -3.0",
		"100 * value < 5.0":                                 "write 100.0",
		"(value > 1.0 ? 1 : value) < 0.5":                   "write 1.0",
		"size('a') + 2 == 3 && value / 2 < 1.0":             "write 2.0",
		"value * size('a') < 1.0":                           "",
		"value < 'x'":                                       "",
		"baseline * 2 > value":                              "",
		"'ä' == 'ä' && value * 2 < 1.0":                     "write 2.0",
		"value * 0x2 < 1.0":                                 "",
		"true &&\n  value * 2 < 1.0":                        "write 2.0",
		strings.Repeat("true && ", 100) + "value * 2 < 1.0": "write 2.0",
	} {
		_, err := condition.Prometheus(source)
		g := NewWithT(t)
		g.Expect(err).To(HaveOccurred(), source)
		if want == "" {
			g.Expect(err.Error()).NotTo(ContainSubstring("write "), source)
			continue
		}
		g.Expect(err).To(MatchError(HaveSuffix(": "+want)), source)
	}
}

// All HealthChecks that exist are compiled, and few are measured.
func TestExpressionsThatAreKeptNeedLittleMemory(t *testing.T) {
	g := NewWithT(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := make([]*condition.Expression, 200)
	for i := range kept {
		var err error
		kept[i], err = condition.HTTP(fmt.Sprintf("%d > 0 && ", i+1) + strings.Repeat("[1].all(x, x>0)&&", 25) + "true")
		g.Expect(err).NotTo(HaveOccurred())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	g.Expect((int64(after.HeapAlloc)-int64(before.HeapAlloc))/int64(len(kept))).To(BeNumerically("<", 2048), "bytes of each")
	runtime.KeepAlive(kept)
}

// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/prometheus"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// marker is what servers write wherever they can. No outcome may contain it.
const marker = "s3cr3t-marker"

// noon is when the tests measure.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func open(tb testing.TB, address string) *prometheus.Server {
	tb.Helper()
	return openAt(tb, address, time.Now)
}

func openAt(tb testing.TB, address string, now func() time.Time) *prometheus.Server {
	tb.Helper()
	list, err := destination.List{}.With(address)
	if err != nil {
		tb.Fatal(err)
	}
	target, err := list.Allowed("spec.prometheus.address", address)
	if err != nil {
		tb.Fatal(err)
	}
	guard := destination.Guard{AllowLoopback: true, Protected: func(context.Context) ([]netip.Addr, error) { return nil, nil }}
	server, err := prometheus.Open(tb.Context(), guard, now, probe.Options{Target: target})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	return server
}

func serve(tb testing.TB, handler http.HandlerFunc) string {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return server.URL
}

// answering returns a server with one answer.
func answering(tb testing.TB, status int, body string) *prometheus.Server {
	tb.Helper()
	return open(tb, serve(tb, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Marker", marker)
		w.Header().Set("Location", "http://169.254.169.254/"+marker)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
}

func success(kind, result string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":%s}}`, kind, result)
}

func question() prometheus.Question {
	return prometheus.Question{Query: "up", At: noon, Since: noon.Add(-10 * time.Minute), Timeout: 10 * time.Second}
}

func belowOne(value float64, _ *float64) (bool, error) { return value < 1, nil }

func TestAnswerIsJudged(t *testing.T) {
	const good, bad, failed, none = v1alpha1.MeasurementGood, v1alpha1.MeasurementBad, v1alpha1.MeasurementError, v1alpha1.MeasurementNoData
	outcome := func(result v1alpha1.MeasurementResult, value float64) health.Outcome {
		return health.Outcome{Result: result, Value: measure.Number(value)}
	}
	series := func(n int) string {
		one := `{"metric":{"a":"` + marker + `"},"value":[1,"0.5"]},`
		return success("vector", "["+strings.TrimSuffix(strings.Repeat(one, n), ",")+"]")
	}
	several := health.Outcome{Result: failed, Message: "the query returns several series: aggregate them to one, for example with sum(…) or max(…)"}
	tooLarge := health.Outcome{Result: failed, Message: "the answer of Prometheus has more than 64 KiB: aggregate the query to one series, for example with sum(…) or max(…)"}
	foreign := health.Outcome{Result: failed, Message: "the answer is not one of Prometheus: check its address, and that the query returns numbers"}
	fails := func(message string) health.Outcome { return health.Outcome{Result: failed, Message: message} }
	for name, test := range map[string]struct {
		status int
		body   string
		want   health.Outcome
	}{
		"one series":            {200, series(1), outcome(good, 0.5)},
		"a large value":         {200, success("vector", `[{"metric":{},"value":[1,"1.5"]}]`), outcome(bad, 1.5)},
		"a scalar":              {200, success("scalar", `[1,"0.5"]`), outcome(good, 0.5)},
		"infinity":              {200, success("scalar", `[1,"+Inf"]`), outcome(bad, math.Inf(1))},
		"less than all numbers": {200, success("scalar", `[1,"-Inf"]`), outcome(good, math.Inf(-1))},
		"no series":             {200, success("vector", `[]`), health.Outcome{Result: none, Message: "the query returns no number"}},
		"a range":               {200, success("matrix", `[{"metric":{},"values":[[1,"2"],[2,"0.5"]]}]`), fails("the query returns a range of samples: use a function of it, for example max_over_time(…)")},
		"NaN":                   {200, success("scalar", `[1,"NaN"]`), health.Outcome{Result: none, Message: "the query returns no number"}},
		"NaN beside a number":   {200, success("vector", `[{"metric":{"a":"b"},"value":[1,"NaN"]},{"metric":{},"value":[1,"0.5"]}]`), several},
		"warnings": {200, strings.Replace(series(1), `{`, `{"warnings":["`+marker+`","`+marker+`"],`, 1),
			fails("the answer has warnings, so it may not be complete: run the query in Prometheus to see them")},
		"infos":                {200, strings.Replace(series(1), `{`, `{"infos":["`+marker+`"],`, 1), outcome(good, 0.5)},
		"several series":       {200, series(2), several},
		"a hundred series":     {200, series(100), several},
		"a string":             {200, success("string", `[1,"`+marker+`"]`), foreign},
		"native histograms":    {200, success("vector", `[{"metric":{},"histogram":[1,{"count":"1","sum":"1","buckets":[]}]}]`), fails("the query returns native histograms: use histogram_quantile, histogram_avg or histogram_count")},
		"5 MiB":                {200, success("vector", `[{"metric":{"a":"`+strings.Repeat("x", 64<<10)+`"},"value":[1,"1"]}]`), tooLarge},
		"a million objects":    {200, success("vector", "["+strings.TrimSuffix(strings.Repeat("{},", 1<<20), ",")+"]"), tooLarge},
		"a million warnings":   {200, `{"warnings":[` + strings.TrimSuffix(strings.Repeat(`"",`, 1<<20), ",") + `]}`, tooLarge},
		"null":                 {200, success("vector", "[null]"), foreign},
		"a wrong query":        {400, `{"status":"error","errorType":"bad_data","error":"` + marker + `"}`, fails("Prometheus answers 400 Bad Request (bad_data)")},
		"a failed query":       {422, `{"status":"error","errorType":"execution","error":"` + marker + `"}`, fails("Prometheus answers 422 Unprocessable Entity (execution)")},
		"a type of its own":    {422, `{"status":"error","errorType":"` + marker + `","error":"` + marker + `"}`, fails("Prometheus answers 422 Unprocessable Entity")},
		"no login":             {401, marker, fails("Prometheus answers 401 Unauthorized: check secretRef, and what it permits")},
		"no permission":        {403, marker, fails("Prometheus answers 403 Forbidden: check secretRef, and what it permits")},
		"not there":            {404, marker, fails("Prometheus answers 404 Not Found")},
		"an overload":          {503, `{"status":"error","errorType":"timeout","error":"` + marker + `"}`, fails("Prometheus answers 503 Service Unavailable")},
		"a redirect":           {302, marker, fails("Prometheus answers 302 Found: redirects are not followed, so set the address that it leads to")},
		"a page":               {200, "<html>" + marker, foreign},
		"another document":     {200, `{"` + marker + `":1}`, foreign},
		"an error that is one": {200, `{"status":"error","errorType":"execution","error":"` + marker + `"}`, fails("Prometheus answers 200 OK (execution)")},
		"numbers in words":     {200, success("vector", `[{"metric":{},"value":[1,"`+marker+`"]}]`), foreign},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			value, err := answering(t, test.status, test.body).Ask(t.Context(), question())
			got := prometheus.Judge(value, err, nil, belowOne)
			g.Expect(got).To(Equal(test.want))
			g.Expect(fmt.Sprintf("%+v", got)).NotTo(ContainSubstring(marker))
		})
	}
}

func TestErrorOfAConditionIsShownOnlyInOurWords(t *testing.T) {
	quoting := func(float64, *float64) (bool, error) { return false, errors.New(marker) }
	NewWithT(t).Expect(prometheus.Judge(new(2.0), nil, new(1.0), quoting)).To(Equal(health.Outcome{
		Result: v1alpha1.MeasurementError, Value: "2", Baseline: "1",
		Message: "the condition cannot be evaluated for this response: use has() for fields that may be missing",
	}))
}

// asked returns what a server is asked by a question.
func asked(t *testing.T, q prometheus.Question) (path string, parameters url.Values) {
	t.Helper()
	server := open(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		path, parameters = r.URL.Path, r.Form
		_, _ = w.Write([]byte(success("vector", "[]")))
	})+"/prometheus/")
	if _, err := server.Ask(t.Context(), q); err != nil {
		t.Error(err)
	}
	return path, parameters
}

func TestQuerySeesNothingFromBeforeTheReset(t *testing.T) {
	for name, test := range map[string]struct {
		since time.Time
		want  string
	}{
		"long after the reset":      {noon.Add(-time.Hour), "5m0s"},
		"soon after the reset":      {noon.Add(-90 * time.Second), "1m30s"},
		"at the reset":              {noon, "1ms"},
		"before the reset by clock": {noon.Add(time.Second), "1ms"},
		"without a reset":           {time.Time{}, "5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			q := question()
			q.Since, q.At = test.since, noon.Add(123456*time.Nanosecond)
			path, parameters := asked(t, q)
			NewWithT(t).Expect(path).To(Equal("/prometheus/api/v1/query"))
			NewWithT(t).Expect(parameters).To(Equal(url.Values{
				"query": {"up"}, "time": {"1772452800"}, "timeout": {"10s"}, "limit": {"2"}, "lookback_delta": {test.want}, "partial_response": {"false"},
			}))
		})
	}
}

// A clock that is behind asks for a time before the release was rolled out.
func TestClocksMustNotDiffer(t *testing.T) {
	for name, test := range map[string]struct {
		date string
		want string
	}{
		"the same time":  {noon.Format(http.TimeFormat), ""},
		"a little later": {noon.Add(30 * time.Second).Format(http.TimeFormat), ""},
		"later":          {noon.Add(31 * time.Second).Format(http.TimeFormat), "the clocks of Prometheus and of this controller differ by 31s: synchronize them"},
		"earlier":        {noon.Add(-185 * time.Second).Format(http.TimeFormat), "the clocks of Prometheus and of this controller differ by 3m: synchronize them"},
		"much later":     {noon.Add(25 * time.Hour).Format(http.TimeFormat), "the clocks of Prometheus and of this controller differ by 25h: synchronize them"},
		"no date":        {"", ""},
		"another text":   {marker, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = []string{test.date}
				_, _ = w.Write([]byte(success("vector", "[]")))
			})
			_, err := openAt(t, url, func() time.Time { return noon }).Ask(t.Context(), question())
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(probe.Cause(err)).To(Equal(test.want))
		})
	}
}

func TestPrometheusThatIsSilentIsAnError(t *testing.T) {
	g := NewWithT(t)
	release := make(chan struct{})
	server := open(t, serve(t, func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() { close(release) }) // before the server waits for its requests
	q := question()
	q.Timeout = 20 * time.Millisecond
	_, err := server.Ask(t.Context(), q)
	g.Expect(prometheus.Judge(nil, err, nil, belowOne)).To(Equal(
		health.Outcome{Result: v1alpha1.MeasurementError, Message: "no answer within the timeout"}))
}

// FuzzAnswer checks that no answer leads to a panic, to more numbers than the limits allow,
// or to a text of the server in the outcome.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		success("vector", `[{"metric":{"a":"b"},"value":[1,"0.5"]}]`), success("scalar", `[1,"NaN"]`), success("string", `[1,"a"]`),
		success("matrix", `[{"metric":{},"values":[[1,"2"],[2,"+Inf"]],"histograms":[]}]`), success("vector", `[{"histogram":[1,{"buckets":[[0,"1","2","3"]]}]}]`),
		`{"status":"error","errorType":"execution","error":"x"}`, `{"status":"success","data":null}`, `[[[[`, `{"warnings":[""]}`, "",
	} {
		f.Add(200, body)
		f.Add(422, body)
	}
	var status int
	var body string
	address := serve(f, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	f.Fuzz(func(t *testing.T, code int, text string) {
		status, body = 200+int(uint(code)%400), text
		value, err := open(t, address).Ask(t.Context(), question())
		outcome := prometheus.Judge(value, err, nil, belowOne)
		if outcome.Result == v1alpha1.MeasurementError && err == nil {
			t.Errorf("%q: %+v without an error", text, outcome)
		}
		if len(text) > 12 && strings.Contains(outcome.Message, text) {
			t.Errorf("%q is in %q", text, outcome.Message)
		}
	})
}

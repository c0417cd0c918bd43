// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"

	_ "github.com/fluxrollouts/rollout-controller/test/fixture" // sets the timeouts of tests
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEventsArriveInTheirOrder(t *testing.T) {
	e := openEndpoint(t, answer(http.StatusAccepted))
	s := e.sender(t)
	for n := range 100 {
		s.Send(event(n))
	}
	e.Eventually(s.counts).Should(Equal(counts{accepted: 100})) // the endpoint counts before the sender does
	e.Expect(e.messages()).To(Equal(numbers(0, 100)))
}

func TestDeliveryByTheAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		answers []int // the last one is repeated
		posted  int
		want    counts
	}{
		"taken":                                {[]int{202}, 1, counts{accepted: 1}},
		"had already":                          {[]int{429}, 1, counts{duplicate: 1}},
		"not now, then taken":                  {[]int{500, 503, 202}, 3, counts{accepted: 1}},
		"never now":                            {[]int{500}, 5, counts{undeliverable: 1}},
		"refused":                              {[]int{400}, 1, counts{rejected: 1}},
		"not the address of what takes events": {[]int{404}, 1, counts{rejected: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			e := openEndpoint(t, answer(test.answers...))
			s := e.sender(t)
			s.Send(event(1))
			e.Eventually(s.counts).Should(Equal(test.want))
			e.Expect(e.messages()).To(HaveLen(test.posted))
		})
	}
}

func TestOldestGiveWayWhileTheEndpointHangs(t *testing.T) {
	e := openEndpoint(t, hang)
	s := e.sender(t, func(s *Sender) { s.patience, s.queue.most = time.Hour, 10 })
	s.Send(event(0))
	e.Eventually(e.messages).Should(HaveLen(1)) // the endpoint hangs with this one
	for n := 1; n <= 100; n++ {
		s.Send(event(n))
	}
	e.Expect(s.counts()).To(Equal(counts{queueFull: 90, length: 10}))
	e.Expect(waiting(s)).To(Equal(numbers(91, 101)))
}

// One namespace sends hundreds of events at a time, for example because it has many
// targets. Another sends one: that one arrives next, and none of its events is dropped.
func TestNamespacesTakeTurns(t *testing.T) {
	e := openEndpoint(t, hang)
	s := e.sender(t, func(s *Sender) { s.patience, s.queue.most = time.Hour, 10 })
	s.Send(of("loud", event(0)))
	e.Eventually(e.messages).Should(HaveLen(1)) // the endpoint hangs with this one
	s.Send(of("quiet", event(1000)))
	for n := 1; n <= 100; n++ {
		s.Send(of("loud", event(n)))
	}
	s.Send(of("quiet", event(1001)))
	s.Send(of("other", event(2000)))
	e.Expect(s.counts()).To(Equal(counts{queueFull: 93, length: 10}))
	e.Expect(waiting(s)).To(Equal([]string{"1000", "94", "2000", "1001", "95", "96", "97", "98", "99", "100"}))
}

func TestEventThatWasInterruptedIsTheNext(t *testing.T) {
	q := newQueue(10)
	for n, namespace := range []string{"one", "one", "two"} {
		q.push(of(namespace, event(n)))
	}
	first, _ := q.pop()
	q.putBack(first)
	NewWithT(t).Expect(waiting(&Sender{queue: q})).To(Equal([]string{"0", "2", "1"}))
}

func TestHungEndpointCostsAttemptsAndIsReportedOnce(t *testing.T) {
	e := openEndpoint(t, hang)
	s := e.sender(t, func(s *Sender) { s.patience = 100 * time.Millisecond }) // enough for a request to arrive on a busy machine
	for n := range 3 {
		s.Send(event(n))
	}
	e.Eventually(s.counts).Should(Equal(counts{undeliverable: 3}))
	e.Eventually(e.messages).Should(HaveLen(3 * attempts))
	e.Expect(e.logged("cannot be delivered")).To(Equal(1))

	e.behave(answer(http.StatusAccepted))
	s.Send(event(3))
	s.Send(event(4))
	e.Eventually(s.counts).Should(Equal(counts{undeliverable: 3, accepted: 2}))
	e.Expect(e.logged("delivered again")).To(Equal(1))
}

func TestPausesGrowFromOneEventToTheNext(t *testing.T) {
	g := NewWithT(t)
	p := pauses()
	var slept []time.Duration
	for range 2 * (attempts - 1) {
		slept = append(slept, p.Step())
	}
	second := time.Second
	g.Expect(slept).To(Equal([]time.Duration{
		second, 2 * second, 4 * second, 8 * second, 15 * second, 15 * second, 15 * second, 15 * second}))
}

func TestRefusedConnectionIsTriedAgain(t *testing.T) {
	e := openEndpoint(t, answer(http.StatusAccepted))
	e.server.Close()
	s := e.sender(t)
	s.Send(event(1))
	e.Eventually(s.counts).Should(Equal(counts{undeliverable: 1}))
}

func TestWaitingEventsAreDeliveredBeforeTheProcessEnds(t *testing.T) {
	e := openEndpoint(t, answer(http.StatusAccepted))
	s := e.make(t)
	for n := range 20 {
		s.Send(event(n))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	e.Expect(s.Start(ended)).To(Succeed())
	e.Expect(e.messages()).To(Equal(numbers(0, 20)))
	s.Send(event(20))
	e.Expect(s.counts()).To(Equal(counts{accepted: 20, shutdown: 1}), "what comes later is lost, and counted")
}

func TestProcessEndsThoughTheEndpointHangs(t *testing.T) {
	e := openEndpoint(t, hang)
	s := e.make(t, func(s *Sender) { s.patience = time.Hour })
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Start(ctx) }()
	for n := range 3 {
		s.Send(event(n))
	}
	e.Eventually(e.messages).Should(HaveLen(1))
	end()
	e.Eventually(done, 10*time.Second).Should(Receive(BeNil()))
	e.Expect(s.counts()).To(Equal(counts{shutdown: 3}))
}

func TestAddressMustBeAnHTTPURL(t *testing.T) {
	for _, address := range []string{"notification-controller", "://x", "localhost:9090", "ftp://x/"} {
		_, err := New(address, logr.Discard(), prometheus.NewRegistry())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("must be an HTTP URL")), address)
	}
}

// counts are the values of the metrics that are not zero.
type counts struct {
	accepted, duplicate                          int
	queueFull, undeliverable, rejected, shutdown int
	length                                       int
}

func (s *Sender) counts() counts {
	var c counts
	registry := prometheus.NewRegistry()
	if err := s.metrics.register(registry); err != nil {
		panic(err)
	}
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	places := map[string]*int{
		"accepted": &c.accepted, "duplicate": &c.duplicate, "queue_full": &c.queueFull,
		"undeliverable": &c.undeliverable, "rejected": &c.rejected, "shutdown": &c.shutdown,
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetGauge() != nil {
				c.length = int(m.GetGauge().GetValue())
				continue
			}
			*places[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
		}
	}
	return c
}

// endpoint is the server that receives the events.
type endpoint struct {
	*WithT
	server *httptest.Server
	ended  chan struct{}

	mu     sync.Mutex
	got    []string
	answer func(e *endpoint, n int) int // returns the status of the nth answer
	log    bytes.Buffer
}

func openEndpoint(t *testing.T, answer func(*endpoint, int) int) *endpoint {
	t.Helper()
	e := &endpoint{WithT: NewWithT(t), ended: make(chan struct{}), answer: answer}
	e.server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.server.Close)
	t.Cleanup(func() { close(e.ended) })
	return e
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var event eventv1.Event
	if err := json.Unmarshal(body, &event); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.got = append(e.got, event.Message)
	n, answer := len(e.got)-1, e.answer
	e.mu.Unlock()
	w.WriteHeader(answer(e, n))
}

func (e *endpoint) messages() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.got...)
}

func (e *endpoint) behave(answer func(*endpoint, int) int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

func answer(codes ...int) func(*endpoint, int) int {
	return func(_ *endpoint, n int) int { return codes[min(n, len(codes)-1)] }
}

func hang(e *endpoint, _ int) int {
	<-e.ended
	return http.StatusAccepted
}

func (e *endpoint) logged(text string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Count(e.log.String(), text)
}

// make returns a Sender that is not started and has short pauses.
func (e *endpoint) make(t *testing.T, options ...func(*Sender)) *Sender {
	t.Helper()
	log := funcr.New(func(_, args string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.log.WriteString(args + "\n")
	}, funcr.Options{})
	s, err := New(e.server.URL, log, prometheus.NewRegistry())
	e.Expect(err).NotTo(HaveOccurred())
	s.pauses = wait.Backoff{Duration: time.Millisecond}
	for _, option := range options {
		option(s)
	}
	return s
}

// sender returns a Sender that runs until the test ends.
func (e *endpoint) sender(t *testing.T, options ...func(*Sender)) *Sender {
	t.Helper()
	s := e.make(t, options...)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		end()
		e.Expect(<-done).To(Succeed())
	})
	return s
}

// of sets the namespace of an event.
func of(namespace string, e eventv1.Event) eventv1.Event {
	e.InvolvedObject.Namespace = namespace
	return e
}

func event(n int) eventv1.Event { return eventv1.Event{Message: fmt.Sprint(n)} }

func numbers(from, to int) []string {
	var all []string
	for n := from; n < to; n++ {
		all = append(all, fmt.Sprint(n))
	}
	return all
}

// waiting removes and returns the waiting events.
func waiting(s *Sender) []string {
	var all []string
	for next, ok := s.queue.pop(); ok; next, ok = s.queue.pop() {
		all = append(all, next.Message)
	}
	return all
}

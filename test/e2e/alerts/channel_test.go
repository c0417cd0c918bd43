// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	alertv1 "github.com/fluxcd/notification-controller/api/v1beta3"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// channel is a webhook that stands for the chat room of a team.
type channel struct {
	*httptest.Server
	mu    sync.Mutex
	heard []eventv1.Event
}

// openChannel creates a Provider for a webhook and an Alert on the sources in the test's
// namespace. It waits until events about them arrive.
func openChannel(s *env.Env, name string, sources ...notificationv1.CrossNamespaceObjectReference) *channel {
	s.T.Helper()
	if err := alertv1.AddToScheme(plane.Client().Scheme()); err != nil {
		s.T.Fatal(err)
	}
	c := &channel{}
	c.Server = httptest.NewServer(c)
	s.T.Cleanup(c.Close)
	s.Create(
		&alertv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Spec: alertv1.ProviderSpec{
			Type: alertv1.GenericProvider, Address: c.URL,
		}},
		alert(s, name, sources...),
	)
	c.awaitAlert(s, sources[0])
	return c
}

func alert(s *env.Env, name string, sources ...notificationv1.CrossNamespaceObjectReference) *alertv1.Alert {
	a := &alertv1.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	a.Spec.ProviderRef.Name = name
	a.Spec.EventSeverity = eventv1.EventSeverityInfo
	a.Spec.EventSources = sources
	return a
}

// awaitAlert sends events until one arrives: notification-controller reads a new Alert
// only after some time.
func (c *channel) awaitAlert(s *env.Env, source notificationv1.CrossNamespaceObjectReference) {
	s.T.Helper()
	request, err := http.NewRequestWithContext(s.T.Context(), http.MethodPost, plane.EventsURL(), http.NoBody)
	if err != nil {
		s.T.Fatal(err)
	}
	words := 0
	env.Eventually(s.T, "an Alert that is heard", func() (bool, string) {
		words++
		test := eventv1.Event{
			InvolvedObject: corev1.ObjectReference{APIVersion: source.APIVersion, Kind: source.Kind, Namespace: s.Namespace, Name: s.Name},
			Severity:       eventv1.EventSeverityInfo, Reason: "Test", Message: fmt.Sprint(words), ReportingController: "test",
		}
		body, err := json.Marshal(test)
		if err != nil {
			s.T.Fatal(err)
		}
		status := post(request, plane.EventsURL(), body)
		return len(c.from("test")) > 0, fmt.Sprintf("the last answer was %d", status)
	})
}

func (c *channel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var event eventv1.Event
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, event)
}

// from returns the events that a controller sent.
func (c *channel) from(controller string) []eventv1.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.heard), func(e eventv1.Event) bool { return e.ReportingController != controller })
}

// ours returns the events of the Rollout controller.
func (c *channel) ours() []eventv1.Event { return c.from("rollout-controller") }

// moment matches a point in time within a message.
var moment = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T[0-9:]+Z`)

// lines returns events as text, without points in time. The lines are sorted, because
// notification-controller delivers in no order.
func lines(events []eventv1.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, moment.ReplaceAllString(fmt.Sprintf("%s %s %s: %s", e.InvolvedObject.Kind, e.Severity, e.Reason, e.Message), "TIME"))
	}
	slices.Sort(all)
	return all
}

// await waits until the events that have arrived are those of the wanted lines.
func (c *channel) await(t *testing.T, want []string) {
	t.Helper()
	slices.Sort(want)
	env.Eventually(t, strings.Join(want, "\n"), func() (bool, string) {
		got := lines(c.ours())
		return slices.Equal(got, want), strings.Join(got, "\n")
	})
}

// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	alertv1 "github.com/fluxcd/notification-controller/api/v1beta3"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Channel is a webhook that stands for the chat room of a team.
type Channel struct {
	*httptest.Server
	mu    sync.Mutex
	heard []eventv1.Event
}

// OpenChannel creates a Provider for a webhook and an Alert on the sources in the test's
// namespace, for events of a severity. It waits until events about them arrive.
func (e *Env) OpenChannel(name, severity string, sources ...notificationv1.CrossNamespaceObjectReference) *Channel {
	e.T.Helper()
	if err := alertv1.AddToScheme(e.Plane.Client().Scheme()); err != nil {
		e.T.Fatal(err)
	}
	c := &Channel{}
	c.Server = httptest.NewServer(c)
	e.T.Cleanup(c.Close)
	e.Create(
		&alertv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}, Spec: alertv1.ProviderSpec{
			Type: alertv1.GenericProvider, Address: c.URL,
		}},
		e.Alert(name, severity, sources...),
	)
	c.awaitAlert(e, severity, sources[0])
	return c
}

// Alert returns an Alert on sources, with a Provider of the same name.
func (e *Env) Alert(name, severity string, sources ...notificationv1.CrossNamespaceObjectReference) *alertv1.Alert {
	a := &alertv1.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	a.Spec.ProviderRef.Name = name
	a.Spec.EventSeverity = severity
	a.Spec.EventSources = sources
	return a
}

// awaitAlert sends events until one arrives: notification-controller reads a new Alert
// only after some time.
func (c *Channel) awaitAlert(e *Env, severity string, source notificationv1.CrossNamespaceObjectReference) {
	e.T.Helper()
	words := 0
	Eventually(e.T, "an Alert that is heard", func() (bool, string) {
		words++
		status := e.post(eventv1.Event{
			InvolvedObject: corev1.ObjectReference{APIVersion: source.APIVersion, Kind: source.Kind, Namespace: e.Namespace, Name: e.Name},
			Severity:       severity, Reason: "Test", Message: fmt.Sprint(words), ReportingController: "test",
		})
		return len(c.from("test")) > 0, fmt.Sprintf("the last answer was %d", status)
	})
}

// post sends an event to notification-controller, and returns the status of the response.
func (e *Env) post(event eventv1.Event) int {
	e.T.Helper()
	body, err := json.Marshal(event)
	if err != nil {
		e.T.Fatal(err)
	}
	request, err := http.NewRequestWithContext(e.T.Context(), http.MethodPost, e.Plane.EventsURL(), bytes.NewReader(body))
	if err != nil {
		e.T.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return http.StatusBadGateway
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func (c *Channel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
func (c *Channel) from(controller string) []eventv1.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.heard), func(e eventv1.Event) bool { return e.ReportingController != controller })
}

// Ours returns the events of the Rollout controller.
func (c *Channel) Ours() []eventv1.Event { return c.from("rollout-controller") }

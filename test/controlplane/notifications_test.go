// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

func TestNotificationControllerTakesEvents(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{Notifications: true})
	event := `{"involvedObject":{"kind":"Kustomization","namespace":"default","name":"shop"},
		"severity":"info","timestamp":"2026-01-01T00:00:00Z","message":"hello","reason":"Test","reportingController":"test"}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.EventsURL(), strings.NewReader(event))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusAccepted {
		t.Errorf("got %s; want 202", response.Status)
	}
}

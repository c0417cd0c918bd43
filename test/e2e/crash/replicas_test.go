// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/stage"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// elected lets one of several replicas act, as the shipped Deployment does.
var elected = []string{"--leader-elect", "--leader-election-namespace=default"}

func TestOfTwoReplicasOneActsAndTheOtherTakesOver(t *testing.T) {
	plane := stage.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true}, elected...)
	s := &application{Stage: stage.New(t, plane)}
	s.CreateFlux()
	s.Create(s.Rollout())
	s.release("1.0.0")
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded) // so the first one leads

	probes, metrics := freeAddress(t), freeAddress(t)
	program, err := scenario.BuildController(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plane.StartProcess("second-controller", program, append([]string{
		"--kubeconfig=" + plane.Kubeconfig(), "--health-probe-bind-address=" + probes,
		"--metrics-bind-address=" + metrics, "--metrics-secure=false",
	}, elected...), nil); err != nil {
		t.Fatal(err)
	}
	answers(t, "http://"+probes+"/healthz", "ok")
	answers(t, "http://"+probes+"/readyz", "ok")
	answers(t, "http://"+metrics+"/metrics", "leader_election_master_status{name=\"8108ddc4.kuberik.com\"} 0")

	s.release("1.1.0")
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	if err := plane.Controller.Kill(); err != nil {
		t.Fatal(err)
	}
	s.release("1.2.0")
	s.AwaitState("1.2.0", v1alpha1.BakeSucceeded)
	answers(t, "http://"+metrics+"/metrics", "leader_election_master_status{name=\"8108ddc4.kuberik.com\"} 1")

	s.hasEveryReleaseOnce([]string{"1.0.0", "1.1.0", "1.2.0"})
	promoted := stage.Told(s.Events(s.Rollout()), v1alpha1.BakeTimeDeployingReason)
	if len(promoted) != 3 {
		t.Errorf("promotions were told %d times, want 3: %q", len(promoted), promoted)
	}
	repository := s.OCIRepository("")
	s.Read(repository)
	if diff := cmp.Diff(int64(4), repository.Generation); diff != "" {
		t.Errorf("the target was not written once for each release, generation (-want +got):\n%s", diff)
	}
}

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// answers waits until the URL answers with a text that contains another.
func answers(t *testing.T, url, text string) {
	t.Helper()
	stage.Eventually(t, url+" answers "+text, func() (bool, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return false, err.Error()
		}
		return response.StatusCode == http.StatusOK && strings.Contains(string(body), text), response.Status
	})
}

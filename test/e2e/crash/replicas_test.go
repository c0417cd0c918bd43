// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// elected makes one of several replicas act, as in the shipped Deployment, except for the
// time that the others wait.
var elected = []string{
	"--leader-elect", "--leader-election-lease-duration=" + leaseDuration.String(),
	"--leader-election-renew-deadline=8s", "--leader-election-retry-period=1s",
}

const leaseDuration = 10 * time.Second

func TestSecondReplicaTakesOver(t *testing.T) {
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true}, elected...)
	const bake = 3 * time.Second
	s := env.NewApplication(t, plane, func(spec *v1alpha1.RolloutSpec) { spec.BakeTime = &metav1.Duration{Duration: bake} })
	s.Release("1.0.0")
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded) // the first one leads now

	probes, metrics := env.FreeAddress(t), env.FreeAddress(t)
	second := append([]string{
		"--health-probe-bind-address=" + probes, "--metrics-addr=" + metrics, "--metrics-secure=false",
	}, elected...)
	kubeconfig, err := scenario.Credentials(plane.ControlPlane, scenario.Account)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plane.StartAs("second-controller", kubeconfig, nil, second...); err != nil {
		t.Fatal(err)
	}
	answers(t, "http://"+probes+"/healthz", "ok")
	answers(t, "http://"+probes+"/readyz", "ok")
	answers(t, "http://"+metrics+"/metrics", "leader_election_master_status{name=\"8108ddc4.kuberik.com\"} 0")

	s.SetBakeTime(time.Hour)
	s.Release("1.1.0")
	s.AwaitState("1.1.0", v1alpha1.BakeInProgress)
	if err := plane.Controller.Kill(); err != nil {
		t.Fatal(err)
	}
	s.SetBakeTime(bake)
	dead := lease(s.Env)
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	answers(t, "http://"+metrics+"/metrics", "leader_election_master_status{name=\"8108ddc4.kuberik.com\"} 1")
	waited := lease(s.Env).handedOverFrom(t, dead)
	if waited < leaseDuration-time.Second || waited > 2*leaseDuration {
		t.Errorf("the Lease says that the second replica began %s after the first one's last sign of life; the lease is %s", waited, leaseDuration)
	}
	s.Release("1.2.0")
	s.AwaitState("1.2.0", v1alpha1.BakeSucceeded)

	s.HasEveryReleaseOnce([]string{"1.0.0", "1.1.0", "1.2.0"})
	promoted := env.WithReason(s.Events(s.Rollout()), v1alpha1.BakeTimeDeployingReason)
	if len(promoted) != 3 {
		t.Errorf("promotions were reported %d times, want 3: %q", len(promoted), promoted)
	}
	s.WroteEachTargetOnce(3)
}

// leaseRecord is the spec of the replicas' Lease.
type leaseRecord struct{ coordinationv1.LeaseSpec }

func lease(s *env.Env) leaseRecord {
	s.T.Helper()
	record := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.Namespace, Name: "8108ddc4.kuberik.com"}}
	s.Read(record)
	return leaseRecord{record.Spec}
}

// handedOverFrom returns the time from the last renewal by the earlier leader to the
// start of the next one. The leaders wrote both times themselves.
func (l leaseRecord) handedOverFrom(t *testing.T, before leaseRecord) time.Duration {
	t.Helper()
	if *l.HolderIdentity == *before.HolderIdentity || *l.LeaseTransitions != *before.LeaseTransitions+1 {
		t.Errorf("the Lease did not pass once from %s to another: %s, %d transitions after %d",
			*before.HolderIdentity, *l.HolderIdentity, *l.LeaseTransitions, *before.LeaseTransitions)
	}
	return l.AcquireTime.Sub(before.RenewTime.Time)
}

// answers waits until the response from the URL contains a text.
func answers(t *testing.T, url, text string) {
	t.Helper()
	env.Eventually(t, url+" answers "+text, func() (bool, string) {
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

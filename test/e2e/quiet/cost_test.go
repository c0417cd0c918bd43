// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

var (
	rolloutStatus = controlplane.Request{Verb: "PATCH", Group: "kuberik.com", Resource: "rollouts", Subresource: "status"}
	repository    = controlplane.Request{Verb: "PATCH", Group: "source.toolkit.fluxcd.io", Resource: "ocirepositories"}
	kustomization = controlplane.Request{Verb: "PATCH", Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations"}
)

func TestCostOfAPromotion(t *testing.T) {
	for name, tt := range map[string]struct {
		baked        bool
		statusWrites int
		events       []string
	}{
		"without a bake": {
			statusWrites: 2,
			events:       []string{v1alpha1.BakeTimeDeployingReason, v1alpha1.DeploymentSucceededReason},
		},
		"with a bake": {
			baked:        true,
			statusWrites: 3,
			events: []string{
				v1alpha1.BakeTimeDeployingReason, v1alpha1.BakeTimeStartedReason, v1alpha1.BakeTimePassedReason,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := env.New(t, plane)
			prepare(s, tt.baked)
			eventsBefore := events(s)

			got := requestsDuring(t, func() {
				s.Publish(s.ConfigRelease("1.1.0"))
				s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
			})

			want := controlplane.Requests{rolloutStatus: tt.statusWrites, repository: 1, kustomization: 1}
			if diff := cmp.Diff(want, promotionWrites(got)); diff != "" {
				t.Errorf("writes of the Rollout and its targets (-want +got):\n%s", diff)
			}
			sent := events(s)[len(eventsBefore):]
			if diff := cmp.Diff(tt.events, reasons(sent, "rollout-controller")); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if counted := got.Count(isEventWrite); counted != len(sent) {
				t.Errorf("%d events were written, but %d are there", counted, len(sent))
			}
		})
	}
}

// prepare deploys 1.0.0 to two targets, an OCIRepository and a Kustomization with a
// variable, and waits until there are no more requests.
func prepare(s *env.Env, baked bool) {
	s.T.Helper()
	objects := s.Flux(plane.Registry.Host())
	objects[len(objects)-1].SetAnnotations(map[string]string{
		v1alpha1.SubstituteAnnotationPrefix + "VERSION" + v1alpha1.SubstituteAnnotationSuffix: s.Name,
	})
	s.Create(objects...)
	rollout := s.Rollout()
	if baked {
		s.Create(s.HealthCheck())
		s.Baked(time.Second, time.Minute)(&rollout.Spec)
	}
	s.Publish(s.ConfigRelease("1.0.0"))
	s.Create(rollout)
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	awaitQuiet(s.T)
}

// promotionWrites returns all writes of the Rollout, and the writes of the targets'
// specs. Flux writes only the status of the targets.
func promotionWrites(all controlplane.Requests) controlplane.Requests {
	writes := controlplane.Requests{}
	for request, n := range all {
		ofTarget := request.Subresource == "" && (request.Resource == "ocirepositories" || request.Resource == "kustomizations")
		if request.IsWrite() && (request.Resource == "rollouts" || ofTarget) {
			writes[request] = n
		}
	}
	return writes
}

func isEventWrite(r controlplane.Request) bool { return r.Resource == "events" && r.IsWrite() }

// events returns the events in the test's namespace, including Flux's, in the order in
// which they were written.
func events(s *env.Env) []corev1.Event {
	s.T.Helper()
	list := &corev1.EventList{}
	if err := plane.Client().List(s.T.Context(), list, client.InNamespace(s.Namespace)); err != nil {
		s.T.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list.Items
}

func reasons(events []corev1.Event, component string) []string {
	var all []string
	for i := range events {
		if events[i].Source.Component == component {
			all = append(all, events[i].Reason)
		}
	}
	return all
}

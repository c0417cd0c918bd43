// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// shop creates the Deployment at a version.
func (s *stage) shop(version string) *appsv1.Deployment {
	s.t.Helper()
	d := &appsv1.Deployment{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(deployment, "VERSION", version)), d); err != nil {
		s.t.Fatal(err)
	}
	s.create(d)
	return d
}

func (s *stage) pods() []corev1.Pod {
	s.t.Helper()
	var pods corev1.PodList
	if err := s.Client().List(s.t.Context(), &pods, client.InNamespace("default")); err != nil {
		s.t.Fatal(err)
	}
	return pods.Items
}

// eventuallyPods lists the pods until there are two and each is as wanted.
func (s *stage) eventuallyPods(what string, wanted func(corev1.Pod) bool) {
	s.t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for time.Now().Before(deadline) {
		pods, as := s.pods(), 0
		for _, pod := range pods {
			if wanted(pod) {
				as++
			}
		}
		if as == 2 && len(pods) == 2 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatalf("never saw two pods %s: %+v", what, s.pods())
}

func isReady(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func restarts(pod corev1.Pod, reason string) int32 {
	if len(pod.Status.ContainerStatuses) != 1 || pod.Status.Phase != corev1.PodRunning {
		return -1
	}
	c := pod.Status.ContainerStatuses[0]
	if c.State.Waiting == nil || c.State.Waiting.Reason != reason {
		return -1
	}
	return c.RestartCount
}

func TestPodsOfAVersionAreSlowOrCrashUntilItIsFixed(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{Workloads: true})
	for name, tc := range map[string]struct {
		version string
		spoil   func(version string) error
		spoilt  func(corev1.Pod) bool
	}{
		"slow": {
			"1.0.0-slow",
			func(version string) error { return s.SlowVersion(t.Context(), version, time.Hour) },
			func(pod corev1.Pod) bool { return pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending },
		},
		"crashing": {
			"1.0.0_crashing",
			func(version string) error { return s.CrashVersion(t.Context(), version) },
			func(pod corev1.Pod) bool {
				return restarts(pod, "CrashLoopBackOff") == controlplane.MaxRestarts && !isReady(pod)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.spoil(tc.version); err != nil {
				t.Fatal(err)
			}
			d := s.shop(tc.version)
			s.eventuallyPods(name, tc.spoilt)
			if err := s.FixVersion(t.Context(), tc.version); err != nil {
				t.Fatal(err)
			}
			s.eventuallyPods("that are ready", isReady)
			s.deletesGoThrough(d)
		})
	}
}

// The change applies to the pods that are created later, however late KWOK sees the
// stage.
func TestVersionChangesOnceKWOKHasSeenIt(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{Workloads: true})
	s.waitsForKWOK("BreakVersion", func() error { return s.BreakVersion(t.Context(), "1.0.0") })
	s.shop("1.0.0")
	s.eventuallyPods("that cannot get their image", cannotGetImage)
	s.waitsForKWOK("FixVersion", func() error { return s.FixVersion(t.Context(), "1.0.0") })
	s.eventuallyPods("that are ready", isReady)
	var canaries corev1.PodList
	if err := s.Client().List(t.Context(), &canaries, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		t.Fatal(err)
	}
	for _, canary := range canaries.Items {
		if canary.OwnerReferences == nil { // those of a ReplicaSet are deleted a little later
			t.Errorf("left behind: %+v", canary)
		}
	}
}

// waitsForKWOK makes a change while KWOK is paused. It expects the change to wait for
// KWOK.
func (s *stage) waitsForKWOK(name string, change func() error) {
	s.t.Helper()
	kwok, changed := s.Part(parts.KWOK), make(chan error, 1)
	kwok.Pause()
	go func() { changed <- change() }()
	select {
	case err := <-changed:
		s.t.Errorf("%s returned %v before KWOK could see the change", name, err)
		changed <- err
	case <-time.After(300 * time.Millisecond):
	}
	kwok.Resume()
	if err := <-changed; err != nil {
		s.t.Fatal(err)
	}
}

func cannotGetImage(pod corev1.Pod) bool {
	if len(pod.Status.ContainerStatuses) != 1 {
		return false
	}
	waiting := pod.Status.ContainerStatuses[0].State.Waiting
	return waiting != nil && waiting.Reason == "ImagePullBackOff"
}

func TestPodsOfASlowVersionBecomeReady(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{Workloads: true})
	const delay = 3 * time.Second
	if err := s.SlowVersion(t.Context(), "1.0.0", delay); err != nil {
		t.Fatal(err)
	}
	s.shop("1.0.0")
	s.eventuallyPods("that are ready", isReady)
	for _, pod := range s.pods() {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.LastTransitionTime.Sub(pod.CreationTimestamp.Time) < delay-time.Second {
				t.Errorf("pod %s, created at %s, was ready at %s", pod.Name, pod.CreationTimestamp, c.LastTransitionTime)
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// recording is an invented record: each step is a state of an object.
type recording struct {
	scenario.Fleet
	seen []record.Sight
}

func newRecording() *recording {
	f := scenario.Fleet{App: scenario.NewApp("shop", "shop")}
	return &recording{Fleet: f}
}

func (t *recording) state(object client.Object) *recording {
	object.SetNamespace("shop")
	object.SetUID(types.UID(object.GetName()))
	t.seen = append(t.seen, record.Sight{At: uint64(len(t.seen) + 1), Object: object.DeepCopyObject().(client.Object)})
	return t
}

func (t *recording) gone(object client.Object) *recording {
	t.state(object)
	t.seen[len(t.seen)-1].Gone = true
	return t
}

// deployment adds a Deployment of which some pods have the version.
func (t *recording) deployment(name, version string, paused bool, updated int32) *recording {
	d := t.Deployment(name, "registry.example/"+name+":"+version)
	d.Spec.Paused = paused
	d.Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: updated, AvailableReplicas: 2}
	return t.state(d)
}

// atATime adds a coordination with a journal in which all have a turn.
func (t *recording) atATime(most int32) *recording {
	c := t.Coordination()
	c.Spec.MaxConcurrent = new(intstr.FromInt32(most))
	c.Status.ActiveDeployment, c.Status.ActiveDeployments = "shop/a", []string{"shop/a", "shop/b", "shop/c"}
	return t.state(c)
}

// journal adds a journal that names the active Deployment, and those that are finished.
func (t *recording) journal(active string, finished ...string) *recording {
	c := t.Coordination()
	if active != "" {
		c.Status.ActiveDeployment = "shop/" + active
	}
	for _, name := range []string{"a", "b"} {
		state := coordinationv1.DeploymentState{Name: "shop/" + name, UID: types.UID(name)}
		for _, f := range finished {
			if f == name {
				state.LastRolloutFinished = &metav1.Time{}
			}
		}
		c.Status.DeploymentStates = append(c.Status.DeploymentStates, state)
	}
	return t.state(c)
}

func (t *recording) set(name, revision string) *recording {
	s := t.StatefulSet(name, "registry.example/"+name+":1")
	s.Status.UpdateRevision = revision
	return t.state(s)
}

func podOf(set, name, revision string, ready corev1.ConditionStatus) *corev1.Pod {
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: set, UID: types.UID(set), Controller: &controller}},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func (t *recording) pod(set, name, revision string) *recording {
	return t.state(podOf(set, name, revision, corev1.ConditionTrue))
}

func (t *recording) unready(set, name, revision string) *recording {
	return t.state(podOf(set, name, revision, corev1.ConditionFalse))
}

func (t *recording) ends(set, name, revision string) *recording {
	pod := podOf(set, name, revision, corev1.ConditionTrue)
	pod.DeletionTimestamp = &metav1.Time{}
	t.state(pod)
	return t.gone(pod)
}

// twoDeployments returns a recording with two Deployments that are rolled out, and wait with
// another version.
func twoDeployments() *recording {
	return newRecording().journal("").deployment("a", "1", true, 2).deployment("b", "1", true, 2).
		deployment("a", "2", true, 0).deployment("b", "2", true, 0)
}

// twoZones returns a recording with two zones that have two pods each, and another version to
// roll out.
func twoZones() *recording {
	return newRecording().set("a", "1").set("b", "1").pod("a", "a-0", "1").pod("a", "a-1", "1").pod("b", "b-0", "1").pod("b", "b-1", "1").
		set("a", "2").set("b", "2")
}

func TestObserverSeesEachBrokenPromiseAndNoOther(t *testing.T) {
	for name, tc := range map[string]struct {
		recording *recording
		broken    string // part of the only complaint; empty if there is none
		finished  map[string]int
	}{
		"none in a wave of Deployments": {
			recording: twoDeployments().journal("a").deployment("a", "2", false, 0).deployment("a", "2", false, 1).deployment("a", "2", false, 2).
				journal("a", "a").deployment("a", "2", true, 2).journal("b", "a").deployment("b", "2", false, 0).deployment("b", "2", false, 2).
				journal("", "a", "b"),
			finished: map[string]int{"a": 1, "b": 1},
		},
		"none when a pod of a finished Deployment is lost while another rolls": {
			recording: twoDeployments().journal("a").deployment("a", "2", false, 2).deployment("a", "2", false, 1).
				journal("b").deployment("b", "2", false, 0),
			finished: map[string]int{"a": 1},
		},
		"two Deployments roll at once": {
			recording: twoDeployments().journal("a").deployment("a", "2", false, 1).journal("b").deployment("b", "2", false, 0),
			broken:    "of shop a and b roll at once",
		},
		"three of two that may roll at once": {
			recording: newRecording().atATime(2).deployment("a", "1", true, 2).deployment("b", "1", true, 2).deployment("c", "1", true, 2).
				deployment("a", "2", false, 0).deployment("b", "2", false, 0).deployment("c", "2", false, 0),
			broken: "of shop a and b and c roll at once",
		},
		"a Deployment is released before it is written down": {
			recording: twoDeployments().deployment("a", "2", false, 0).journal("a"),
			broken:    `shop/a was released while the journal of shop named []`,
		},
		"a rollout is called finished that is not": {
			recording: twoDeployments().journal("a").deployment("a", "2", false, 1).journal("a", "a"),
			broken:    "the journal of shop calls shop/a finished, which it is not",
		},
		"none in a wave of zones": {
			recording: twoZones().ends("a", "a-0", "1").unready("a", "a-0", "2").pod("a", "a-0", "2").
				ends("a", "a-1", "1").pod("a", "a-1", "2").ends("b", "b-0", "1").pod("b", "b-0", "2").ends("b", "b-1", "1").pod("b", "b-1", "2"),
			finished: map[string]int{"a": 1, "b": 1},
		},
		"too many pods are missing": {
			recording: twoZones().ends("a", "a-0", "1").ends("a", "a-1", "1"),
			broken:    "of a 2 pods are missing, at most 1 may be",
		},
		"a pod is deleted while another is not Ready": {
			recording: twoZones().ends("a", "a-0", "1").unready("a", "a-0", "2").ends("a", "a-1", "1"),
			broken:    "of a 2 pods are missing, at most 1 may be",
		},
		"two zones roll at once": {
			recording: twoZones().ends("a", "a-0", "1").pod("a", "a-0", "2").ends("b", "b-0", "1").pod("b", "b-0", "2"),
			broken:    "of the group shop a and b roll at once",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(tc.recording.seen)
			switch {
			case tc.broken == "" && len(o.broken) > 0:
				t.Errorf("it complains: %q", o.broken)
			case tc.broken != "" && (len(o.broken) == 0 || !allHave(o.broken, tc.broken)):
				t.Errorf("it says %q, not %q", o.broken, tc.broken)
			}
			if diff := cmp.Diff(tc.finished, o.finished); tc.broken == "" && diff != "" {
				t.Errorf("finished (-want +got):\n%s", diff)
			}
		})
	}
}

func allHave(texts []string, part string) bool {
	for _, text := range texts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// podsTake is how long a new pod needs to become Ready.
	podsTake = time.Second
	// readyFor is how many seconds a workload must have been ready before the next one
	// may begin.
	readyFor = 2
	// turnsTimeout is when a release fails whose workloads take turns.
	turnsTimeout = stepLimit
)

// The workloads of the scenario, in the order in which they have to roll out.
var (
	members = []string{"basket", "orders", "web"}
	zones   = []string{"store-a", "store-b", "store-c"}
)

// workloadsScript is the scenario of what happens inside a release.
var workloadsScript = script{
	about: "what happens inside a release, when Deployments and StatefulSets roll out in turn",
	steps: workloadsSteps,
	ending: []expectation{
		history("1: 1.0.0 Succeeded", "2: 1.1.0 Succeeded", "3: 1.2.0 Succeeded"), targetsCarry("1.2.0"), atRest,
	},
	commands: []string{
		"kubectl get deploymentcoordinations -n demo --watch",
		"kubectl describe deploymentcoordination shop -n demo",
		"kubectl get deployment,statefulset,pod -n demo",
		"kubectl get events -n demo --field-selector involvedObject.kind=StatefulSet",
	},
	tables: []schema.GroupVersionResource{
		v1alpha1.GroupVersion.WithResource("rollouts"), coordinationv1.GroupVersion.WithResource("deploymentcoordinations"),
	},
	invite:     "Restart all Deployments at once, for example, and see them take turns:",
	command:    "kubectl rollout restart deployment -n demo",
	watched:    append([]client.Object{&appsv1.StatefulSet{}, &coordinationv1.DeploymentCoordination{}}, ofReleases...),
	crds:       []string{scenario.CoordinationCRDs()},
	components: scenario.Coordinators,
	args:       scenario.CoordinatorArgs,
}

var workloadsSteps = []step{
	{
		title: "Three Deployments and three zones",
		intro: "shop has three Deployments and a store of three StatefulSets, one for each zone. A DeploymentCoordination " +
			"selects the Deployments by a label; the StatefulSets have the label rollout-group, and pods that are " +
			"replaced only when somebody deletes them. Flux applies all of it, and waits for its health.",
		play: (*session).standUp,
	},
	{
		title: "One Deployment at a time",
		intro: "1.1.0 has a new image for each of the Deployments. Flux applies them at once. The API server holds " +
			"those that have to wait, and the next begins when the one before is rolled out and has been ready for " +
			fmt.Sprint(readyFor) + " seconds. The release bakes when the last is done.",
		play: func(s *session, ctx context.Context) error { return s.turns(ctx, 2, "1.1.0", members, "1.0.0", zones) },
	},
	{
		title: "Zone by zone",
		intro: "1.2.0 has a new image for the store. Pods are deleted one by one, those of the next zone only when all " +
			"of the others are ready. Flux takes such StatefulSets for done at once; the HealthCheck does not.",
		play: func(s *session, ctx context.Context) error { return s.turns(ctx, 3, "1.2.0", zones, "1.1.0", members) },
	},
}

func (s *session) fleet() scenario.Fleet {
	return scenario.Fleet{App: s.App, Members: members, Zones: zones, MinReadySeconds: readyFor, IdlePolicy: coordinationv1.IdleResume}
}

// standUp deploys the first release. No workload waits for another one yet.
func (s *session) standUp(ctx context.Context) error {
	artifact, err := s.fleet().Release("1.0.0", nil)
	if err != nil {
		return err
	}
	digest, err := s.plane.Registry.Push(ctx, artifact)
	if err != nil {
		return fmt.Errorf("push 1.0.0: %w", err)
	}
	s.printer.show(
		says(registry, plain, "has a first artifact, %s:1.0.0 (%s)", s.Name, short(digest)),
		says(you, plain, "create the Flux objects, a HealthCheck and the Rollout, all named %s", s.Name))
	if err := s.create(ctx, s.waitingObjects()...); err != nil {
		return err
	}
	return s.must(ctx, current(1, "1.0.0", v1alpha1.BakeSucceeded), allRun("1.0.0", append(slices.Clone(members), zones...)...))
}

// waitingObjects returns the objects with a Kustomization that waits for health. It waits long
// enough for all workloads in turn.
func (s *session) waitingObjects() []client.Object {
	kustomization := s.Kustomization()
	kustomization.Spec.Wait = true
	kustomization.Spec.Timeout.Duration = turnsTimeout
	host := s.plane.Registry.Host()
	return []client.Object{
		s.NamespaceObject(), kustomization, s.HealthCheck(), s.ImageRepository(host), s.ImagePolicy(">=1.0.0"),
		s.Rollout(s.Baked(bakeTime, turnsTimeout)), s.OCIRepositoryWithFirstTag(host),
	}
}

// turns releases a version for some workloads, while others stay at another version, and
// checks that they take turns.
func (s *session) turns(ctx context.Context, id int64, version string, some []string, other string, others []string) error {
	if err := s.plane.SlowVersion(ctx, version, podsTake); err != nil {
		return err
	}
	artifact, err := s.release(version, other, others)
	if err != nil {
		return err
	}
	s.forget()
	if err := s.push(ctx, artifact); err != nil {
		return err
	}
	return s.must(ctx, inTurn(some...), current(id, version, v1alpha1.BakeSucceeded), allRun(version, some...))
}

// release returns a version in which some workloads stay as they are.
func (s *session) release(version, other string, unchanged []string) (controlplane.Artifact, error) {
	tags := map[string]string{}
	for _, name := range unchanged {
		tags[name] = other
	}
	return s.fleet().Release(version, tags)
}

// workloads are the observed Deployments and StatefulSets. Later observations do not
// change a copy.
type workloads struct {
	images map[string]string
	states map[string]workload.State
	// done are the names of the workloads that became done since the last forget, in that
	// order.
	done []string
}

// with returns a copy with the observed state of a workload.
func (w workloads) with(object client.Object, is workload.State) workloads {
	name := object.GetName()
	was := w.states[name]
	w.images, w.states = cloneOf(w.images), cloneOf(w.states)
	w.states[name] = is
	switch o := object.(type) {
	case *appsv1.Deployment:
		w.images[name] = imageIn(o.Spec.Template)
	case *appsv1.StatefulSet:
		w.images[name] = imageIn(o.Spec.Template)
	}
	if is.Phase == workload.Current && was.Phase != workload.Current {
		w.done = append(slices.Clone(w.done), name)
	}
	return w
}

func cloneOf[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}

// forget empties the list of workloads that are done.
func (w *observer) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.workloads.done = nil
}

// inTurn expects that these workloads were done one after the other.
func inTurn(names ...string) expectation {
	return expectation{strings.Join(names, ", then ") + " were done, in this order", func(s *sights) string {
		if slices.Equal(s.workloads.done, names) {
			return ""
		}
		return fmt.Sprintf("done were %q", s.workloads.done)
	}}
}

// allRun expects that these workloads run a version in all of their pods.
func allRun(version string, names ...string) expectation {
	return expectation{strings.Join(names, ", ") + " run " + version, func(s *sights) string {
		for _, name := range names {
			state := s.workloads.states[name]
			if image := s.workloads.images[name]; state.Phase != workload.Current || image != "registry.example/"+name+":"+version {
				return fmt.Sprintf("%s with %q is %s: %s", name, image, state.Phase, state.Message)
			}
		}
		return ""
	}}
}

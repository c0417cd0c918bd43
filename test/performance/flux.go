// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// fluxWorkers is how many objects the stand-in for Flux answers in parallel.
const fluxWorkers = 8

// flux stands in for source-controller, kustomize-controller and the writer of the
// HealthChecks. It reports at once what they report after their work. Each of them writes
// an object's status once per release. flux pulls nothing. It reports a pull only after
// the registry has served the release: a pull takes longer than the controller's read of
// the manifest.
type flux struct {
	fleet fleet
	api   *api
	queue workqueue.TypedInterface[job]
	// digests is the registry. It knows the digest of each published tag.
	digests *registry

	mu     sync.Mutex
	apps   map[int]*app
	failed error
}

// job is an object of an application that needs an answer.
type job struct {
	kind  milestone
	index int
}

// app is the observed state of an application.
type app struct {
	repository, kustomization carrier
	served                    string // the tag of the release that the registry served last
	asked                     bool   // a HealthCheck is Pending and will be answered
}

// carrier is the state of a target: its tag, its generation, whether its status reports
// the tag, and the generation that was answered last.
type carrier struct {
	tag        string
	generation int64
	settled    bool
	answered   int64
}

func newFlux(f fleet, a *api, digests *registry) *flux {
	return &flux{fleet: f, api: a, queue: workqueue.NewTyped[job](), digests: digests, apps: map[int]*app{}}
}

// run answers until ctx ends. It returns when all answers are sent.
func (f *flux) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range fluxWorkers {
		workers.Go(func() { f.work(ctx) })
	}
	<-ctx.Done()
	f.queue.ShutDown()
	workers.Wait()
}

func (f *flux) work(ctx context.Context) {
	for {
		next, end := f.queue.Get()
		if end {
			return
		}
		if err := f.answer(ctx, next); err != nil && ctx.Err() == nil {
			f.fail(err)
		}
		f.queue.Done(next)
	}
}

func (f *flux) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = fmt.Errorf("play Flux: %w", err)
	}
}

// err returns the error of the first answer that failed.
func (f *flux) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *flux) app(i int) *app {
	if f.apps[i] == nil {
		f.apps[i] = &app{}
	}
	return f.apps[i]
}

func (f *flux) seeRepository(i int, r *sourcev1.OCIRepository) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.app(i)
	a.repository.generation, a.repository.tag = r.Generation, ""
	if r.Spec.Reference != nil {
		a.repository.tag = r.Spec.Reference.Tag
	}
	a.repository.settled = r.Status.ObservedGeneration == r.Generation && r.Status.Artifact != nil &&
		r.Status.Artifact.Revision == f.revision(a.repository.tag)
	f.consider(i)
}

// seeKustomization records a Kustomization. It reports whether the wanted tag is applied.
func (f *flux) seeKustomization(i int, k *kustomizev1.Kustomization) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.app(i)
	a.kustomization.generation, a.kustomization.tag = k.Generation, k.Spec.PostBuild.Substitute[variable]
	a.kustomization.settled = k.Status.ObservedGeneration == k.Generation && k.Status.LastAppliedRevision == f.revision(a.kustomization.tag)
	f.consider(i)
	return a.kustomization.settled
}

// seeServed records that the registry has served a release of an application.
func (f *flux) seeServed(name, tag string) {
	i, ok := indexOf(name)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.app(i).served = tag
	f.consider(i)
}

// consider queues the answers for the targets of an application. The repository is
// answered first, when its release was served. The Kustomization follows as soon as both
// have the same tag.
func (f *flux) consider(i int) {
	a := f.app(i)
	r, k := &a.repository, &a.kustomization
	switch {
	case r.tag == "":
	case !r.settled:
		if a.served == r.tag && r.answered != r.generation {
			r.answered = r.generation
			f.queue.Add(job{repositoryWritten, i})
		}
	case k.tag == r.tag && !k.settled && k.answered != k.generation:
		k.answered = k.generation
		f.queue.Add(job{kustomizationWritten, i})
	}
}

func (f *flux) seeCheck(i int, check *v1alpha1.HealthCheck) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if check.IsMeasured() {
		return // the controller writes it
	}
	a := f.app(i)
	pending := check.Status.Status == v1alpha1.HealthStatusPending
	if pending && !a.asked {
		f.queue.Add(job{succeeded, i})
	}
	a.asked = pending
}

func (f *flux) revision(tag string) string { return tag + "@" + f.digests.digest(tag) }

func (f *flux) answer(ctx context.Context, j job) error {
	f.mu.Lock()
	a := *f.app(j.index)
	f.mu.Unlock()
	namespace, name := f.fleet.namespace(j.index), f.fleet.name(j.index)
	switch j.kind {
	case repositoryWritten:
		return f.say(ctx, ociRepositories, namespace, name, "source-controller", f.pulled(name, a.repository))
	case kustomizationWritten:
		return f.say(ctx, kustomizations, namespace, name, "gotk-kustomize-controller", f.applied(a.kustomization))
	default:
		return f.say(ctx, healthChecks, namespace, name, "benchmark", map[string]any{
			"status": v1alpha1.HealthStatusHealthy, "message": "all probes passed", "lastChangeTime": stamp(),
		})
	}
}

func (f *flux) say(ctx context.Context, r resource, namespace, name, manager string, status any) error {
	body, err := statusPatch(status)
	if err != nil {
		return err
	}
	return f.api.patch(ctx, r, namespace, name, "status", manager, body)
}

// pulled returns the status that source-controller writes to an OCIRepository.
func (f *flux) pulled(name string, c carrier) sourcev1.OCIRepositoryStatus {
	revision, size := f.revision(c.tag), int64(4096)
	message := "stored artifact for digest '" + revision + "'"
	path := "ocirepository/" + name + "/" + f.digests.digest(c.tag) + ".tar.gz"
	conditions := append(ready(c.generation, message), metav1.Condition{
		Type: sourcev1.ArtifactInStorageCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason, Message: message,
		ObservedGeneration: c.generation, LastTransitionTime: stamp(),
	})
	return sourcev1.OCIRepositoryStatus{
		ObservedGeneration: c.generation, Conditions: conditions,
		URL: "http://source-controller.flux-system.svc.cluster.local./ocirepository/" + name + "/latest.tar.gz",
		Artifact: &meta.Artifact{
			Revision: revision, Digest: digestOf(revision), Path: path, LastUpdateTime: stamp(), Size: &size,
			URL: "http://source-controller.flux-system.svc.cluster.local./" + path,
		},
	}
}

// applied returns the status that kustomize-controller writes to a Kustomization. Its
// status fields about the applied objects stay as they are.
func (f *flux) applied(c carrier) kustomizev1.KustomizationStatus {
	revision := f.revision(c.tag)
	return kustomizev1.KustomizationStatus{
		ObservedGeneration: c.generation, LastAppliedRevision: revision, LastAttemptedRevision: revision,
		Conditions: ready(c.generation, "Applied revision: "+revision),
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// floorWorkers is how many requests the bare client makes in parallel.
	floorWorkers = 16
	// floorAccount has the permissions of the controller. The API server treats it like
	// the controller: it is authorized by RBAC, rate limited and audited.
	floorAccount = "floor"
	// manager is the field manager of the controller's writes.
	manager = "rollout-controller"
)

// floor makes the writes of a wave without caches and decisions. It derives them from the
// controller's writes for the previous release. It makes each write when the controller
// could make it: the status and the targets after the policy has named the release, the
// outcome after Flux has applied it.
type floor struct {
	*bench
	api             *api
	wave            *wave
	patches, events [][]byte
	queue           workqueue.TypedInterface[step]

	mu     sync.Mutex
	failed error
	// locks are the resourceVersions of the Rollouts.
	locks map[int]string
}

// step is a group of writes for a Rollout.
type step struct{ rollout, stage int }

func (b *bench) floorAPI(ctx context.Context) (*api, error) {
	if _, err := scenario.Install(ctx, b.plane, floorAccount); err != nil {
		return nil, err
	}
	config, err := b.plane.RESTConfigFor(scenario.User(floorAccount), "system:serviceaccounts", "system:serviceaccounts:"+scenario.Namespace)
	if err != nil {
		return nil, err
	}
	return newAPI(config)
}

// runFloor makes a bare client perform the writes of a wave, after a recorded wave of the
// controller.
func (b *bench) runFloor(ctx context.Context, a *api, r recording) (*wave, error) {
	w := newWave(b.publish(), b.some(b.rollouts)...)
	patches, events, err := r.next(w.release)
	if err != nil {
		return nil, err
	}
	f := &floor{bench: b, api: a, wave: w, patches: patches, events: events, queue: workqueue.NewTyped[step](), locks: map[int]string{}}
	w.applied = func(i int) { f.queue.Add(step{i, 1}) }
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var workers sync.WaitGroup
	for range floorWorkers {
		workers.Go(func() { f.work(ctx) })
	}
	for i := range b.rollouts { // a bare client reads nothing from the registry
		b.flux.seeServed(b.fleet.name(i), w.release.tag)
	}
	b.observer.follow(w)
	err = b.name(ctx, w, func(place int) { f.queue.Add(step{w.rollouts[place], 0}) })
	if err == nil {
		err = b.observer.await(ctx, w, succeeded, f.err)
	}
	f.queue.ShutDown()
	workers.Wait()
	return w, err
}

func (f *floor) work(ctx context.Context) {
	for {
		next, end := f.queue.Get()
		if end {
			return
		}
		if err := f.write(ctx, next); err != nil && ctx.Err() == nil {
			f.fail(err)
		}
		f.queue.Done(next)
	}
}

func (f *floor) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = fmt.Errorf("make the writes of a promotion: %w", err)
	}
}

func (f *floor) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// write makes the writes of a step as the controller does.
func (f *floor) write(ctx context.Context, s step) error {
	if err := f.writeStatus(ctx, s); err != nil {
		return err
	}
	if s.stage == 0 {
		tag := f.wave.release.tag
		if err := f.writeTarget(ctx, ociRepositories, s.rollout, map[string]any{"ref": map[string]any{"tag": tag}}); err != nil {
			return err
		}
		fields := map[string]any{"postBuild": map[string]any{"substitute": map[string]any{variable: tag}}}
		if err := f.writeTarget(ctx, kustomizations, s.rollout, fields); err != nil {
			return err
		}
	}
	return f.writeEvent(ctx, s)
}

func (f *floor) writeStatus(ctx context.Context, s step) error {
	f.mu.Lock()
	lock, ok := f.locks[s.rollout]
	f.mu.Unlock()
	if !ok {
		lock = f.observer.versionOf(rollouts, s.rollout)
	}
	body := locked(f.own(f.patches[s.stage], s.rollout), lock)
	answer, err := f.api.patched(ctx, rollouts, f.fleet.namespace(s.rollout), f.fleet.name(s.rollout), "status", manager, body)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.locks[s.rollout] = answer
	f.mu.Unlock()
	return nil
}

func (f *floor) writeTarget(ctx context.Context, r resource, i int, fields map[string]any) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": f.observer.versionOf(r, i)}, "spec": fields,
	})
	if err != nil {
		return err
	}
	_, err = f.api.patched(ctx, r, f.fleet.namespace(i), f.fleet.name(i), "", manager, body)
	return err
}

func (f *floor) writeEvent(ctx context.Context, s step) error {
	var event map[string]any
	if err := json.Unmarshal(f.own(f.events[s.stage], s.rollout), &event); err != nil {
		return err
	}
	event["metadata"].(map[string]any)["name"] = fmt.Sprintf("%s.%s-%d", f.fleet.name(s.rollout), f.wave.release.tag, s.stage)
	return f.api.create(ctx, events, f.fleet.namespace(s.rollout), event)
}

// own converts a body for the first Rollout into one for another Rollout.
func (f *floor) own(body []byte, i int) []byte {
	names := strings.NewReplacer(f.fleet.name(0), f.fleet.name(i), f.fleet.namespace(0), f.fleet.namespace(i))
	return []byte(names.Replace(string(body)))
}

// locked adds an optimistic lock to a merge patch of a status.
func locked(patch []byte, resourceVersion string) []byte {
	return append([]byte(`{"metadata":{"resourceVersion":`+strconv.Quote(resourceVersion)+`},`), patch[1:]...)
}

// patched sends a merge patch and returns the new resourceVersion.
func (a *api) patched(ctx context.Context, r resource, namespace, name, subresource, manager string, body []byte) (string, error) {
	request := a.rest.Patch(types.MergePatchType).Body(body)
	answer, err := a.raw(ctx, http.MethodPatch, r, namespace, name, subresource, request, manager)
	if err != nil {
		return "", err
	}
	var written struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.Unmarshal(answer, &written)
	return written.Metadata.ResourceVersion, err
}

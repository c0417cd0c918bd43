// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/pace"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// namers is how many workers write objects in parallel, such as ImagePolicies that
	// name a release.
	namers = 8
	// patience is how long a wave may take.
	patience = 20 * time.Minute
)

// setting configures a bench.
type setting struct {
	rollouts, namespaces int
	logs                 string        // a folder; no logs if it is empty
	calm                 time.Duration // a scenario is over after this time without a request
	history              int           // how many releases each Rollout was promoted to before
	memory               string        // the GOMEMLIMIT of the controller
}

// bench is a control plane with a fleet, a simulated Flux and the controller.
type bench struct {
	setting
	plane    *controlplane.ControlPlane
	registry *registry
	fleet    fleet
	admin    *api
	bare     *api // the client of the floor
	flux     *flux
	observer *observer
	program  *program
	pacer    *pace.Pacer
	// prometheus is what HealthChecks may ask.
	prometheus *prometheus
	path       string // of the program
	progress   io.Writer
	releases   int // the number of published releases
	stop       func()
	running    sync.WaitGroup // waits for the goroutines that end after stop
}

// newBench starts a control plane and creates the fleet. The controller promotes the
// release 1.0.1000, and those after it that are wanted, for the first application. The
// other applications are copies of it.
// When newBench returns, the controller is stopped.
func newBench(ctx context.Context, s setting, path string, progress io.Writer) (_ *bench, err error) {
	b := &bench{setting: s, path: path, progress: progress, stop: func() {}, prometheus: startPrometheus()}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.plane, err = startPlane(ctx, s.logs); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(b.plane.Client().Scheme()); err != nil {
		return nil, err
	}
	if b.registry, err = startRegistry(filepath.Join(b.plane.Dir(), "registry.pem")); err != nil {
		return nil, err
	}
	if b.admin, err = newAPI(b.plane.RESTConfig()); err != nil {
		return nil, err
	}
	b.fleet = fleet{rollouts: s.rollouts, namespaces: s.namespaces, host: b.registry.host}
	if err := b.observe(ctx); err != nil {
		return nil, err
	}
	return b, b.populate(ctx)
}

// startPlane starts an API server and its etcd. The API server keeps all changes of the
// last minute, which for ten thousand Environments are gigabytes. Without a limit, its
// garbage collector would need more memory than the machine has.
func startPlane(ctx context.Context, logs string) (*controlplane.ControlPlane, error) {
	return controlplane.Start(ctx, controlplane.Options{
		CRDPaths: []string{scenario.CRDs()}, LogDir: logs, Env: []string{"GOMEMLIMIT=" + halfOfMemory()},
	})
}

func (b *bench) observe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	b.stop = cancel
	b.flux, b.pacer = newFlux(b.fleet, b.admin, b.registry), pace.New()
	b.registry.follow(b.flux.seeServed)
	b.running.Go(func() { b.flux.run(ctx) })
	b.running.Go(func() { b.pacer.Run(ctx) })
	var err error
	b.observer, err = observe(ctx, &b.running, b.plane.RESTConfig(), b.plane.Client().Scheme(), b.flux)
	return err
}

func (b *bench) close() error {
	b.stop()
	b.running.Wait()
	http.DefaultClient.CloseIdleConnections()
	var errs []error
	if b.plane != nil {
		errs = append(errs, b.plane.Stop())
	}
	b.prometheus.server.Close()
	if b.registry != nil {
		b.registry.close()
	}
	return errors.Join(errs...)
}

// publish publishes the next release of every image.
func (b *bench) publish() release {
	b.releases++
	return b.registry.publish(releaseTag(b.releases - 1))
}

// populate creates the fleet.
func (b *bench) populate(ctx context.Context) error {
	for i := range min(b.namespaces, b.rollouts) {
		if err := b.admin.create(ctx, namespaces, "", map[string]any{"metadata": map[string]any{"name": b.fleet.namespace(i)}}); err != nil {
			return err
		}
	}
	if err := b.promoteFirst(ctx); err != nil {
		return err
	}
	first, err := b.storedFirst(ctx)
	if err != nil {
		return err
	}
	etcd := store{b.plane.EtcdURL()}
	if err := forEach(ctx, copiers, b.rollouts-1, func(ctx context.Context, i int) error {
		return etcd.put(ctx, b.fleet.copies(first, i+1))
	}); err != nil {
		return err
	}
	return b.observer.awaitAll(ctx, b.rollouts)
}

// promoteFirst makes the controller promote the first releases of the first application.
func (b *bench) promoteFirst(ctx context.Context) error {
	w := newWave(b.publish(), 0)
	b.observer.follow(w)
	if err := b.createApp(ctx, 0, w.release); err != nil {
		return err
	}
	if err := b.start(ctx); err != nil {
		return err
	}
	if err := b.converge(ctx, w); err != nil {
		return err
	}
	for range b.history - 1 {
		if err := b.bring(ctx, newWave(b.publish(), 0)); err != nil {
			return err
		}
	}
	if _, err := b.quiet(ctx); err != nil {
		return err
	}
	return b.program.Stop(ctx)
}

func (b *bench) storedFirst(ctx context.Context) ([]pair, error) {
	var all []pair
	for _, r := range []resource{imageRepositories, imagePolicies, ociRepositories, kustomizations, healthChecks, rollouts} {
		p, err := store{b.plane.EtcdURL()}.of(ctx, r, b.fleet.namespace(0), b.fleet.name(0))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (b *bench) createApp(ctx context.Context, i int, first release) error {
	scan, policy, kustomization, check := b.fleet.imageRepository(i), b.fleet.imagePolicy(i, first), b.fleet.kustomization(i), b.fleet.healthCheck(i)
	for _, o := range []struct {
		resource resource
		object   any
		status   any
	}{
		{imageRepositories, scan, scan.Status},
		{imagePolicies, policy, policy.Status},
		{ociRepositories, b.fleet.ociRepository(i), nil},
		{kustomizations, kustomization, kustomization.Status},
		{healthChecks, check, check.Status},
		{rollouts, b.fleet.rollout(i, 0), nil},
	} {
		if err := b.admin.create(ctx, o.resource, b.fleet.namespace(i), o.object); err != nil {
			return err
		}
		if o.status == nil {
			continue
		}
		if err := b.say(ctx, o.resource, i, o.status); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) say(ctx context.Context, r resource, i int, status any) error {
	body, err := statusPatch(status)
	if err != nil {
		return err
	}
	return b.admin.patch(ctx, r, b.fleet.namespace(i), b.fleet.name(i), "status", "flux", body)
}

// start starts the controller, for the first time or again.
func (b *bench) start(ctx context.Context) (err error) {
	if b.program != nil {
		b.program.began = time.Now()
		return b.program.Start(ctx)
	}
	if b.program, err = startProgram(ctx, b.plane, b.path, b.memory, b.registry.certificate, b.prometheus.server.URL); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	b.running.Go(func() { b.program.watchMemory(watching) })
	stop := b.stop
	b.stop = func() {
		cancel()
		stop()
	}
	return nil
}

// name makes the ImagePolicies name the release of a wave.
func (b *bench) name(ctx context.Context, w *wave, named func(place int)) error {
	return forEach(ctx, namers, len(w.rollouts), func(ctx context.Context, place int) error {
		i := w.rollouts[place]
		w.named[place] = time.Now()
		if err := b.say(ctx, imagePolicies, i, b.fleet.named(i, w.release)); err != nil {
			return err
		}
		named(place)
		return nil
	})
}

// bring names the release of a wave, and waits until its promotions have succeeded.
func (b *bench) bring(ctx context.Context, w *wave) error {
	b.observer.follow(w)
	if err := b.name(ctx, w, func(int) {}); err != nil {
		return err
	}
	return b.converge(ctx, w)
}

// some returns the first Rollouts of the fleet, at most the given number.
func (b *bench) some(most int) []int {
	all := make([]int, min(most, b.rollouts))
	for i := range all {
		all[i] = i
	}
	return all
}

// converge waits until the promotions of a wave have succeeded for all its Rollouts, or
// the controller has ended.
func (b *bench) converge(ctx context.Context, w *wave) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return b.observer.await(ctx, w, succeeded, b.program.EndedByItself)
}

// profiles saves CPU and memory profiles of the controller.
func (b *bench) profiles(ctx context.Context, folder, name string, seconds int) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return errors.Join(
		b.program.profile(ctx, fmt.Sprintf("profile?seconds=%d", seconds), filepath.Join(folder, name+"-cpu.pprof")),
		b.program.profile(ctx, "heap", filepath.Join(folder, name+"-heap.pprof")))
}

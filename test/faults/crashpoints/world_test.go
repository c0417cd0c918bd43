// SPDX-License-Identifier: Apache-2.0

package crashpoints

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/crashscenario"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// pace is the time between two checks for work in a world.
	pace = 50 * time.Millisecond
	// stillness is how long a world must be without requests to be at rest.
	stillness = time.Second
	// patience is how long a run may take.
	patience = 2 * time.Minute
)

// world is a namespace with a controller of its own. Only this controller acts there. It
// reaches the API server through a wire.
type world struct {
	t          *testing.T
	namespace  string
	program    string
	wire       *wire.Wire
	controller *controlplane.Process
	// kills of the controller so far.
	kills atomic.Int32

	mu sync.Mutex
	// died is the write at which the controller was last killed.
	died wire.Request
}

var worlds atomic.Int32

// newWorld creates a world with these objects and their status.
func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := emptyWorld(t)
	w.start(objects)
	return w
}

// emptyWorld creates a world without a controller.
func emptyWorld(t *testing.T) *world {
	t.Helper()
	n := worlds.Add(1)
	w := &world{t: t, namespace: fmt.Sprintf("world-%d", n), program: shared.programOf(n)}
	w.must(shared.Client().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	return w
}

// start creates the objects, and starts the controller with some flags.
func (w *world) start(objects []client.Object, flags ...string) {
	w.t.Helper()
	for _, object := range objects {
		w.create(object)
	}
	var err error
	w.wire, err = wire.Open(shared.kubeconfig)
	w.must(err)
	w.t.Cleanup(w.wire.Close)
	kubeconfig := filepath.Join(w.t.TempDir(), "kubeconfig")
	w.must(w.wire.WriteKubeconfig(kubeconfig))
	w.controller, err = scenario.StartControllerAs(shared.ControlPlane, "controller-"+w.namespace, w.program, kubeconfig,
		[]string{"RUNTIME_NAMESPACE=" + w.namespace}, append(flags, "--watch-all-namespaces=false", "--approval-identity=Trusted")...)
	w.must(err)
	w.t.Cleanup(func() { _ = w.controller.Kill() })
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	object.SetNamespace(w.namespace)
	object.SetUID("")
	object.SetGeneration(0)
	stored := object.DeepCopyObject().(client.Object)
	w.must(shared.Client().Create(w.t.Context(), stored))
	object.SetResourceVersion(stored.GetResourceVersion())
	switch object.(type) {
	case *v1alpha1.Rollout, *v1alpha1.RolloutApproval, *environmentsv1.Environment, *corev1.Secret: // others write their status, or there is none
	default:
		w.must(shared.Client().Status().Update(w.t.Context(), object))
	}
}

// read fills an object of the world with the state in the API server.
func (w *world) read(object client.Object) {
	w.t.Helper()
	w.must(shared.Client().Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: object.GetName()}, object))
}

// get fills an object with a recent state from the cache, and reports whether it
// existed.
func (w *world) get(object client.Object) bool {
	return shared.reader.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: object.GetName()}, object) == nil
}

// Release acts in the place of image-reflector-controller, which has found another tag.
func (w *world) Release(tag string) {
	w.t.Helper()
	scan, policy := &imagev1.ImageRepository{}, &imagev1.ImagePolicy{}
	scan.Name, policy.Name = crashscenario.App, crashscenario.App
	w.read(scan)
	scan.Status.LastScanResult.LatestTags = append([]string{tag}, scan.Status.LastScanResult.LatestTags...)
	w.must(shared.Client().Status().Update(w.t.Context(), scan))
	w.read(policy)
	latest := fixture.MakePolicy(crashscenario.App).Latest(tag)
	if policy.Status.LatestRef.Digest != "" {
		latest.Digest(digestOf(tag))
	}
	policy.Status.LatestRef = latest.Obj().Status.LatestRef
	w.must(shared.Client().Status().Update(w.t.Context(), policy))
}

// killAt kills the controller at a write, before the API server sees it or after it has
// processed it. It also kills the next controller when that makes the same write again.
func (w *world) killAt(p point) {
	w.wire.Inject(func(r wire.Request) wire.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		n := int(w.kills.Load())
		again := n > 0 && n < len(p.faults) && w.controller.Running() && r.Write > 0 && r.String() == w.died.String()
		if r.Write != p.write && !again {
			return wire.Fault{}
		}
		w.died = r
		return p.faults[n].Then(func() {
			if err := w.controller.Kill(); err != nil {
				w.t.Error(err)
			}
			w.kills.Add(1)
		})
	})
}

// wasKilledAt reports whether the controller was killed as often as it can be at this point:
// once, if the write was an event. The next controller does not send that again.
func (w *world) wasKilledAt(p point) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	kills := int(w.kills.Load())
	return kills == len(p.faults) || kills == 1 && w.died.IsEvent()
}

// madeFewer reports whether the controller is at rest, was never killed, and has made fewer
// writes than up to this one.
func (w *world) madeFewer(write int) bool {
	return w.awaitRest() && w.kills.Load() == 0 && len(w.wire.Writes()) < write
}

// revive starts the controller again if it was killed.
func (w *world) revive() {
	w.t.Helper()
	if w.kills.Load() > 0 && !w.controller.Running() {
		w.must(w.controller.Start(w.t.Context()))
	}
}

// awaitRest waits until the controller has made no requests for a while, and reports
// whether that happened.
func (w *world) awaitRest() bool {
	asked, since := len(w.wire.Log()), time.Now()
	for begin := since; time.Since(since) < stillness; time.Sleep(pace) {
		if now := len(w.wire.Log()); now != asked {
			asked, since = now, time.Now()
		}
		if time.Since(begin) > patience {
			return false
		}
	}
	return true
}

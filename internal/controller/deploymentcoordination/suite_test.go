// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// A plane is started when the first test needs it.
var (
	// barePlane is an API server without any controller for Deployments: the tests act as
	// Kubernetes, and can set any status.
	barePlane = plane{}
	// livePlane rolls out Deployments: it has the controller manager, the scheduler, and
	// Pods that become ready.
	livePlane = plane{options: controlplane.Options{Workloads: true}}
)

type plane struct {
	options controlplane.Options

	once    sync.Once
	running *controlplane.ControlPlane
	client  client.WithWatch
	err     error
}

// open returns the plane, and a client that has all permissions and no cache.
func (p *plane) open(t *testing.T) (*controlplane.ControlPlane, client.WithWatch) {
	t.Helper()
	p.once.Do(func() {
		p.options.CRDPaths = []string{filepath.Join(parts.Root(), "config", "coordination", "crd", "bases")}
		if p.running, p.err = controlplane.Start(context.Background(), p.options); p.err == nil {
			p.client, p.err = client.NewWithWatch(p.running.RESTConfig(), client.Options{Scheme: testScheme()})
		}
	})
	if p.err != nil {
		t.Fatal("start the control plane:", p.err)
	}
	return p.running, p.client
}

func (p *plane) stop() {
	if p.running != nil {
		_ = p.running.Stop()
	}
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(os.Stderr)))
	if err := env.AllowParallel(); err != nil {
		panic(err)
	}
	code := m.Run()
	barePlane.stop()
	livePlane.stop()
	os.Exit(fixture.ExitCode(code))
}

func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

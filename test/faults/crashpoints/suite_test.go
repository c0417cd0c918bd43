// SPDX-License-Identifier: Apache-2.0

// Package crashpoints kills the controller at each of its writes, and checks that the
// next controller ends the scenario as if nothing had happened.
package crashpoints

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// ground is shared by all worlds: one API server. The tests act in the place of Flux.
type ground struct {
	*controlplane.ControlPlane
	// program is the controller as it is shipped; checked has the race detector, if that is
	// asked for.
	program, checked string
	kubeconfig       string // of the controller's account
	reader           client.Reader
}

var shared *ground

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	program, err := scenario.BuildControllerAsShipped(ctx, os.Stderr)
	if err != nil {
		return 1, err
	}
	checked, err := scenario.BuildController(ctx, os.Stderr)
	if err != nil {
		return 1, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{CRDPaths: []string{scenario.CRDs()}, LogDir: os.Getenv("E2E_LOGS")})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	shared = &ground{ControlPlane: plane, program: program, checked: checked}
	if err := errors.Join(v1alpha1.AddToScheme(plane.Client().Scheme()), environmentsv1.AddToScheme(plane.Client().Scheme())); err != nil {
		return 1, err
	}
	if shared.kubeconfig, err = scenario.Install(ctx, plane, scenario.Account); err != nil {
		return 1, err
	}
	if shared.reader, err = startCache(ctx, plane.RESTConfig(), plane.Client()); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// checkedOneIn says in which of the worlds the controller has the race detector: one in so
// many. With it, a start takes four times the CPU time, and there are hundreds of starts.
const checkedOneIn = 8

// programOf returns the controller of a world.
func (g *ground) programOf(world int32) string {
	if world%checkedOneIn == 1 {
		return g.checked
	}
	return g.program
}

// startCache lets many worlds read objects often without a request to the API server each
// time.
func startCache(ctx context.Context, config *rest.Config, c client.Client) (client.Reader, error) {
	all, err := cache.New(config, cache.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("prepare a cache: %w", err)
	}
	go func() { _ = all.Start(ctx) }()
	if !all.WaitForCacheSync(ctx) {
		return nil, errors.New("the cache never has what is stored")
	}
	return all, nil
}

// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"fmt"
	"os"
	"testing"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

var (
	// testPlane has the real StatefulSet controller, and pods on a fake node.
	testPlane *controlplane.ControlPlane
	// testClient has all permissions and no cache.
	testClient client.WithWatch
)

func TestMain(m *testing.M) {
	code := runTests(m)
	os.Exit(fixture.ExitCode(code))
}

func runTests(m *testing.M) int {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(os.Stderr)))
	plane, err := controlplane.Start(context.Background(), controlplane.Options{Workloads: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		return 1
	}
	defer func() { _ = plane.Stop() }()
	testPlane = plane
	if testClient, err = client.NewWithWatch(plane.RESTConfig(), client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		fmt.Fprintln(os.Stderr, "make a client:", err)
		return 1
	}
	return m.Run()
}

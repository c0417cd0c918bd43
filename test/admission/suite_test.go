// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	_ "github.com/fluxrollouts/rollout-controller/test/fixture" // sets Gomega's default timeout
	"github.com/fluxrollouts/rollout-controller/test/manifests"
)

// controllerName is the user name of the controller in config/default.
const controllerName = "system:serviceaccount:kuberik-system:rollout-controller-controller-manager"

var (
	// testPlane is an API server that serves DeploymentCoordinations.
	testPlane *controlplane.ControlPlane
	// testClient has all permissions and no cache.
	testClient client.Client
	// controllerClient acts as the controller and has all permissions here.
	controllerClient client.Client
)

func TestMain(m *testing.M) {
	code := runTests(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left behind:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) int {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(os.Stderr)))
	crds, err := withoutRules(filepath.Join(parts.Root(), "config", "coordination", "crd", "bases"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "read the CRDs:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(crds) }()
	plane, err := controlplane.Start(context.Background(), controlplane.Options{CRDPaths: []string{crds}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		return 1
	}
	defer func() { _ = plane.Stop() }()
	testPlane = plane
	controller, err := plane.RESTConfigFor(controllerName, "system:masters")
	if err == nil {
		controllerClient, err = newClient(controller)
	}
	if err == nil {
		testClient, err = newClient(plane.RESTConfig())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a client:", err)
		return 1
	}
	return m.Run()
}

// withoutRules copies CRDs without their CEL rules. Every form must ignore mistakes that
// were stored before the API server refused them.
func withoutRules(folder string) (string, error) {
	copies, err := os.MkdirTemp("", "crds-")
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	for _, file := range files {
		err = errors.Join(err, withoutRulesIn(file, filepath.Join(copies, filepath.Base(file))))
	}
	return copies, err
}

func withoutRulesIn(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	manifests.RemoveRules(crd)
	if text, err = yaml.Marshal(crd); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

func newClient(config *rest.Config) (client.Client, error) {
	return client.New(config, client.Options{Scheme: testScheme()})
}

func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

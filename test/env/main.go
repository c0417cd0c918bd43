// SPDX-License-Identifier: Apache-2.0

// Package env gives the tests of a package their own API server. It is started before the
// first test and stopped after the last one.
package env

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Main starts an API server with the CRDs of Flux and of this API, runs the tests, and
// exits. It sets plane to the control plane, and everything to a client that has all
// permissions and no cache.
func Main(m *testing.M, plane **controlplane.ControlPlane, everything *client.WithWatch) {
	if err := AllowParallel(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(os.Stderr)))
	code, err := run(m, plane, everything)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(fixture.ExitCode(code))
}

func run(m *testing.M, plane **controlplane.ControlPlane, everything *client.WithWatch) (int, error) {
	started, err := controlplane.Start(context.Background(), controlplane.Options{
		HelmCRDs: true,
		CRDPaths: []string{filepath.Join(parts.Root(), "config", "crd", "bases"), filepath.Join(parts.Root(), "test", "fixture", "crds")},
	})
	if err != nil {
		return 1, fmt.Errorf("start the control plane: %w", err)
	}
	defer func() { _ = started.Stop() }()
	*plane = started
	live, err := client.NewWithWatch(started.RESTConfig(), client.Options{Scheme: Scheme()})
	if err != nil {
		return 1, fmt.Errorf("make a client: %w", err)
	}
	*everything = newRemembering(live)
	return m.Run(), nil
}

// Scheme returns a scheme with the kinds that the reconcilers of this API read and write.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, imagev1.AddToScheme, helmv2.AddToScheme, kustomizev1.AddToScheme, sourcev1.AddToScheme, generatorv1.AddToScheme, v1alpha1.AddToScheme, environmentsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

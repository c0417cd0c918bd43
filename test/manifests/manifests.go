// SPDX-License-Identifier: Apache-2.0

// Package manifests renders the manifests that users install. Tests inspect, apply and
// compare exactly these.
package manifests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

const (
	// Default is the kustomization that installs everything that one cluster needs.
	Default = "config/default"
	// Chart is the folder of the Helm chart.
	Chart = "charts/rollout-controller"
	// Namespace is the namespace into which Default installs the controller.
	Namespace = "kuberik-system"
	// Release is the name of a Helm release whose objects have the same names as
	// Default's.
	Release = "rollout-controller"
	// kubeVersion is the Kubernetes version that Helm renders for when it asks no API
	// server.
	kubeVersion = "1.36.0"
)

// Kustomize renders a folder with the version of kustomize that hack/tools pins. The
// folder is relative to the root of the repository.
func Kustomize(ctx context.Context, folder string) ([]*unstructured.Unstructured, error) {
	stream, err := run(ctx, kustomize, "build", filepath.Join(parts.Root(), folder))
	if err != nil {
		return nil, err
	}
	return Decode(stream)
}

// WithComponents renders Default with some of config/components.
func WithComponents(ctx context.Context, components ...string) ([]*unstructured.Unstructured, error) {
	folder, err := os.MkdirTemp("", "kustomization-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	root, err := filepath.Rel(folder, parts.Root()) // kustomize accepts no absolute paths
	if err != nil {
		return nil, fmt.Errorf("find the manifests: %w", err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "resources:\n- %s\ncomponents:\n", filepath.Join(root, Default))
	for _, component := range components {
		fmt.Fprintf(&text, "- %s\n", filepath.Join(root, "config", "components", component))
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		return nil, fmt.Errorf("write a kustomization: %w", err)
	}
	stream, err := run(ctx, kustomize, "build", folder)
	if err != nil {
		return nil, err
	}
	return Decode(stream)
}

// Helm runs the version of Helm that hack/helm pins and returns its output.
func Helm(ctx context.Context, args ...string) ([]byte, error) {
	return run(ctx, helm, args...)
}

// Rendered returns what `helm template` prints for the chart in a folder of the
// repository, as a release in a namespace. The other arguments are those of Helm. They may
// name another --kube-version.
func Rendered(ctx context.Context, chart, release, namespace string, args ...string) ([]byte, error) {
	return Helm(ctx, append([]string{
		"template", release, filepath.Join(parts.Root(), chart), "--namespace=" + namespace, "--kube-version=" + kubeVersion,
	}, args...)...)
}

// Template renders the chart as the release rollout-controller in the namespace
// kuberik-system. It passes more arguments to `helm template`.
func Template(ctx context.Context, args ...string) ([]*unstructured.Unstructured, error) {
	return decoded(Rendered(ctx, Chart, Release, Namespace, args...))
}

// Coordinator renders the chart of the coordinator of Deployments into a namespace. It
// passes more arguments to `helm template`.
func Coordinator(ctx context.Context, namespace string, args ...string) ([]*unstructured.Unstructured, error) {
	const name = "kube-deployment-coordinator"
	return decoded(Rendered(ctx, "charts/"+name, name, namespace, args...))
}

func decoded(stream []byte, err error) ([]*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	return Decode(stream)
}

// The programs that render are built once per process. Otherwise the go command would
// build them again for each of several concurrent callers.
var (
	kustomize = sync.OnceValues(func() (string, error) { return build("hack/tools", "kustomize") })
	helm      = sync.OnceValues(func() (string, error) { return build("hack/helm", "helm") })
)

// build builds a program that the go.mod of a folder pins, and returns its path in Go's
// build cache.
func build(folder, name string) (string, error) {
	command := exec.Command("go", "tool", "-n", "-modfile="+folder+"/go.mod", name)
	command.Dir = parts.Root()
	command.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile builds it
	path, err := output(command)
	return strings.TrimSpace(string(path)), err
}

// run runs a program and returns its output.
func run(ctx context.Context, program func() (string, error), args ...string) ([]byte, error) {
	path, err := program()
	if err != nil {
		return nil, err
	}
	return output(exec.CommandContext(ctx, path, args...))
}

// output returns the output of a command, or its standard error as the error.
func output(command *exec.Cmd) ([]byte, error) {
	printed, err := command.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return printed, fmt.Errorf("%s: %s", filepath.Base(command.Path), exit.Stderr)
	}
	return printed, err
}

// Decode returns the objects of a stream of YAML documents. It skips empty documents.
func Decode(stream []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("decode manifests: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// As returns the objects of some kinds as a type. It is strict: a field that the type
// does not have is an error.
func As[T any](objects []*unstructured.Unstructured, kinds ...string) ([]T, error) {
	var typed []T
	for _, o := range objects {
		for _, kind := range kinds {
			if o.GetKind() != kind {
				continue
			}
			var object T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &object, true); err != nil {
				return nil, fmt.Errorf("%s %s: %w", kind, o.GetName(), err)
			}
			typed = append(typed, object)
		}
	}
	return typed, nil
}

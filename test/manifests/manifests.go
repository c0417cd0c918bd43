// SPDX-License-Identifier: Apache-2.0

// Package manifests renders the manifests that users install, so that tests
// look at, apply and compare just these.
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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// Default is the kustomization that installs everything one cluster needs.
const Default = "config/default"

// Kustomize renders a folder, given from the root of the repository, with the
// version of kustomize that hack/tools pins.
func Kustomize(ctx context.Context, folder string) ([]*unstructured.Unstructured, error) {
	stream, err := tool(ctx, "kustomize", "build", filepath.Join(parts.Root(), folder))
	if err != nil {
		return nil, err
	}
	return Decode(stream)
}

// tool runs a program that hack/tools pins, and returns what it prints.
func tool(ctx context.Context, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"tool", "-modfile=hack/tools/go.mod", name}, args...)...)
	command.Dir = parts.Root()
	command.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile builds it
	output, err := command.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil, fmt.Errorf("%s: %s", name, exit.Stderr)
	}
	return output, err
}

// Decode returns the objects of a stream of YAML documents; empty ones are
// left out.
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

// As returns the objects of some kinds as a type, strictly: a field that the
// type does not have is an error.
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

// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// Patched renders objects with a kustomization that has them as resources and uses a
// component. The path of the component is relative to the root of the repository.
func Patched(ctx context.Context, component string, objects ...*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	folder, err := os.MkdirTemp("", "kustomization-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	relative, err := filepath.Rel(folder, filepath.Join(parts.Root(), component))
	if err != nil {
		return nil, fmt.Errorf("find the component: %w", err)
	}
	kustomization := map[string]any{"components": []string{relative}}
	var resources []string
	for i, o := range objects {
		resources = append(resources, fmt.Sprintf("%d.yaml", i))
		if err := writeYAML(filepath.Join(folder, resources[i]), o.Object); err != nil {
			return nil, err
		}
	}
	kustomization["resources"] = resources
	if err := writeYAML(filepath.Join(folder, "kustomization.yaml"), kustomization); err != nil {
		return nil, err
	}
	stream, err := run(ctx, kustomize, "build", folder)
	if err != nil {
		return nil, err
	}
	return Decode(stream)
}

func writeYAML(path string, content any) error {
	text, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return os.WriteFile(path, text, 0o600)
}

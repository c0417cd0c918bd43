// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

const imageGroup = "image.toolkit.fluxcd.io"

// installCRDs installs CRDs and waits until discovery lists all kinds that they serve.
func (c *ControlPlane) installCRDs(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		if err := c.client.Create(ctx, crd); err != nil {
			return fmt.Errorf("install a CRD: %w", err)
		}
	}
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
			if err := c.awaitKind(ctx, kind, version); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitKind waits until discovery lists a kind. It does not wait if the version is not
// served.
func (c *ControlPlane) awaitKind(ctx context.Context, kind schema.GroupKind, version apiextensionsv1.CustomResourceDefinitionVersion) error {
	for version.Served {
		_, err := c.client.RESTMapper().RESTMapping(kind, version.Name)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be served at %s: %w", kind, version.Name, errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// loadCRDs reads Flux's CRDs and the caller's. It sets the image API to the wanted
// version.
func (c *ControlPlane) loadCRDs(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := c.crdPaths(ctx)
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		read, err := readCRDs(path)
		if err != nil {
			return nil, err
		}
		crds = append(crds, read...)
	}
	for _, crd := range crds {
		if crd.Spec.Group == imageGroup {
			serveOnlyAs(crd, string(c.options.ImageVersion))
		}
	}
	return crds, nil
}

// crdPaths returns the paths of the CRDs. The module of each Flux controller contains its
// own CRDs.
func (c *ControlPlane) crdPaths(ctx context.Context) ([]string, error) {
	sources := []parts.Name{parts.SourceController, parts.KustomizeController, parts.ImageReflectorController}
	if c.options.Helm || c.options.HelmCRDs {
		sources = append(sources, parts.HelmController)
	}
	if c.options.Notifications {
		sources = append(sources, parts.NotificationController)
	}
	var paths []string
	for _, name := range sources {
		dir, err := parts.Source(ctx, name)
		if err != nil {
			return nil, err
		}
		paths = append(paths, filepath.Join(dir, "config", "crd", "bases"))
	}
	if c.options.Workloads {
		dir, err := parts.Source(ctx, parts.KWOK)
		if err != nil {
			return nil, err
		}
		paths = append(paths, filepath.Join(dir, "kustomize", "crd", "bases", "kwok.x-k8s.io_stages.yaml"))
	}
	return append(paths, c.options.CRDPaths...), nil
}

// readCRDs reads the CRDs in a file or in the files of a folder.
func readCRDs(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("find CRDs: %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return nil, fmt.Errorf("find CRDs in %s: %w", path, err)
		}
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read CRDs: %w", err)
		}
		read, err := parseCRDs(string(content))
		if err != nil {
			return nil, fmt.Errorf("read CRDs from %s: %w", file, err)
		}
		crds = append(crds, read...)
	}
	return crds, nil
}

func parseCRDs(content string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, document := range strings.Split("\n"+content, "\n---") {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(document), crd); err != nil {
			return nil, err
		}
		if crd.Kind == "CustomResourceDefinition" {
			if len(crd.Spec.Versions) == 0 {
				return nil, errors.New(crd.Name + " has no versions")
			}
			crds = append(crds, crd)
		}
	}
	return crds, nil
}

// serveOnlyAs renames the storage version of a CRD and drops its other versions. The
// fields that the project reads have the same schema in v1 and v1beta2.
func serveOnlyAs(crd *apiextensionsv1.CustomResourceDefinition, version string) {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			v.Name, v.Served, v.Deprecated, v.DeprecationWarning = version, true, false, nil
			crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{v}
			return
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"path"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fluxrollouts/rollout-controller/test/artifact"
)

const (
	chartConfigType types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	// ChartContentType is the media type by which Flux finds the chart in a Helm
	// artifact.
	ChartContentType types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Chart is a Helm chart. Its name is the last part of its repository.
type Chart struct {
	Repository string
	// Version is the version of the chart and of the application.
	Version string
	// Tag is the tag of the artifact. If it is empty, the tag is the version, as in Helm.
	Tag string
	// Files maps the path of each file, relative to the chart's folder, to its content.
	// Chart.yaml is generated.
	Files map[string]string
}

// PushChart stores a chart in the registry as `helm push` does.
func (r *Registry) PushChart(ctx context.Context, c Chart) error {
	tag, err := r.reference(c.Repository, cmp.Or(c.Tag, c.Version))
	if err != nil {
		return err
	}
	content, err := artifact.Archive(c.packed())
	if err != nil {
		return err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), chartConfigType)
	image, err = mutate.AppendLayers(image, static.NewLayer(content, ChartContentType))
	if err != nil {
		return fmt.Errorf("make the chart %s: %w", tag, err)
	}
	if err := remote.Write(tag, image, r.options(ctx)...); err != nil {
		return fmt.Errorf("push %s: %w", tag, err)
	}
	return nil
}

// packed returns the files of the archive. All are in a folder with the chart's name.
func (c Chart) packed() map[string]string {
	name := path.Base(c.Repository)
	files := map[string]string{
		name + "/Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\nappVersion: %q\n", name, c.Version, c.Version),
	}
	for file, content := range c.Files {
		files[name+"/"+file] = content
	}
	return files
}

// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"maps"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/artifact"
)

// Artifact is an artifact that Flux deploys: manifests under a tag of a repository.
type Artifact struct {
	Repository string
	Tag        string
	// Files maps the name of each manifest to its content.
	Files map[string]string
	// Annotations are added to org.opencontainers.image.created, source and revision, or
	// replace them. An empty value removes one.
	Annotations map[string]string
}

// Push stores an artifact and returns its digest. Equal artifacts have equal digests only
// if their annotations set the time of creation.
func (r *Registry) Push(ctx context.Context, a Artifact) (string, error) {
	tag, err := r.reference(a.Repository, a.Tag)
	if err != nil {
		return "", err
	}
	made := artifact.Artifact{Files: a.Files, Annotations: a.annotations()}
	return artifact.Push(ctx, tag, made, r.options(ctx)...)
}

func (a Artifact) annotations() map[string]string {
	all := map[string]string{
		artifact.CreatedAnnotation:  time.Now().UTC().Format(time.RFC3339),
		artifact.SourceAnnotation:   "https://example.com/" + a.Repository,
		artifact.RevisionAnnotation: a.Tag,
	}
	maps.Copy(all, a.Annotations)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

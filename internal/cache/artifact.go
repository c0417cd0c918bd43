// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// trimArtifact keeps which generator has made an ExternalArtifact, and what shows whether it
// has a release.
func trimArtifact(e *sourcev1.ExternalArtifact) {
	e.ManagedFields = nil
	trimMetadata(e)
	artifact := e.Status.Artifact
	e.Status = sourcev1.ExternalArtifactStatus{}
	if _, generated := targets.GeneratorOf(e); !generated {
		e.Spec = sourcev1.ExternalArtifactSpec{}
	} else if artifact != nil {
		e.Status.Artifact = &meta.Artifact{Revision: artifact.Revision, Digest: artifact.Digest}
	}
}

// trimGenerator keeps of the copies of an output only from which sources they are. Of an
// ArtifactGenerator that no release can reach, only its existence is kept.
func trimGenerator(g *generatorv1.ArtifactGenerator) {
	g.ManagedFields = nil
	paused := g.Annotations[generatorv1.ReconcileAnnotation]
	trimMetadata(g)
	status := g.Status
	g.Status = generatorv1.ArtifactGeneratorStatus{}
	if !slices.ContainsFunc(g.Spec.Sources, func(s generatorv1.SourceReference) bool { return targets.LeadsOn(s.Kind) }) {
		g.Spec = generatorv1.ArtifactGeneratorSpec{}
		return
	}
	if paused != "" {
		metav1.SetMetaDataAnnotation(&g.ObjectMeta, generatorv1.ReconcileAnnotation, paused)
	}
	g.Spec.CommonMetadata, g.Spec.Sources = nil, fitted(g.Spec.Sources)
	var outputs []generatorv1.OutputArtifact
	for _, o := range g.Spec.OutputArtifacts {
		outputs = append(outputs, generatorv1.OutputArtifact{Name: o.Name, Revision: o.Revision, Copy: sourcesIn(o.Copy)})
	}
	g.Spec.OutputArtifacts = fitted(outputs)
	g.Status.Conditions, g.Status.ObservedSourcesDigest = readConditions(status.Conditions), status.ObservedSourcesDigest
	var made []generatorv1.ExternalArtifactReference
	for _, ref := range status.Inventory {
		made = append(made, generatorv1.ExternalArtifactReference{Name: ref.Name, Digest: ref.Digest})
	}
	g.Status.Inventory = fitted(made)
}

// sourcesIn returns a copy of nothing from each source that is copied from.
func sourcesIn(all []generatorv1.CopyOperation) []generatorv1.CopyOperation {
	var kept []generatorv1.CopyOperation
	for _, c := range all {
		alias, _, _ := strings.Cut(c.From, "/")
		from := generatorv1.CopyOperation{From: alias + "/"}
		if !slices.ContainsFunc(kept, func(k generatorv1.CopyOperation) bool { return k.From == from.From }) {
			kept = append(kept, from)
		}
	}
	return fitted(kept)
}

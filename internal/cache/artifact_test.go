// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestGeneratorIsKeptSmall(t *testing.T) {
	g := NewWithT(t)
	repository := fixture.MakeRepository("shop").Pulled("1.0.0@sha256:1").Obj()
	builder := fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "shop").Makes("shop", "", "app", "app").Paused()
	artifact := builder.Builds(nil, repository)[0]
	generator := builder.Obj()
	trim(generator)
	trim(artifact)
	g.Expect(generator.Spec.OutputArtifacts[0].Copy).To(Equal([]generatorv1.CopyOperation{{From: "@app/"}}), "one for each source")
	g.Expect(generator.IsDisabled()).To(BeTrue())
	g.Expect(generator.Status.ObservedSourcesDigest).NotTo(BeEmpty())
	g.Expect(generator.Status.Inventory).To(Equal([]generatorv1.ExternalArtifactReference{{Name: "shop", Digest: artifact.Status.Artifact.Digest}}))
	g.Expect(artifact.Status.Artifact.URL).To(BeEmpty())
	g.Expect(artifact.Spec.SourceRef.Name).To(Equal("shop"))

	bucket := fixture.MakeGenerator("bucket").Takes("app", sourcev1.BucketKind, "shop").Makes("bucket", "", "app").Obj()
	trim(bucket)
	g.Expect(bucket.Spec).To(BeZero(), "no release can reach it")
}

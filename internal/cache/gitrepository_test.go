// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func trimmedGit(g Gomega, b *fixture.GitRepositoryBuilder, own ...metav1.ManagedFieldsEntry) client.Object {
	full := laden(b.Obj()).(*sourcev1.GitRepository)
	full.ManagedFields = append(full.ManagedFields, own...)
	full.Spec.SecretRef = &meta.LocalObjectReference{Name: "login"}
	full.Spec.Include = []sourcev1.GitRepositoryInclude{{GitRepositoryRef: meta.LocalObjectReference{Name: "base"}}}
	for range 2 { // an object may be trimmed more than once
		_, err := new(trimmer).trim(full)
		g.Expect(err).NotTo(HaveOccurred())
	}
	return full
}

// TestGitRepositoryIsKeptAsFarAsItIsRead lists all that is kept of a GitRepository. Of one
// that no Rollout writes, nothing but its existence is.
func TestGitRepositoryIsKeptAsFarAsItIsRead(t *testing.T) {
	g := NewWithT(t)
	own := metav1.ManagedFieldsEntry{
		Manager: write.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:ref":{"f:tag":{}}}}`),
	}
	full := func() *fixture.GitRepositoryBuilder {
		return fixture.MakeGitRepository("shop").Tag("1.0.0").Pulled(fixture.Commit("1.0.0")).Ready()
	}

	kept := fixture.MakeGitRepository("shop").DrivenBy("shop").Tag("1.0.0").Ready().Obj()
	kept.TypeMeta, kept.ResourceVersion, kept.ManagedFields = metav1.TypeMeta{}, "7", []metav1.ManagedFieldsEntry{own}
	kept.Spec = sourcev1.GitRepositorySpec{URL: kept.Spec.URL, Reference: kept.Spec.Reference}
	kept.Status.Artifact = &meta.Artifact{Revision: fixture.Commit("1.0.0")}
	allIsWell(kept.Status.Conditions)
	g.Expect(trimmedGit(g, full().DrivenBy("shop"), own)).To(Equal(kept))

	exists := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "shop", Generation: 1, ResourceVersion: "7"}}
	g.Expect(trimmedGit(g, full(), own)).To(Equal(exists))
}

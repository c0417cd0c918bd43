// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/artifact"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

const (
	repository = "manifests/rollout-controller"
	image      = "ghcr.io/fluxrollouts/rollout-controller"
)

func TestFluxInstallsUpgradesAndUninstallsTheController(t *testing.T) {
	pushed := makePush(t, "v0.1.0")
	source, kustomization := fluxObjects()
	for _, o := range []client.Object{source, kustomization} {
		if err := plane.Client().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	awaitApplied(t, kustomization, "v0.1.0@"+pushed)
	awaitController(t, 2, image+":v0.1.0")
	rollout := createRollout(t, "delivered-by-flux")

	digest, err := plane.Registry.Push(t.Context(), controlplane.Artifact{Repository: repository, Tag: "v0.1.1", Files: nextVersion(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.RequestReconcile(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	awaitApplied(t, kustomization, "v0.1.1@"+digest)
	awaitController(t, 2, image+":v0.1.1")
	stillThere(t, rollout)

	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace().GetName(), Name: "of-others"}}
	if err := plane.Client().Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{kustomization, source} {
		if err := plane.Client().Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		awaitGone(t, o)
	}
	awaitUninstalled(t, false)
	stillThere(t, namespace())
	stillThere(t, other)
	stillThere(t, rollout)
	if err := plane.Client().Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
}

// makePush pushes the artifact as a release does, and returns its digest.
func makePush(t *testing.T, tag string) string {
	t.Helper()
	address := plane.Registry.Host() + "/" + repository
	printed := run(t, "push-artifact", "REPOSITORY="+address, "TAG="+tag)
	digest, found := strings.CutPrefix(printed, address+":"+tag+"@")
	if !found {
		t.Fatalf("make push-artifact printed %q", printed)
	}
	return digest
}

// nextVersion returns the manifests with the image of the next version.
func nextVersion(t *testing.T) map[string]string {
	t.Helper()
	files, err := artifact.Manifests(os.DirFS(filepath.Join(parts.Root(), "config")), "samples")
	if err != nil {
		t.Fatal(err)
	}
	const manager = "manager/kustomization.yaml"
	changed := strings.ReplaceAll(files[manager], "newTag: v0.1.0", "newTag: v0.1.1")
	if changed == files[manager] {
		t.Fatalf("%s does not say v0.1.0", manager)
	}
	files[manager] = changed
	return files
}

// fluxObjects returns the objects of the installation guide.
func fluxObjects() (*sourcev1.OCIRepository, *kustomizev1.Kustomization) {
	meta := metav1.ObjectMeta{Namespace: controlplane.FluxNamespace, Name: "rollout-controller"}
	source := &sourcev1.OCIRepository{ObjectMeta: meta, Spec: sourcev1.OCIRepositorySpec{
		URL:       "oci://" + plane.Registry.Host() + "/" + repository,
		Reference: &sourcev1.OCIRepositoryRef{SemVer: "0.x"},
		Interval:  metav1.Duration{Duration: time.Hour},
		Insecure:  true,
	}}
	kustomization := &kustomizev1.Kustomization{ObjectMeta: meta, Spec: kustomizev1.KustomizationSpec{
		Interval:   metav1.Duration{Duration: time.Hour},
		Timeout:    &metav1.Duration{Duration: time.Minute},
		Prune:      true,
		Wait:       true,
		Components: []string{"components/high-availability"},
		SourceRef:  kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: meta.Name},
	}}
	return source, kustomization
}

// awaitApplied waits until Flux has applied a revision and found it healthy.
func awaitApplied(t *testing.T, k *kustomizev1.Kustomization, revision string) {
	t.Helper()
	env.Eventually(t, "Flux has applied "+revision, func() (bool, string) {
		if err := plane.Client().Get(t.Context(), client.ObjectKeyFromObject(k), k); err != nil {
			return false, err.Error()
		}
		var seen []string
		ready := false
		for _, c := range k.Status.Conditions {
			seen = append(seen, c.Type+"="+string(c.Status)+" "+c.Message)
			ready = ready || c.Type == "Ready" && c.Status == metav1.ConditionTrue
		}
		return ready && k.Status.LastAppliedRevision == revision, strings.Join(seen, "\n")
	})
}

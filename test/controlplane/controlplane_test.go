// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  namespace: default
spec:
  replicas: 2
  progressDeadlineSeconds: 5
  selector:
    matchLabels: {app: shop}
  template:
    metadata:
      labels: {app: shop}
    spec:
      containers:
      - name: shop
        image: example.com/shop:VERSION
`

// stage is a control plane together with the test that uses it.
type stage struct {
	*controlplane.ControlPlane
	t *testing.T
}

// start starts a control plane and stops it after the test.
func start(t *testing.T, options controlplane.Options) *stage {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	began := time.Now()
	c, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &stage{c, t}
}

func (s *stage) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := s.Client().Create(s.t.Context(), o); err != nil {
			s.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (s *stage) push(version string) string {
	s.t.Helper()
	digest, err := s.Registry.Push(s.t.Context(), controlplane.Artifact{
		Repository: "shop",
		Tag:        version,
		Files:      map[string]string{"deployment.yaml": strings.ReplaceAll(deployment, "VERSION", version)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return digest
}

// eventually reads an object until it is as wanted.
func eventually[T client.Object](s *stage, obj T, what string, wanted func(T) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 40*time.Second)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		if last = s.Client().Get(ctx, client.ObjectKeyFromObject(obj), obj); last == nil && wanted(obj) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Fatalf("never saw %s: %v\n%+v", what, last, obj)
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "default"}
}

func shopRepository(host, tag string) *sourcev1.OCIRepository {
	return &sourcev1.OCIRepository{
		ObjectMeta: named("shop"),
		Spec: sourcev1.OCIRepositorySpec{
			URL:       "oci://" + host + "/shop",
			Reference: &sourcev1.OCIRepositoryRef{Tag: tag},
			Insecure:  true,
			Interval:  metav1.Duration{Duration: time.Hour},
		},
	}
}

func shopKustomization() *kustomizev1.Kustomization {
	return &kustomizev1.Kustomization{
		ObjectMeta: named("shop"),
		Spec: kustomizev1.KustomizationSpec{
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "shop"},
			Path:      "./",
			Prune:     true,
			Wait:      true,
			Interval:  metav1.Duration{Duration: time.Hour},
			Timeout:   &metav1.Duration{Duration: 20 * time.Second},
		},
	}
}

func TestFluxDeploysWhatIsPushed(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{Workloads: true, Flux: true, ImageScanner: true})
	good := s.push("1.0.0")
	s.create(shopRepository(s.Registry.Host(), "1.0.0"), shopKustomization())

	ks := shopKustomization()
	eventually(s, ks, "1.0.0 applied", func(ks *kustomizev1.Kustomization) bool {
		return ks.Status.LastAppliedRevision == "1.0.0@"+good && apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.ReadyCondition)
	})
	shop := &appsv1.Deployment{ObjectMeta: named("shop")}
	eventually(s, shop, "two ready pods", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas == 2 })
	pods := s.podUIDs("1.0.0")

	if err := s.BreakVersion(t.Context(), "2.0.0"); err != nil {
		t.Fatal(err)
	}
	bad := s.push("2.0.0")
	s.deploy("2.0.0")
	eventually(s, ks, "2.0.0 failing", func(ks *kustomizev1.Kustomization) bool {
		return ks.Status.LastAttemptedRevision == "2.0.0@"+bad && apimeta.IsStatusConditionFalse(ks.Status.Conditions, meta.ReadyCondition)
	})
	if now := s.podUIDs("1.0.0"); len(now) != len(pods) {
		t.Errorf("of the pods that were ready, %d are left; want %d", len(now), len(pods))
	}

	if err := s.FixVersion(t.Context(), "2.0.0"); err != nil {
		t.Fatal(err)
	}
	eventually(s, shop, "the fixed version ready", func(d *appsv1.Deployment) bool {
		return d.Status.UpdatedReplicas == 2 && d.Status.ReadyReplicas == 2 && d.Status.Replicas == 2
	})
	s.deletesGoThrough(shop)
}

func (s *stage) deploy(tag string) {
	s.t.Helper()
	repo := shopRepository(s.Registry.Host(), tag)
	if err := s.Client().Get(s.t.Context(), client.ObjectKeyFromObject(repo), repo); err != nil {
		s.t.Fatal(err)
	}
	patch := client.MergeFrom(repo.DeepCopy())
	repo.Spec.Reference.Tag = tag
	if err := s.Client().Patch(s.t.Context(), repo, patch); err != nil {
		s.t.Fatal(err)
	}
}

// podUIDs returns the UIDs of the running pods of a version.
func (s *stage) podUIDs(version string) []string {
	s.t.Helper()
	var pods corev1.PodList
	if err := s.Client().List(s.t.Context(), &pods, client.InNamespace("default")); err != nil {
		s.t.Fatal(err)
	}
	var uids []string
	for _, p := range pods.Items {
		if strings.HasSuffix(p.Spec.Containers[0].Image, ":"+version) && p.Status.Phase == corev1.PodRunning {
			uids = append(uids, string(p.UID))
		}
	}
	return uids
}

func (s *stage) deletesGoThrough(d *appsv1.Deployment) {
	s.t.Helper()
	if err := s.Client().Delete(s.t.Context(), d); err != nil {
		s.t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		var pods corev1.PodList
		if err := s.Client().List(s.t.Context(), &pods, client.InNamespace("default")); err != nil {
			s.t.Fatal(err)
		}
		if len(pods.Items) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Error("pods of a deleted Deployment stay")
}

func TestAnotherControlPlaneLosesNoTemporaryFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, err := os.MkdirTemp("", "kustomization-*") // as kustomize-controller names its own
	if err != nil {
		t.Fatal(err)
	}
	start(t, controlplane.Options{Flux: true})
	if _, err := os.Stat(used); err != nil {
		t.Error(err)
	}
}

func TestImagesAreServedAtTheVersionAskedFor(t *testing.T) {
	for _, version := range []controlplane.ImageVersion{controlplane.ImageV1, controlplane.ImageV1Beta2} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			s := start(t, controlplane.Options{ImageVersion: version})
			s.create(shopScan(s.Registry.Host()), shopPolicy())
			mapping, err := s.Client().RESTMapper().KindFor(imagev1.GroupVersion.WithResource("imagepolicies").GroupResource().WithVersion(""))
			if err != nil || mapping.Version != string(version) {
				t.Errorf("served as %v, %v", mapping, err)
			}
		})
	}
}

func TestFluxFindsWhatIsPushed(t *testing.T) {
	t.Parallel()
	s := start(t, controlplane.Options{ImageScanner: true})
	s.push("1.0.0")
	scan, policy := shopScan(s.Registry.Host()), shopPolicy()
	s.create(scan, policy)
	eventually(s, policy, "1.0.0 chosen", chose("1.0.0"))

	s.push("1.1.0")
	if err := s.RequestReconcile(t.Context(), scan); err != nil {
		t.Fatal(err)
	}
	eventually(s, policy, "1.1.0 chosen", chose("1.1.0"))
}

func TestScannerThatCannotReadItsKindsIsNotStarted(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{ImageScanner: true, ImageVersion: controlplane.ImageV1Beta2})
	if err == nil || !strings.Contains(err.Error(), "reads only v1") {
		t.Errorf("started with %v", err)
	}
}

func shopScan(host string) *imagev1.ImageRepository {
	return &imagev1.ImageRepository{
		ObjectMeta: named("shop"),
		Spec: imagev1.ImageRepositorySpec{
			Image: host + "/shop", Insecure: true, Interval: metav1.Duration{Duration: time.Hour},
		},
	}
}

func shopPolicy() *imagev1.ImagePolicy {
	return &imagev1.ImagePolicy{
		ObjectMeta: named("shop"),
		Spec: imagev1.ImagePolicySpec{
			ImageRepositoryRef: meta.NamespacedObjectReference{Name: "shop"},
			Policy:             imagev1.ImagePolicyChoice{SemVer: &imagev1.SemVerPolicy{Range: ">=1.0.0"}},
		},
	}
}

func chose(tag string) func(*imagev1.ImagePolicy) bool {
	return func(p *imagev1.ImagePolicy) bool { return p.Status.LatestRef != nil && p.Status.LatestRef.Tag == tag }
}

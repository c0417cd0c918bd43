// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), imagev1.AddToScheme(scheme), kustomizev1.AddToScheme(scheme),
		sourcev1.AddToScheme(scheme), generatorv1.AddToScheme(scheme), helmv2.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), environmentsv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// clusterOf returns a cluster in memory.
func clusterOf(t *testing.T, objects ...client.Object) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.New(scheme(t), objects...)
	if err == nil {
		err = errors.Join(gather.Index(t.Context(), s), gather.IndexEnvironments(t.Context(), s), targets.IndexHelmReleases(t.Context(), s), targets.IndexGitRepositories(t.Context(), s))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// build returns the tree of a Rollout, read from a cluster.
func build(t *testing.T, from *snapshot.Snapshot, rollout *v1alpha1.Rollout, limits tree.Limits) tree.Tree {
	t.Helper()
	rollout.Status.ObservedGeneration = rollout.Generation
	s := gather.Gatherer{Client: from, Live: from, HelmReleases: true, GitRepositories: true, Environments: true, Quarantines: true}.Gather(t.Context(), rollout, fixture.Noon)
	return tree.Builder{Reader: from, Limits: limits}.Build(t.Context(), s, promotion.Decide(s.Input))
}

// draw returns a tree as text.
func draw(t *testing.T, of tree.Tree, f tree.Folding) string {
	t.Helper()
	var text strings.Builder
	if err := show.Tree(&text, of.Fold(f), show.TreeStyle{Style: show.Style{Unicode: true}}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

var update = flag.Bool("update", false, "write the texts in testdata anew")

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got; run with -update if that is right):\n%s", file, diff)
	}
}

// running returns a Rollout on which 1.0.0 has succeeded.
func running() *v1alpha1.Rollout {
	return fixture.MakeRollout("shop").Ledger("1.0.0").SelectAllChecks().History(
		fixture.MakeEntry("1.0.0").ID(41).Succeeded().By(v1alpha1.TriggeredByUser, "alice").Message("spring prices")).Obj()
}

// offer returns the policy and the repository of a Rollout's releases.
func offer(tags ...string) []client.Object {
	return []client.Object{
		fixture.MakeScan("shop").Found(tags...).Obj(), fixture.MakePolicy("shop").Latest(tags[len(tags)-1]).Obj(),
	}
}

// pulled returns an OCIRepository of which 1.0.0 was pulled.
func pulled() *sourcev1.OCIRepository {
	return fixture.MakeRepository("shop").DrivenBy("shop").Tag("1.0.0").Pulled(fixture.Revision("1.0.0")).Ready().Obj()
}

// appliedKustomization returns a Kustomization that has applied 1.0.0, with these objects.
func appliedKustomization(name string, objects ...client.Object) *kustomizev1.Kustomization {
	k := fixture.MakeKustomization(name).From(sourcev1.OCIRepositoryKind, "shop").Applied(fixture.Revision("1.0.0")).Ready().Obj()
	return having(k, objects...)
}

// having adds objects to the inventory of a Kustomization, and its labels to them.
func having(k *kustomizev1.Kustomization, objects ...client.Object) *kustomizev1.Kustomization {
	k.Status.Inventory = &kustomizev1.ResourceInventory{}
	for _, o := range objects {
		kind := o.GetObjectKind().GroupVersionKind()
		k.Status.Inventory.Entries = append(k.Status.Inventory.Entries, kustomizev1.ResourceRef{
			ID: fmt.Sprintf("%s_%s_%s_%s", o.GetNamespace(), o.GetName(), kind.Group, kind.Kind), Version: kind.Version,
		})
		label(o, kustomizev1.GroupVersion.Group, k)
	}
	return k
}

func label(o client.Object, group string, by client.Object) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[group+"/name"], labels[group+"/namespace"] = by.GetName(), by.GetNamespace()
	o.SetLabels(labels)
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: types.UID(name + "-uid"), Generation: 1}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: named(name)}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: named(name)}
}

// deployment returns a Deployment of one pod that is available.
func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: named(name),
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		},
	}
}

// broken returns a Deployment that has missed its deadline.
func broken(name string) *appsv1.Deployment {
	d := deployment(name)
	d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 0, 0, 1
	d.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
		Message: fmt.Sprintf("ReplicaSet %q has timed out progressing.", name+"-7d4b"),
	}}
	return d
}

// podOf returns a pod of a Deployment's only ReplicaSet.
func podOf(d *appsv1.Deployment, name string, status corev1.PodStatus) *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: named(name), Status: status}
	pod.Labels = map[string]string{"app": d.Name, appsv1.DefaultDeploymentUniqueLabelKey: "7d4b"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name + "-7d4b", Controller: ptr.To(true)}}
	return pod
}

// crashing is the status of a pod whose container ends again and again.
var crashing = corev1.PodStatus{
	Phase: corev1.PodRunning,
	ContainerStatuses: []corev1.ContainerStatus{{
		Name:                 "web",
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting failed container"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}},
	}},
}

// workloads returns Deployments that are well.
func workloads(n int) []client.Object {
	var all []client.Object
	for i := range n {
		all = append(all, deployment(fmt.Sprintf("web-%03d", i)))
	}
	return all
}

func ago(d time.Duration) metav1.Time { return metav1.NewTime(fixture.Noon.Add(-d)) }

// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// installs tries what was published on a control plane, by Helm and by Flux.
func (s *stranger) installs(t *testing.T) {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Workloads: true, Flux: true, ImageScanner: true, Registry: s.registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	i := installation{s, plane}
	i.byHelm(t)
	i.byFlux(t)
}

type installation struct {
	*stranger
	plane *controlplane.ControlPlane
}

func (i installation) byHelm(t *testing.T) {
	t.Helper()
	began := time.Now()
	i.helm(t, "install", manifests.Release, "oci://"+i.known["env.CHARTS"]+"/rollout-controller", "--version="+i.version(), "--plain-http", "--create-namespace", "--wait")
	d := i.awaitController(t)
	say("helm install: %s, in %s", d.Spec.Template.Spec.Containers[0].Image, time.Since(began).Round(time.Second))
	process := i.runs(t, d)
	i.asks(t)
	i.seesAReleaseHeld(t)
	if err := process.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	i.helm(t, "uninstall", manifests.Release, "--wait")
}

// helm runs Helm as an administrator, with files of its own.
func (i installation) helm(t *testing.T, args ...string) {
	t.Helper()
	printed, err := manifests.Helm(t.Context(), append(args, "--kubeconfig="+i.plane.Kubeconfig(), "--namespace="+manifests.Namespace,
		"--registry-config="+filepath.Join(i.folder, "helm.json"), "--repository-cache="+filepath.Join(i.folder, "cache"),
		"--repository-config="+filepath.Join(i.folder, "repositories.yaml"))...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", args[0], err, printed)
	}
}

// awaitController waits until the controller is available, with the image that was pushed.
func (i installation) awaitController(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: manifests.Namespace, Name: "rollout-controller-controller-manager"}}
	env.Eventually(t, "the controller by its digest", func() (bool, string) {
		if err := i.plane.Client().Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return false, err.Error()
		}
		image := d.Spec.Template.Spec.Containers[0].Image
		return strings.HasSuffix(image, "@"+i.digest()) && d.Status.AvailableReplicas > 0, image
	})
	return d
}

// runs starts the program of the image as the Deployment does, whose pods are simulated here.
func (i installation) runs(t *testing.T, d *appsv1.Deployment) *controlplane.Process {
	t.Helper()
	account := "system:serviceaccount:" + d.Namespace + ":" + d.Spec.Template.Spec.ServiceAccountName
	kubeconfig, err := i.plane.AddUser(account, "system:serviceaccounts", "system:serviceaccounts:"+d.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{"--kubeconfig=" + kubeconfig}, d.Spec.Template.Spec.Containers[0].Args,
		[]string{"--metrics-bind-address=0", "--health-probe-bind-address=0", "--webhook-port=" + env.FreePort(t)})
	process, err := i.plane.StartProcess("released", filepath.Join(i.folder, "rollout-controller-"+runtime.GOARCH), args, []string{"RUNTIME_NAMESPACE=" + d.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Stop(context.Background()) })
	env.Eventually(t, "the released controller reconciles", func() (bool, string) {
		log, err := os.ReadFile(process.LogFile)
		return err == nil && strings.Contains(string(log), "Starting workers"), string(log)
	})
	say("the program of the image runs, with the arguments and the rights that the chart gives it")
	return process
}

// asks unpacks the archive for this machine, and runs the program.
func (i installation) asks(t *testing.T) {
	t.Helper()
	archive := "flux-rollout_" + i.version() + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	command(t, i.folder, nil, "tar", "-xzf", filepath.Join(i.assets, archive))
	program := filepath.Join(i.folder, "flux-rollout")
	i.compareModules(t, program, "flux-rollout")
	printed := command(t, i.folder, []string{"KUBECONFIG=" + i.plane.Kubeconfig()}, program, "version")
	for _, want := range []string{"flux-rollout " + i.tag, "controller " + i.tag} {
		if !strings.Contains(printed, want) {
			t.Errorf("flux-rollout version does not say %s:\n%s", want, printed)
		}
	}
	say("the program of %s says: %s", archive, strings.Join(strings.Split(strings.TrimSpace(printed), "\n"), "; "))
}

// seesAReleaseHeld runs hack/kind.sh up to its end, where a release is held. The cluster, Flux
// and the controller are here already.
func (i installation) seesAReleaseHeld(t *testing.T) {
	t.Helper()
	kubectl, err := parts.Build(t.Context(), os.Stderr, parts.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	app := scenario.NewApp("podinfo", "podinfo")
	app.Repository = "stefanprodan/manifests/podinfo"
	for _, version := range []string{"6.7.0", "6.7.1", "6.8.0", "latest"} {
		if _, err := i.registry.Push(t.Context(), app.Release(version)); err != nil {
			t.Fatal(err)
		}
	}
	programs := t.TempDir()
	link(t, "kubectl.sh", filepath.Join(programs, "kubectl"))
	for _, name := range []string{"kind", "helm"} {
		if err := os.Symlink("/bin/true", filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	printed := command(t, parts.Root(), []string{
		"PATH=" + programs + ":" + os.Getenv("PATH"), "VERSION=" + i.tag, "KUBECTL=" + kubectl[parts.Kubectl],
		"KUBECONFIG=" + i.plane.Kubeconfig(), "REGISTRY=" + i.registry.Host(),
	}, filepath.Join(parts.Root(), "hack", "kind.sh"))
	held := regexp.MustCompile(`(?m)^podinfo +6\.7\.1 .*6\.8\.0 waits: .*$`).FindString(printed)
	if held == "" {
		t.Fatalf("no release is held:\n%s", printed)
	}
	say("hack/kind.sh, on this control plane: a release is held after %s:\n  %s", time.Since(began).Round(time.Second), held)
}

// byFlux installs as the installation guide says, with the key in place of the identity.
func (i installation) byFlux(t *testing.T) {
	t.Helper()
	key, err := os.ReadFile(i.key)
	if err != nil {
		t.Fatal(err)
	}
	named := metav1.ObjectMeta{Namespace: controlplane.FluxNamespace, Name: "rollout-controller"}
	source := &sourcev1.OCIRepository{ObjectMeta: named, Spec: sourcev1.OCIRepositorySpec{
		URL: "oci://" + i.known["env.MANIFESTS"], Reference: &sourcev1.OCIRepositoryRef{Tag: i.tag}, Interval: metav1.Duration{Duration: time.Hour}, Insecure: true,
		Verify: &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: named.Name}},
	}}
	kustomization := &kustomizev1.Kustomization{ObjectMeta: named, Spec: kustomizev1.KustomizationSpec{
		Interval: metav1.Duration{Duration: time.Hour}, Timeout: &metav1.Duration{Duration: time.Minute}, Prune: true, Wait: true,
		SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: named.Name},
	}}
	for _, o := range []client.Object{&corev1.Secret{ObjectMeta: named, Data: map[string][]byte{"cosign.pub": key}}, source, kustomization} {
		if err := i.plane.Client().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	env.Eventually(t, "Flux has applied the manifests", func() (bool, string) {
		err := i.plane.Client().Get(t.Context(), client.ObjectKeyFromObject(kustomization), kustomization)
		ready := apimeta.FindStatusCondition(kustomization.Status.Conditions, meta.ReadyCondition)
		if err != nil || ready == nil {
			return false, "no answer yet"
		}
		return ready.Status == metav1.ConditionTrue, ready.Message
	})
	if err := i.plane.Client().Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil {
		t.Fatal(err)
	}
	if !apimeta.IsStatusConditionTrue(source.Status.Conditions, sourcev1.SourceVerifiedCondition) {
		t.Errorf("Flux has not verified the signature: %v", source.Status.Conditions)
	}
	i.awaitController(t)
	say("Flux has verified and applied %s", source.Status.Artifact.Revision)
}

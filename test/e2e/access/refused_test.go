// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const credentialsRole = "rollout-controller-registry-credentials-role"

// TestControllerCanDoNothingWithoutItsRoles makes sure that the other tests prove
// something: their controller has its rights only from its roles.
func TestControllerCanDoNothingWithoutItsRoles(t *testing.T) {
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true})
	if err := plane.Controller.Kill(); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := scenario.Credentials(plane.ControlPlane, "nobody")
	if err != nil {
		t.Fatal(err)
	}
	blind, err := plane.StartAs("without-roles", kubeconfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	awaitLog(t, blind, "this account may not list rolloutapprovals.kuberik.com, and would promote past gates that it cannot see")
	if err := blind.Wait(t.Context()); err == nil {
		t.Error("the controller ends well, although it sees no gate")
	}
	if got := statuses(t, plane, "nobody"); len(got) == 0 || slices.Contains(got, http.StatusOK) {
		t.Errorf("the API server answered %v, want it to refuse everything", got)
	}

	s := env.New(t, plane)
	s.Create(seesGates(s.Name)...)
	process, err := plane.StartAs("sees-gates", kubeconfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.CreateFlux()
	s.Create(s.Rollout())
	s.Publish(s.ConfigRelease("1.0.0"))
	awaitLog(t, process, `rollouts.kuberik.com is forbidden: User \"system:serviceaccount:kuberik-system:nobody\"`)
	s.Stays("without a promotion", func(r *v1alpha1.Rollout) bool { return r.Current() == nil })
	endsInTime(t, process)
}

// seesGates lets the account nobody list what holds releases, and nothing else.
func seesGates(name string) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"rolloutapprovals", "clusterrolloutgates"}, Verbs: []string{"list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "nobody", Namespace: scenario.Namespace}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		},
	}
}

// endsInTime sends a process the signal that the kubelet sends, and checks that it ends
// in time. The caches of this process were never filled.
func endsInTime(t *testing.T, process *controlplane.Process) {
	t.Helper()
	const grace = 10 * time.Second // terminationGracePeriodSeconds of the manifests
	ctx, cancel := context.WithTimeout(t.Context(), grace)
	defer cancel()
	if err := syscall.Kill(process.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(ctx); ctx.Err() != nil {
		t.Errorf("the controller runs on %s after SIGTERM: %v", grace, err)
	}
}

func TestCredentialThatMayNotBeReadHoldsNoPromotion(t *testing.T) {
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true})
	plane.RefusalsAreMeant = true
	everywhere := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rollout-controller-registry-credentials-rolebinding"}}
	s := env.New(t, plane)
	s.Delete(everywhere)
	createWithLogin(s)
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	awaitLog(t, plane.Controller, "read Secret "+s.Namespace+"/login: this controller may not; bind the ClusterRole "+credentialsRole)
	if revision := s.Live().Current().Version.Revision; revision != nil {
		t.Errorf("the revision is known: %s", *revision)
	}

	if err := scenario.Grant(t.Context(), plane.ControlPlane, scenario.User(scenario.Account), credentialsRole, s.Namespace); err != nil {
		t.Fatal(err)
	}
	s.Await("its metadata", func(r *v1alpha1.Rollout) bool { return r.Current().Version.Revision != nil })
}

func TestNoCredentialIsReadWithoutTheFeature(t *testing.T) {
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true}, "--feature-gates=ReleaseMetadata=false")
	s := env.New(t, plane)
	s.Delete(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rollout-controller-registry-credentials-rolebinding"}})
	createWithLogin(s)
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	audited, err := plane.Audited()
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range audited {
		if request.Resource == "/secrets" || request.Resource == "/serviceaccounts" {
			t.Errorf("the controller asked to %s", request)
		}
	}
	if diff := cmp.Diff((*string)(nil), s.Live().Current().Version.Revision); diff != "" {
		t.Errorf("the revision (-want +got):\n%s", diff)
	}
}

// createWithLogin creates an application whose ImageRepository names a Secret.
func createWithLogin(s *env.Env) {
	s.T.Helper()
	s.CreateFlux()
	s.Create(login(s))
	repository := s.ImageRepository("")
	s.Change(repository, func() { repository.Spec.SecretRef = &meta.LocalObjectReference{Name: "login"} })
	s.Create(s.Rollout())
}

// awaitLog waits until a process logs a text.
func awaitLog(t *testing.T, process *controlplane.Process, text string) {
	t.Helper()
	env.Eventually(t, "the log line "+text, func() (bool, string) {
		log, err := os.ReadFile(process.LogFile)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(log), text), string(log[max(0, len(log)-2000):])
	})
}

// statuses returns the status codes that the API server sent to an account.
func statuses(t *testing.T, plane *env.Plane, account string) []int {
	t.Helper()
	audited, err := plane.Audited()
	if err != nil {
		t.Fatal(err)
	}
	var codes []int
	for _, request := range audited {
		if request.User == scenario.User(account) {
			codes = append(codes, request.Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

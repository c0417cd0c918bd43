// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// masters may do everything; audited makes the API server record the requests of a user.
const (
	masters = "system:masters"
	audited = "system:serviceaccounts"
)

// suggested finds the commands that an explanation suggests.
var suggested = regexp.MustCompile(`► (kubectl rollouts \S+ .*?)(?:   #.*)?\n`)

func TestCommandLineExplainsAHoldAndItsRemedyLetsTheReleaseGo(t *testing.T) {
	s := gated(t)

	alice := s.CommandLine(s.Namespace+":alice", masters, audited)
	explanation := alice.MustRun("explain", s.Name)
	for _, part := range []string{
		"Rollout " + s.Namespace + "/shop runs 1.0.0 (#1), Succeeded. 1 candidate, none can go now.",
		"1.1.0   held by 1", "✗ SomeGatesBlocking  not passing: RolloutGate freeze",
	} {
		if !strings.Contains(explanation, part) {
			t.Errorf("the explanation does not say %q:\n%s", part, explanation)
		}
	}
	if strings.Contains(explanation, "the status of the Rollout says something else") {
		t.Errorf("the controller and the command line disagree:\n%s", explanation)
	}
	remedies := suggested.FindAllStringSubmatch(explanation, -1)
	if len(remedies) != 1 {
		t.Fatalf("there are %d remedies, want 1:\n%s", len(remedies), explanation)
	}
	requests, err := requestsOf(s.Namespace + ":alice")
	if err != nil {
		t.Fatal(err)
	}
	if len(requests) > 13 {
		t.Errorf("explain made %d requests: %q", len(requests), requests)
	}

	simulated := alice.MustRun("simulate", s.Name, "--gate", "freeze=open", "-o", "jsonpath={.steps[-1:].id} {.steps[-1:].version} {.steps[-1:].state}")
	if answer := alice.Shell(remedies[0][1] + " -y"); answer.Code != 0 {
		t.Fatalf("%s: %+v", remedies[0][1], answer)
	}
	if answer := alice.Run("wait", s.Name, "--for=version=1.1.0"); answer.Code != 0 {
		t.Fatalf("wait: %+v", answer)
	}
	if got := env.History(s.Live()); got[0] != simulated {
		t.Errorf("%q was simulated, and the history is %q", simulated, got)
	}
	for verb, parts := range map[string][]string{
		"status " + s.Name:   {"Rollout " + s.Namespace + "/shop", "1.1.0  ✔ Succeeded", "└─ OCIRepository/shop  ✔ 1.1.0@sha256:", "└─ Kustomization/shop  ✔"},
		"events " + s.Name:   {"Rollout/shop", "BakeTimeDeploying", "promoted 1.1.0", "Kustomization/shop"},
		"trace deploy/shop":  {"Deployment/" + s.Namespace + "/shop\n  ◀ Kustomization/", "◀ Rollout/", "#2\n  ◀ ImagePolicy/"},
		"get":                {"shop  1.1.0    Succeeded", "up to date"},
		"get -o name":        {"rollout.kuberik.com/shop\n"},
		"version":            {"flux-rollout dev\n", "controller: there is no Deployment", "CRDs v1alpha1: 10 kinds, with the fields that this program knows\n"},
		"simulate " + s.Name: {"then nothing more, however long one waits"},
	} {
		answer := alice.MustRun(strings.Fields(verb)...)
		for _, part := range parts {
			if !strings.Contains(answer, part) {
				t.Errorf("%s does not say %q:\n%s", verb, part, answer)
			}
		}
	}
	s.Publish(s.Release("1.2.0"))
	s.AwaitCandidate("1.2.0")
	if answer := alice.Run("explain", s.Name, "--version", "1.2.0", "--check"); answer.Code != 2 {
		t.Errorf("an approval of 1.1.0 let 1.2.0 through: %+v", answer)
	}
}

// gated returns an application that runs 1.0.0, while a gate holds 1.1.0.
func gated(t *testing.T) *env.Env {
	t.Helper()
	return gatedIn(newEnv(t))
}

// gatedIn makes an application run 1.0.0, while a gate holds 1.1.0.
func gatedIn(s *env.Env) *env.Env {
	s.T.Helper()
	s.CreateFlux()
	s.Create(s.Rollout())
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Create(closedGate(s))
	s.AwaitClosed()
	s.Publish(s.Release("1.1.0"))
	s.AwaitCandidate("1.1.0")
	return s
}

// requestsOf returns what a user has requested, except the reads of API versions.
func requestsOf(user string) ([]string, error) {
	all, err := plane.Audited()
	var own []string
	for _, request := range all {
		if request.User == user {
			own = append(own, request.String())
		}
	}
	return own, err
}

func TestCommandLinePinsRollsBackAndNamesWhoDidIt(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	s.Create(s.Rollout())
	for _, version := range []string{"1.0.0", "1.1.0"} {
		s.Publish(s.Release(version))
		s.AwaitState(version, v1alpha1.BakeSucceeded)
	}
	bob := s.CommandLine(s.Namespace+":bob", masters, audited)

	unasked := bob.Run("rollback", s.Name, "-m", "1.1.0 is slow")
	if unasked.Code != 1 || s.Live().Pinned() != "" {
		t.Errorf("without -y, where nobody can be asked, it went on: %+v", unasked)
	}
	asForetold(t, bob, "rollback", s.Name, "-m", "1.1.0 is slow", "--wait")
	done := s.Live()
	entry := done.Current()
	if entry.Version.Tag != "1.0.0" || entry.State() != v1alpha1.BakeSucceeded {
		t.Fatalf("the rollback did not wait: %s is %s", entry.Version.Tag, entry.State())
	}
	if *entry.Message != "1.1.0 is slow" || entry.TriggeredBy.Name != s.Namespace+":bob" {
		t.Errorf("the history says %q by %q", *entry.Message, entry.TriggeredBy.Name)
	}
	if got := managersOf(done, "f:wantedVersion"); len(got) != 1 || got[0] != "rollouts-cli" {
		t.Errorf("spec.wantedVersion belongs to %q", got)
	}
	for _, refused := range [][]string{{"rollback", s.Name, "-y", "-m", "still slow"}, {"rollback", s.Name, "-y", "-m", "again", "--to", "#7"}, {"retry", s.Name}} {
		if answer := bob.Run(refused...); answer.Code != 2 {
			t.Errorf("%q: %+v", refused, answer)
		}
	}
	asForetold(t, bob, "unpin", s.Name)
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	history := bob.MustRun("history", s.Name, "-o", "jsonpath={range .entries[*]}{.version.tag} {.bakeStatus}{\"\\n\"}{end}")
	if diff := cmp.Diff("1.0.0 Succeeded\n1.1.0 Succeeded\n1.0.0 Succeeded\n1.1.0 Succeeded\n", history); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	var writes []string
	requests, err := plane.Audited()
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if request.User == s.Namespace+":bob" && request.IsWrite() && request.Resource != "authentication.k8s.io/selfsubjectreviews" {
			writes = append(writes, request.String())
		}
	}
	patch := "patch kuberik.com/rollouts " + s.Namespace + "/shop"
	if diff := cmp.Diff([]string{patch, patch}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// asForetold makes a change, and checks that a dry run has foretold what it then says. The
// caller checks what happens.
func asForetold(t *testing.T, user *env.CommandLine, args ...string) {
	t.Helper()
	foretold := user.MustRun(append(args, "--dry-run")...)
	effect, _, _ := strings.Cut(user.MustRun(append(args, "-y")...), "\n")
	if diff := cmp.Diff(foretold, effect+"\n"); diff != "" || !strings.Contains(effect, " → ") {
		t.Errorf("%q was foretold as %q (-foretold +said):\n%s", args, foretold, diff)
	}
}

// managersOf returns the managers of a field of the spec.
func managersOf(r *v1alpha1.Rollout, field string) []string {
	var all []string
	for _, entry := range r.ManagedFields {
		if entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"`+field+`"`) {
			all = append(all, entry.Manager)
		}
	}
	return all
}

// Cases 22 and 23.
func TestCommandLineWaitsForWhatHappens(t *testing.T) {
	s, _ := breakRelease(t)
	frank := s.CommandLine(s.Namespace+":frank", masters, audited)
	for goal, want := range map[string]int{
		"": 3, "--for=version=1.0.0": 3, "--for=promoted=1.0.0": 0, "--for=version=1.2.0": 3, "--for=idle": 0, "--for=version=9.9.9 --timeout=1s": 4,
	} {
		args := append([]string{"wait", s.Name}, strings.Fields(goal)...)
		if answer := frank.Run(args...); answer.Code != want {
			t.Errorf("%s: exit code %d, want %d: %+v", goal, answer.Code, want, answer)
		}
	}
	if answer := frank.Run("wait", "nobody", "--for=idle"); answer.Code != 1 || !strings.Contains(answer.Stderr, "there is no Rollout nobody") {
		t.Errorf("a Rollout that does not exist: %+v", answer)
	}

	grace := s.CommandLine(s.Namespace+":grace", masters, audited)
	ended := make(chan env.Answer, 1)
	go func() { ended <- grace.Run("wait", s.Name, "--for=version=9.9.9") }()
	env.Eventually(t, "the wait to watch", func() (bool, string) {
		requests, err := requestsOf(s.Namespace + ":grace")
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(requests, func(r string) bool { return strings.HasPrefix(r, "watch ") }), strings.Join(requests, "\n")
	})
	s.Delete(s.Rollout())
	// The deletion may come before the wait has seen the Rollout.
	answer := <-ended
	deleted := strings.Contains(answer.Stderr, "the Rollout was deleted") || strings.Contains(answer.Stderr, "there is no Rollout shop")
	if answer.Code != 1 || !deleted {
		t.Errorf("a Rollout that was deleted: %+v", answer)
	}
	requests, err := requestsOf(s.Namespace + ":grace")
	if err != nil {
		t.Fatal(err)
	}
	list, watch := "list kuberik.com/rollouts "+s.Namespace+"/", "watch kuberik.com/rollouts "+s.Namespace+"/"
	count := map[string]int{}
	for _, request := range requests {
		count[strings.TrimSuffix(request, s.Name)]++
	}
	// A watch is recorded when it begins, and again when it has ended.
	if count[list] > 1 || count[watch] < 1 || count[watch] > 2 || count[list]+count[watch] != len(requests) {
		t.Errorf("a wait has made the requests %q", requests)
	}
}

func TestCommandLineFindsWhatIsWrongInACluster(t *testing.T) {
	s := newEnv(t)
	lost := s.Rollout()
	lost.Spec.ReleasesImagePolicy.Name = "nowhere"
	s.Create(s.NamespaceObject(), lost)
	dave := s.CommandLine(s.Namespace+":dave", masters)
	missing := "ImagePolicy " + s.Namespace + "/nowhere does not exist"
	if answer := dave.Run("doctor"); answer.Code != 2 || !strings.Contains(answer.Stdout, "R201") || !strings.Contains(answer.Stdout, missing) {
		t.Errorf("doctor does not say that %s: %+v", missing, answer)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "8108ddc4.kuberik.com"}}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
	s.Create(lease)
	late := "Lease " + s.Namespace + "/8108ddc4.kuberik.com: was last renewed 60m ago: this controller does not run"
	if answer := dave.Run("doctor"); answer.Code != 2 || !strings.Contains(answer.Stdout, late) {
		t.Errorf("doctor does not say %q: %+v", late, answer)
	}
	s.Delete(lease)

	nobody := s.CommandLine(s.Namespace + ":nobody")
	if answer := nobody.Run("doctor"); !strings.Contains(answer.Stdout, "D102  you may not list Rollouts") {
		t.Errorf("doctor does not say what may not be read: %+v", answer)
	}
	want := env.Answer{Code: 1, Stderr: `✗ list Rollouts: rollouts.kuberik.com is forbidden: User "` + s.Namespace + `:nobody" cannot list resource "rollouts" in API group "kuberik.com" in the namespace "` + s.Namespace + `"` + "\n"}
	if diff := cmp.Diff(want, nobody.Run("explain", s.Name)); diff != "" {
		t.Errorf("explain without rights (-want +got):\n%s", diff)
	}
}

func TestCommandLineSaysWhatItMayNotRead(t *testing.T) {
	s := gated(t)
	approver := s.Namespace + ":approver"
	bind(t, s, "rollout_approver_role.yaml", approver)

	erin := s.CommandLine(approver)
	explanation := erin.MustRun("explain", s.Name)
	for _, part := range []string{
		"⚠ ReadPartly: you may not read ClusterReleaseQuarantines, ClusterRolloutGates, ClusterRolloutSchedules, ImagePolicies and OCIRepositories, so this is what the controller has decided",
		"1.1.0   held by 1", "✗ SomeGatesBlocking  not passing: RolloutGate freeze",
	} {
		if !strings.Contains(explanation, part) {
			t.Errorf("the explanation does not say %q:\n%s", part, explanation)
		}
	}
	if answer := erin.Run("pin", s.Name, "1.1.0", "-y"); answer.Code != 1 || !strings.Contains(answer.Stderr, `cannot patch resource "rollouts"`) {
		t.Errorf("an approver pins: %+v", answer)
	}
	erin.MustRun("approve", s.Name, "--gate", "freeze", "--version", "1.1.0", "-y")
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}

// bind gives a user one of the shipped roles in the application's namespace.
func bind(t *testing.T, s *env.Env, file, user string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts.Root(), "config", "rbac", file))
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(content, role); err != nil {
		t.Fatal(err)
	}
	role.Name = s.Namespace
	s.Create(role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "user"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

func TestCommandLineRefusesWhatGitWouldUndo(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	rollout := s.Rollout()
	s.Create(rollout)
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	applyFromGit(t, rollout, "1.0.0")

	carol := s.CommandLine(s.Namespace+":carol", masters)
	answer := carol.Run("unpin", s.Name, "-y")
	want := "✗ spec.wantedVersion of Rollout shop comes from a manifest, by field manager kustomize-controller, which would set it again" +
		". Change it in the source of Kustomization flux-system/apps; see: flux trace rollout shop -n " + s.Namespace + "\n"
	if diff := cmp.Diff(env.Answer{Stderr: want, Code: 2}, answer); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Live().Pinned() != "1.0.0" {
		t.Error("the pin was removed")
	}
}

// applyFromGit applies a pin as kustomize-controller does.
func applyFromGit(t *testing.T, rollout *v1alpha1.Rollout, pinned string) {
	t.Helper()
	applied := &v1alpha1.Rollout{}
	applied.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Rollout"))
	applied.Name, applied.Namespace = rollout.Name, rollout.Namespace
	applied.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	applied.Spec = *rollout.Spec.DeepCopy()
	applied.Spec.WantedVersion = &pinned
	applied.ObjectMeta = metav1.ObjectMeta{Name: applied.Name, Namespace: applied.Namespace, Labels: applied.Labels}
	if err := plane.Client().Patch(t.Context(), applied, client.Apply, client.FieldOwner("kustomize-controller"), client.ForceOwnership); err != nil { //nolint:staticcheck // typed objects have no apply configuration here
		t.Fatal(err)
	}
}

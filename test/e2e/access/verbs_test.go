// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/manifests"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

var update = flag.Bool("update", false, "write testdata/verbs.md")

// row is a call of a verb by each user.
type row struct {
	call string
	// says is what the answer says to everybody who gets one.
	says string
	// lets is true if the change lets a release go: it is not made without a question.
	lets bool
}

// What holds the candidates, in the words of the controller.
const (
	byGate       = "not passing: RolloutGate qa"
	bySchedule   = "ClusterRolloutSchedule nights.* is closed"
	byQuarantine = "Quarantined .*ClusterReleaseQuarantine"
)

var rows = []row{
	{call: "get", says: byGate},
	{call: "get gated", says: byGate},
	{call: "get -A"},
	{call: "get --awaiting-approval"},
	{call: "watch"},
	{call: "history gated", says: "1.0.0"},
	{call: "wait gated --for=idle"},
	{call: "explain gated", says: byGate},
	{call: "explain gated --version 1.1.0", says: byGate},
	{call: "explain nightly", says: bySchedule},
	{call: "explain recalled", says: byQuarantine},
	{call: "explain recalled --check", says: byQuarantine},
	{call: "status gated", says: "1.1.0, held by 1"},
	{call: "status recalled", says: "(?i)quarantine"},
	{call: "events gated"},
	{call: "trace OCIRepository/gated"},
	{call: "simulate gated --gate qa=open"},
	{call: "simulate recalled"},
	{call: "simulate"},
	{call: "diff -f open.yaml"},
	{call: "pipeline"},
	{call: "freeze"},
	{call: "quarantine"},
	{call: "doctor"},
	{call: "lint open.yaml"},
	{call: "version"},
	{call: "bug-report gated -O report.tar.gz"},
	{call: "completion bash"},
	{call: "options"},
	{call: "keys list"},
	{call: "promote gated --past-gates", lets: true},
	{call: "promote gated --force -m x", lets: true},
	{call: "promote nightly --past-gates", lets: true},
	{call: "promote recalled"},
	{call: "pin gated 1.1.0", lets: true},
	{call: "unpin pinned", lets: true},
	{call: "rollback gated --to 1.0.0 -m x"},
	{call: "retry gated"},
	{call: "unblock gated"},
	{call: "adopt gated"},
	{call: "promote gated --withdraw"},
	{call: "approve gated --gate qa --version 1.1.0", lets: true},
	{call: "reject gated"},
	{call: "override gated -m because-of-this"},
	{call: "approvals"},
	{call: "create gate night --rollout gated"},
	{call: "create schedule weekend --all --deny Sat,Sun"},
	{call: "create rollout other --image-policy gated --oci-repository free", lets: true},
	{call: "suspend gated"},
	{call: "resume gated"},
	{call: "freeze gated -m x"},
	{call: "freeze --all -m x"},
	{call: "freeze --all -A -m x"},
	{call: "unfreeze frozen", lets: true},
	{call: "quarantine gated --release 1.1.0 -m x"},
	{call: "lift kept", lets: true},
	{call: "reconcile gated --timeout 2s"},
}

// grantee is a user with a single role, bound in the namespace of the test. If wide, the
// roles of the component tenant-view are bound in the cluster as well.
type grantee struct {
	name, role string
	wide       bool
}

var grantees = []grantee{
	{"view", "view", false},
	{"edit", "edit", false},
	{"view, tenant-view", "view", true},
	{"edit, tenant-view", "edit", true},
	{"rollout-viewer", "rollout-controller-rollout-viewer-role", false},
	{"rollout-editor", "rollout-controller-rollout-editor-role", false},
	{"rollout-approver", "rollout-controller-rollout-approver-role", false},
}

// TestEveryVerbForEveryRole runs each verb as users with a single role, on Rollouts that a
// gate, a schedule and a quarantine of the cluster hold. The table is in testdata/verbs.md.
func TestEveryVerbForEveryRole(t *testing.T) {
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true}, env.AsShipped...)
	s := heldInFourWays(t, plane)
	table := "| |"
	for _, u := range grantees {
		table += " " + u.name + " |"
	}
	table += "\n|" + strings.Repeat(" --- |", len(grantees)+1) + "\n"
	var everybody []user
	for _, u := range grantees {
		everybody = append(everybody, newUser(s, u.name, u.role, u.wide))
	}
	others := shippedUsers(s)
	awaitRights(s)
	for _, r := range rows {
		table += "| `" + r.call + "` |"
		for _, u := range everybody {
			table += " " + u.check(t, r) + " |"
		}
		table += "\n"
		for _, u := range others {
			u.check(t, r)
		}
	}
	everyVerbHasARow(t)
	t.Log("\n" + table)
	golden(t, table)
}

func golden(t *testing.T, table string) {
	t.Helper()
	const file = "testdata/verbs.md"
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(table), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), table); diff != "" {
		t.Errorf("(-want +got), -update writes it:\n%s", diff)
	}
}

// heldInFourWays makes four Rollouts run 1.0.0, with 1.1.0 as a candidate: a gate holds
// gated, a schedule of the cluster nightly, a quarantine of the cluster recalled, and a pin
// pinned. Two others are held by a freeze and by a quarantine alone.
func heldInFourWays(t *testing.T, plane *env.Plane) *env.Env {
	t.Helper()
	if err := scenario.AggregateForPeople(t.Context(), plane.ControlPlane); err != nil {
		t.Fatal(err)
	}
	s := env.New(t, plane)
	s.Create(s.Flux(plane.Registry.Host())[0])
	var apps []*env.Env
	for _, name := range []string{"gated", "nightly", "recalled", "pinned", "frozen", "kept"} {
		app := s.Another(name)
		app.Create(app.Flux(plane.Registry.Host())[1:]...)
		rollout := app.Rollout()
		rollout.Labels = map[string]string{"app": name}
		if name == "pinned" {
			rollout.Spec.WantedVersion = new("1.0.0")
		}
		app.Create(rollout)
		app.Publish(app.ConfigRelease("1.0.0"))
		apps = append(apps, app)
	}
	for _, app := range apps {
		app.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	}
	s.Create(holds(s)...)
	for _, app := range apps {
		app.Publish(app.ConfigRelease("1.1.0"))
	}
	for _, app := range apps {
		app.AwaitCandidate("1.1.0")
	}
	return s
}

// holds returns what holds the candidates.
func holds(s *env.Env) []client.Object {
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: "qa"}
	gate := &v1alpha1.RolloutGate{ObjectMeta: meta}
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: "gated"}, new(false)
	freeze := gate.DeepCopy()
	freeze.Name, freeze.Spec.RolloutRef.Name = "freeze-frozen", "frozen"
	freeze.Labels = map[string]string{v1alpha1.ManagedByLabel: program.FieldManager}
	schedule := &v1alpha1.ClusterRolloutSchedule{ObjectMeta: metav1.ObjectMeta{Name: "nights"}}
	schedule.Spec.RolloutSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nightly"}}
	schedule.Spec.Action, schedule.Spec.Rules = v1alpha1.ScheduleDeny, []v1alpha1.ScheduleRule{{Name: "always"}}
	recall := &v1alpha1.ClusterReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Name: "cve"}}
	recall.Spec.Image, recall.Spec.Tags, recall.Spec.Reason = imageOf(s, "recalled"), []string{"1.1.0"}, "CVE-2026-0001"
	kept := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "kept"}}
	kept.Spec.Image, kept.Spec.Tags, kept.Spec.Reason = imageOf(s, "kept"), []string{"1.1.0"}, "loses orders"
	free := s.Another("gated").OCIRepository(s.Plane.Registry.Host())
	free.Name, free.Annotations = "free", nil
	return []client.Object{gate, freeze, schedule, recall, kept, free}
}

func imageOf(s *env.Env, name string) string {
	return s.Plane.Registry.Host() + "/" + s.Another(name).Repository
}

// user runs verbs in a namespace.
type user struct {
	name, kubeconfig, namespace, folder string
	// wide is true if the user may read the kinds of the whole cluster.
	wide bool
}

func newUser(s *env.Env, name, role string, wide bool) user {
	s.T.Helper()
	id := strings.NewReplacer(", ", "-").Replace(name)
	kubeconfig, err := s.Plane.AddUser(id)
	if err == nil {
		err = scenario.Grant(s.T.Context(), s.Plane.ControlPlane, id, role, s.Namespace)
	}
	if err != nil {
		s.T.Fatal(err)
	}
	if wide {
		for _, kind := range []string{"clusterrolloutgate", "clusterrolloutschedule", "clusterreleasequarantine"} {
			s.Create(&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: id + "-" + kind},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "rollout-controller-" + kind + "-viewer-role"},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: id}},
			})
		}
	}
	folder := s.T.TempDir()
	open := fmt.Sprintf("apiVersion: kuberik.com/v1alpha1\nkind: RolloutGate\nmetadata: {name: qa, namespace: %s}\nspec: {rolloutRef: {name: gated}, passing: true}\n", s.Namespace)
	if err := os.WriteFile(filepath.Join(folder, "open.yaml"), []byte(open), 0o600); err != nil {
		s.T.Fatal(err)
	}
	return user{name, kubeconfig, s.Namespace, folder, wide}
}

// shippedUsers returns a user for each other role for people that the manifests have.
func shippedUsers(s *env.Env) []user {
	s.T.Helper()
	objects, err := scenario.Manifests(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	roles, err := manifests.As[rbacv1.ClusterRole](objects, "ClusterRole")
	if err != nil {
		s.T.Fatal(err)
	}
	forPeople := regexp.MustCompile(`-(viewer|editor|admin|approver|reporter)-role$`)
	var all []user
	for i := range roles {
		known := slices.ContainsFunc(grantees, func(g grantee) bool { return g.role == roles[i].Name })
		if forPeople.MatchString(roles[i].Name) && !known {
			all = append(all, newUser(s, roles[i].Name, roles[i].Name, false))
		}
	}
	if len(all) == 0 {
		s.T.Fatal("the manifests have no other roles for people")
	}
	return all
}

// awaitRights waits until the API server knows the newest binding, and so all before.
func awaitRights(s *env.Env) {
	s.T.Helper()
	canary := newUser(s, "canary", "view", false)
	env.Eventually(s.T, "the rights of all users", func() (bool, string) {
		got := canary.run(s.T, "get", false)
		return got.code == 0, got.text
	})
}

// answer is what a call has printed, and its exit code.
type answer struct {
	text string
	code int
}

// run runs a verb as main does. It answers questions with no, unless it agrees before. What
// it changes, the API server only tries.
func (u user) run(t *testing.T, call string, agrees bool) answer {
	t.Helper()
	var text safeBuffer
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader("n\n"), Out: &text, ErrOut: &text})
	p.Kubeconfig.KubeConfig, p.Kubeconfig.Namespace, p.Asks, p.Zone = &u.kubeconfig, &u.namespace, true, time.UTC
	connect := p.Connect
	p.Connect = func(ctx context.Context) (program.Cluster, error) {
		c, err := connect(ctx)
		if err == nil {
			c.Client = onlyTrying(c.Client)
		}
		return c, err
	}
	args := strings.Fields(strings.NewReplacer("open.yaml", filepath.Join(u.folder, "open.yaml"), "report.tar.gz", filepath.Join(u.folder, "report.tar.gz")).Replace(call))
	if agrees {
		args = append(args, "-y")
	}
	ctx, stop := t.Context(), context.CancelFunc(func() {})
	if args[0] == "watch" {
		ctx, stop = context.WithTimeout(ctx, time.Second)
	}
	defer stop()
	root := verbs.NewRoot(p)
	root.SetArgs(args)
	err := p.Explained(root.ExecuteContext(ctx))
	var exit program.Exit
	switch {
	case err == nil:
		return answer{text.String(), 0}
	case errors.As(err, &exit):
		p.Fail(exit.Err)
		return answer{text.String(), exit.Code}
	}
	p.Fail(err)
	return answer{text.String(), program.Failed}
}

// safeBuffer may be written to by several goroutines.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// onlyTrying returns a client whose changes the API server checks and does not store.
func onlyTrying(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, asks := o.(*authenticationv1.SelfSubjectReview); asks {
				return c.Create(ctx, o, options...)
			}
			return c.Create(ctx, o, append(options, client.DryRunAll)...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return c.Patch(ctx, o, patch, append(options, client.DryRunAll)...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return c.Update(ctx, o, append(options, client.DryRunAll)...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return c.Apply(ctx, o, append(options, client.DryRunAll)...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return c.Delete(ctx, o, append(options, client.DryRunAll)...)
		},
	})
}

var (
	// question may name the cluster.
	question = regexp.MustCompile(`go on( in \S+ \S+)?\? \[y/N\]`)
	// wrongHold is what a user may not read, told as a hold of a release.
	wrongHold = regexp.MustCompile(`QuarantineListFailed|GateListFailed|HealthCheckListFailed|says something else`)
	suggested = regexp.MustCompile(`► kubectl rollouts (\S+)`)
	forbidden = regexp.MustCompile(`cannot (\w+) resource "(\w+)"`)
	unread    = regexp.MustCompile(`you may not (?:read|list) \(?((?:[A-Z]\w+(?:, | and )?)+)`)
)

// check runs a verb, checks what must be so for every user, and returns a cell of the table.
func (u user) check(t *testing.T, r row) string {
	t.Helper()
	got := u.run(t, r.call, false)
	fails := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s: %s\n%s", u.name, r.call, fmt.Sprintf(format, args...), got.text)
	}
	noRollouts := strings.Contains(got.text, `resource "rollouts"`) && got.code != 0
	asked := question.MatchString(got.text)
	switch {
	case wrongHold.MatchString(got.text):
		fails("what the user may not read is told as a hold")
	case !u.wide && suggested.MatchString(got.text):
		fails("it suggests a command that it could not try")
	case !noRollouts && r.says != "" && !regexp.MustCompile(r.says).MatchString(got.text):
		fails("it does not say %q", r.says)
	case r.lets && !asked && got.code == 0:
		fails("a release may go out without a question")
	case got.code == program.Failed && !asked && !mayNot(got.text) && !slices.Contains([]string{"lint", "keys"}, strings.Fields(r.call)[0]):
		fails("it fails without a word about rights")
	}
	if asked {
		got = u.run(t, r.call, true)
	}
	return cell(got, asked)
}

func mayNot(text string) bool {
	return forbidden.MatchString(text) || strings.Contains(text, "may not")
}

// cell says how a call ended: whether it asked, which right is missing, and what the answer
// leaves out.
func cell(got answer, asked bool) string {
	var words []string
	if asked {
		words = append(words, "asks")
	}
	right := forbidden.FindStringSubmatch(got.text)
	switch {
	case got.code == program.Failed && right != nil:
		words = append(words, fmt.Sprintf("no right to %s %s", right[1], right[2]))
	case got.code == program.Failed:
		words = append(words, "refused")
	case !asked:
		words = append(words, map[int]string{0: "works", program.No: "says no", program.TimeRanOut: "works"}[got.code])
	}
	if kinds := unread.FindStringSubmatch(got.text); kinds != nil {
		words = append(words, "without "+few(kinds[1]))
	}
	return strings.Join(words, "; ")
}

// few returns the names of at most two kinds, and the number of more.
func few(kinds string) string {
	kinds = strings.TrimSuffix(kinds, ", ")
	if n := len(regexp.MustCompile(`, | and `).Split(kinds, -1)); n > 2 {
		return fmt.Sprintf("%d kinds", n)
	}
	return kinds
}

// everyVerbHasARow fails for a verb that nobody has tried.
func everyVerbHasARow(t *testing.T) {
	t.Helper()
	for _, verb := range verbs.NewRoot(program.New("kubectl rollouts", genericiooptions.IOStreams{})).Commands() {
		tried := slices.ContainsFunc(rows, func(r row) bool { return strings.Fields(r.call)[0] == verb.Name() })
		if !tried && !verb.Hidden && verb.Name() != "help" && verb.Name() != "ui" { // package page tries ui
			t.Errorf("no row is about the verb %s", verb.Name())
		}
	}
}

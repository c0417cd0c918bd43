// SPDX-License-Identifier: Apache-2.0

// Package abuse lets a tenant write objects into its own namespace that are meant to harm
// all others: objects that cannot be decoded, that are large, or that name thousands of
// others. The tenant also names registries that answer with more data than fits into
// memory, and has its HealthChecks ask servers that never end an answer. The controller
// runs as it is shipped, with the shipped rights and memory. At the same time a quiet
// tenant releases as usual.
package abuse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/limit"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

var (
	plane  *env.Plane
	alerts = &inbox{}
	// asked are what HealthChecks may ask.
	asked *destinations
	// allowed is the memory that the controller has.
	allowed *limit.Limit
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("CONTROLLER_RACE") // the race detector needs many times the memory
	server := httptest.NewServer(alerts)
	asked = openDestinations()
	var err error
	allowed, err = limit.New()
	login, errLogin := ownLogin()
	keys, errKeys := scenario.NewKeyPair()
	if err = errors.Join(err, errLogin, errKeys); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	setting := env.Setting{
		Options: controlplane.Options{
			Flux: true, ImageScanner: true, CRDPaths: []string{scenario.CoordinationCRDs()},
			Env: []string{"GOMEMLIMIT=4GiB"}, // the API server has all of these objects in its caches
		},
		Components: scenario.Coordinators,
		Args: slices.Concat([]string{
			"--leader-elect", "--metrics-bind-address=0", "--events-addr=" + server.URL, "--namespace-memory=8Mi",
		}, scenario.CoordinatorArgs, asked.flags(), scenario.ReportFlags("staging")),
		Env:     []string{limit.Env(), "DOCKER_CONFIG=" + login},
		Objects: []client.Object{keys.Secret(scenario.Namespace)},
		Instead: allowed.Enter,
	}
	code := setting.Main(m, &plane)
	server.Close()
	asked.close()
	allowed.Close()
	_ = os.RemoveAll(login)
	os.Exit(code)
}

// quiet is a tenant with an application that releases. One tenant serves all attacks,
// because it takes longer to create one than most attacks take.
type quiet struct {
	*env.Application
	released *int
	alone    time.Duration // the time of its median promotion without an attack
}

// shared is the quiet tenant until a test fails. After that, its promotions may be
// blocked.
var shared *quiet

// quietTenant returns the quiet tenant for a test, after the controller has promoted a
// release for it.
func quietTenant(t *testing.T) *quiet {
	t.Helper()
	isNew := shared == nil
	if isNew {
		shared = &quiet{
			Application: env.NewApplication(t, plane, scenario.NewApp("", "shop").Baked(time.Second, time.Hour)),
			released:    new(int),
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			shared = nil
		}
	})
	e := *shared.Env
	e.T = t
	q := &quiet{Application: &env.Application{Env: &e}, released: shared.released, alone: shared.alone}
	q.promote() // the first one also waits for a controller that has just started
	if isNew || measures() {
		q.alone = q.pace(max(promotions(), 2))
		shared.alone = q.alone
	}
	return q
}

// promote releases a version, and returns the time until its bake had succeeded. It then
// waits for the alert about it and for its metadata, which come soon after.
func (q *quiet) promote() time.Duration {
	q.T.Helper()
	version := fmt.Sprintf("1.%d.0", *q.released)
	*q.released++
	start := time.Now()
	q.Release(version)
	q.AwaitState(version, v1alpha1.BakeSucceeded)
	took := time.Since(start)
	q.Await("the metadata of "+version, func(r *v1alpha1.Rollout) bool {
		revision := r.Current().Version.Revision
		return revision != nil && *revision == version
	})
	env.Eventually(q.T, "an alert that "+version+" has passed its bake", func() (bool, string) {
		return alerts.has(q.Namespace, v1alpha1.BakeTimePassedReason, version), alerts.String()
	})
	return took
}

// pace returns the median time of some promotions.
func (q *quiet) pace(promotions int) time.Duration {
	q.T.Helper()
	var all []time.Duration
	for range promotions {
		all = append(all, q.promote())
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// abuser is a tenant with the rights of the role edit in its namespace.
type abuser struct {
	*env.Env
	own client.Client
}

func newAbuser(t *testing.T) abuser {
	t.Helper()
	a := abuser{Env: env.New(t, plane)}
	a.Create(a.NamespaceObject())
	user := "tenant-of-" + a.Namespace
	config, err := plane.RESTConfigFor(user)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // no client-side limit
	if a.own, err = client.New(config, client.Options{Scheme: plane.Client().Scheme()}); err != nil {
		t.Fatal(err)
	}
	roles := []string{"rollout-editor-role", "rolloutgate-editor-role", "healthcheck-editor-role", "rolloutschedule-editor-role", "deploymentcoordination-editor-role", "environment-editor-role"}
	for i, role := range roles {
		roles[i] = "rollout-controller-" + role
	}
	for _, role := range append(roles, edit(t)...) {
		if err := scenario.Grant(t.Context(), plane.ControlPlane, user, role, a.Namespace); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // after the objects are gone: the next test begins with the memory of a new process
		if err := plane.Controller.Restart(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return a
}

// edit creates the rights of Kubernetes' role edit that these tests need, and Flux's part
// of it.
var edit = func() func(t *testing.T) []string {
	var once sync.Once
	workloads := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "workloads-edit"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "get", "list", "patch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets"}, Verbs: []string{"create", "get", "list", "patch"}},
			{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}, Verbs: []string{"create", "get", "list", "patch"}},
		},
	}
	return func(t *testing.T) []string {
		t.Helper()
		once.Do(func() {
			for _, role := range []*rbacv1.ClusterRole{scenario.FluxEdit(), workloads} {
				if err := plane.Client().Create(t.Context(), role); err != nil {
					t.Fatal(err)
				}
			}
		})
		return []string{scenario.FluxEdit().Name, workloads.Name}
	}
}()

// makes creates objects with the tenant's rights, and deletes them at the end, to avoid
// effects on the next test. It deletes one at a time: the response to a request that
// deletes many has all of them in it, and they may be too large for that.
func (a abuser) makes(objects ...client.Object) {
	a.T.Helper()
	for _, o := range objects {
		a.asks("create", o, func() error {
			err := a.own.Create(a.T.Context(), o)
			if apierrors.IsAlreadyExists(err) { // the response to the first request was lost
				return a.own.Get(a.T.Context(), client.ObjectKeyFromObject(o), o)
			}
			return err
		})
		a.T.Cleanup(func() {
			a.asks("delete", o, func() error {
				background := client.PropagationPolicy(metav1.DeletePropagationBackground)
				return client.IgnoreNotFound(plane.Client().Delete(context.WithoutCancel(a.T.Context()), o, background))
			})
		})
	}
}

// changes patches an object with the tenant's rights.
func (a abuser) changes(o client.Object, patch string) {
	a.T.Helper()
	a.asks("patch", o, func() error {
		return a.own.Patch(a.T.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// asks repeats a request that fails because the API server or etcd is busy with such
// large objects.
func (a abuser) asks(what string, o client.Object, request func() error) {
	a.T.Helper()
	var last error
	_ = wait.PollUntilContextTimeout(context.WithoutCancel(a.T.Context()), time.Second, fixture.Patience, true, func(context.Context) (bool, error) {
		last = request()
		return last == nil || !isBusy(last), nil
	})
	if last != nil {
		a.T.Fatalf("%s %T %s: %v", what, o, o.GetName(), last)
	}
}

// isBusy reports whether the API server failed to answer, or to do what it was asked for.
// If it has begun to answer by its timeout, it ends the stream. What is wrong with a
// request has a status below 500.
func isBusy(err error) bool {
	answer, isAnswer := errors.AsType[*apierrors.StatusError](err)
	return !isAnswer || answer.Status().Code >= http.StatusInternalServerError
}

// says writes the status of an object, as Flux's role for editors allows it.
func (a abuser) says(o client.Object, change func()) {
	a.T.Helper()
	before := o.DeepCopyObject().(client.Object)
	change()
	a.asks("write the status of", o, func() error { return a.own.Status().Patch(a.T.Context(), o, client.MergeFrom(before)) })
}

// ratio limits the quiet tenant's median promotion, as a multiple of its time without an
// attack. generousRatio applies if other tests run at the same time.
const (
	ratio         = 1.5
	generousRatio = 5
)

// measures reports whether the figures go to the report. Otherwise they must only be
// plausible.
func measures() bool { return os.Getenv(report.FolderVariable) != "" }

func mostRatio() float64 {
	if measures() {
		return ratio
	}
	return generousRatio
}

// promotions returns a number of promotions that is enough for a median, or for a
// generous limit.
func promotions() int {
	if measures() {
		return 5
	}
	return 1
}

// watchLimit enforces the limit where the kernel does not.
var watchLimit = sync.OnceFunc(func() { go allowed.Watch(context.Background(), plane.Controller) })

// trial is a running attack.
type trial struct {
	*quiet
	reported *report.Report
	memory   *memory
}

// begin starts to watch the controller, which has restarted since the last attack, and
// lets it promote for the quiet tenant without an attack.
func begin(t *testing.T, attack string) *trial {
	t.Helper()
	watchLimit()
	reported := report.Begin(t, "a tenant "+attack,
		"other tenants' promotions, bakes, metadata and alerts go on at their pace; the controller keeps within its memory, and does not restart")
	return &trial{quiet: quietTenant(t), reported: reported, memory: watchMemory(t)}
}

// passes releases during the attack. On a machine with other load a round may be slow, so
// one of three rounds is enough.
func (x *trial) passes(times int, seen string) {
	x.T.Helper()
	var attacked time.Duration
	for range 3 {
		if attacked = x.pace(promotions()); attacked.Seconds() <= mostRatio()*x.alone.Seconds() {
			break
		}
	}
	slower := attacked.Seconds() / x.alone.Seconds()
	if slower > mostRatio() {
		x.T.Errorf("the quiet tenant's median promotion takes %.2f times what it takes alone (%v, alone %v), three times in a row", slower, attacked, x.alone)
	}
	if !plane.Controller.Running() || plane.Controller.PID() != x.memory.pid {
		x.T.Errorf("the controller has ended; it was killed %d times for its memory", allowed.Killed())
	}
	x.reported.Saw(times, "%s; the quiet tenant's median promotion took %.2f times what it takes alone, all of its alerts came; at most %d MiB of %d, enforced %s; 0 restarts",
		seen, slower, x.memory.most()>>20, limit.Memory>>20, allowed)
}

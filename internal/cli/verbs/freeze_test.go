// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// answer is what a call has printed, and its exit code.
type answer struct {
	Out, Err string
	Code     int
}

// inMemory runs commands on objects in memory, as alice, at noon, in a zone an hour ahead.
type inMemory struct {
	client client.WithWatch
	// forbidden is a kind of list that alice may not read.
	forbidden client.ObjectList
	// denied is a resource on which alice has no right.
	denied string
}

func newInMemory(t *testing.T, objects ...client.Object) *inMemory {
	t.Helper()
	scheme, mapper, err := program.NewScheme(imagev1.GroupVersion.Version)
	if err != nil {
		t.Fatal(err)
	}
	m := &inMemory{}
	m.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if review, ok := object.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo.Username = "alice"
				return ctx.Err()
			}
			if review, ok := object.(*authorizationv1.SelfSubjectAccessReview); ok {
				review.Status.Allowed = review.Spec.ResourceAttributes.Resource != m.denied
				return nil
			}
			return c.Create(ctx, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if kind := listKind(list); m.forbidden != nil && kind == listKind(m.forbidden) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no right to list"))
			}
			return c.List(ctx, list, options...)
		},
	})
	return m
}

func listKind(list client.ObjectList) string {
	switch list.(type) {
	case *v1alpha1.ClusterRolloutScheduleList:
		return "clusterrolloutschedules"
	case *v1alpha1.RolloutScheduleList:
		return "rolloutschedules"
	}
	return ""
}

func (m *inMemory) run(t *testing.T, args ...string) answer {
	t.Helper()
	return m.runUntil(t.Context(), t, args...)
}

// runUntil runs the program until it ends, or the context does.
func (m *inMemory) runUntil(ctx context.Context, t *testing.T, args ...string) answer {
	t.Helper()
	var out, err bytes.Buffer
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &err})
	m.prepare(t, p)
	code := run(ctx, p, args)
	pasted{}.checkSuggestions(out.String()+err.String(), t.Errorf)
	return answer{out.String(), err.String(), code}
}

// prepare makes a program use the objects.
func (m *inMemory) prepare(t *testing.T, p *program.Program) {
	t.Helper()
	p.Out.Unicode, p.Err.Unicode = true, true
	p.Now, p.Zone = func() time.Time { return noon }, time.FixedZone("CET", 3600)
	config := t.TempDir() + "/kubeconfig"
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Kubeconfig.KubeConfig, p.Kubeconfig.Namespace = &config, ptr.To(fixture.Namespace)
	p.Connect = func(context.Context) (program.Cluster, error) {
		return program.Cluster{Client: m.client, Scheme: m.client.Scheme()}, nil
	}
}

// names returns the names of all gates and schedules.
func (m *inMemory) names(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, list := range append(inspect.FreezeLists(), &v1alpha1.ClusterRolloutScheduleList{}) {
		if err := m.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		switch list := list.(type) {
		case *v1alpha1.RolloutGateList:
			for i := range list.Items {
				all = append(all, "RolloutGate "+list.Items[i].Name)
			}
		case *v1alpha1.RolloutScheduleList:
			for i := range list.Items {
				all = append(all, "RolloutSchedule "+list.Items[i].Name)
			}
		case *v1alpha1.ClusterRolloutScheduleList:
			for i := range list.Items {
				all = append(all, "ClusterRolloutSchedule "+list.Items[i].Name)
			}
		}
	}
	return all
}

// withCandidate returns a Rollout that runs 1.0.0, and an ImagePolicy that names 1.1.0.
func withCandidate(name string, entry *fixture.EntryBuilder) []client.Object {
	rollout := fixture.MakeRollout(name).History(entry).Obj()
	rollout.Labels = map[string]string{"tier": name}
	return []client.Object{rollout, fixture.MakePolicy(name).Latest("1.1.0").Obj(), fixture.MakeScan(name).Obj()}
}

func old() *fixture.EntryBuilder { return fixture.MakeEntry("1.0.0").ID(1).Succeeded() }

func TestFreeze(t *testing.T) {
	const usual = "pins, force-deploy and bypass-gates"
	for name, tt := range map[string]struct {
		args    []string
		want    answer
		objects []string
	}{
		"one Rollout": {
			[]string{"web"},
			answer{Out: "✔ frozen until it is unfrozen: Rollout shop-prod/web (RolloutGate freeze-web)\n  not stopped: web 1.0.0 is baking; " + usual + "\n"},
			[]string{"RolloutGate freeze-web"},
		},
		"one that has no release yet": {
			[]string{"new"},
			answer{Out: "✔ frozen until it is unfrozen: Rollout shop-prod/new (RolloutGate freeze-new)\n  not stopped: " + usual + "; its first release\n"},
			[]string{"RolloutGate freeze-new"},
		},
		"all of the namespace": {
			[]string{"--all", "--until", "2026-11-24 06:00"},
			answer{Out: "✔ frozen until Tue 24 Nov 06:00 CET: 4 Rollouts of namespace shop-prod (RolloutSchedule freeze-20261121-1300)\n" +
				"  not stopped: cart 1.0.0 is being deployed, web 1.0.0 is baking; " + usual + "; the first release of a new Rollout\n"},
			[]string{"RolloutSchedule freeze-20261121-1300"},
		},
		"a selector": {
			[]string{"-l", "tier in (shop, web)"},
			answer{Out: "✔ frozen until it is unfrozen: 2 Rollouts of namespace shop-prod with tier in (shop, web) (RolloutSchedule freeze-20261121-1300)\n" +
				"  not stopped: web 1.0.0 is baking; " + usual + "; the first release of a new Rollout\n"},
			[]string{"RolloutSchedule freeze-20261121-1300"},
		},
		"everywhere": {
			[]string{"-l", "tier=web", "-A", "--until", "2h"},
			answer{Out: "✔ frozen until Sat 21 Nov 15:00 CET: 1 Rollout of all namespaces with tier=web (ClusterRolloutSchedule freeze-20261121-1300)\n" +
				"  not stopped: shop-prod/web 1.0.0 is baking; " + usual + "; the first release of a new Rollout\n"},
			[]string{"ClusterRolloutSchedule freeze-20261121-1300"},
		},
		"a dry run": {
			[]string{"shop", "--dry-run"},
			answer{Out: "► frozen until it is unfrozen: Rollout shop-prod/shop (RolloutGate freeze-shop) (dry run: nothing was stored)\n  not stopped: " + usual + "\n"},
			nil,
		},
		"a dry run of the API server": {
			[]string{"--all", "--dry-run=server"},
			answer{Out: "► frozen until it is unfrozen: 4 Rollouts of namespace shop-prod (RolloutSchedule freeze-20261121-1300) (dry run: nothing was stored)\n" +
				"  not stopped: cart 1.0.0 is being deployed, web 1.0.0 is baking; " + usual + "; the first release of a new Rollout\n"},
			nil,
		},
		"a Rollout that does not exist": {
			[]string{"nobody"}, answer{Err: "✗ there is no Rollout nobody in namespace shop-prod; there are cart, new, shop, web\n", Code: 1}, nil,
		},
		"a selector that selects nothing": {
			[]string{"-l", "tier=db"},
			answer{Err: "✗ nothing was frozen: there are no Rollouts of namespace shop-prod with tier=db; see: kubectl rollouts get -n shop-prod\n", Code: 2}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(withCandidate("shop", old()), withCandidate("web", fixture.MakeEntry("1.0.0").Baking(noon))...)
			objects = append(objects, withCandidate("cart", fixture.MakeEntry("1.0.0").Deploying())...)
			m := newInMemory(t, append(objects, fixture.MakeRollout("new").Obj())...)
			got := m.run(t, append([]string{"freeze", "-m", "INC-4711"}, tt.args...)...)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.objects, m.names(t)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFreezeAgain(t *testing.T) {
	m := newInMemory(t, withCandidate("shop", old())...)
	for range 2 {
		m.run(t, "freeze", "--all", "-m", "x")
	}
	m.run(t, "freeze", "shop", "-m", "x")
	want := answer{Err: "✗ RolloutGate freeze-shop exists already; see: kubectl rollouts freeze -n shop-prod\n", Code: 2}
	if diff := cmp.Diff(want, m.run(t, "freeze", "shop", "-m", "x")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	objects := []string{"RolloutGate freeze-shop", "RolloutSchedule freeze-20261121-1300", "RolloutSchedule freeze-20261121-1300-2"}
	if diff := cmp.Diff(objects, m.names(t)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

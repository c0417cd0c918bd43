// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestVerbThatDoesNotExistNamesSimilarOnes(t *testing.T) {
	for typed, want := range map[string]string{
		"desribe": "kubectl rollouts describe", "hist": "kubectl rollouts history", "rolback": "kubectl rollouts rollback", "undoo": "kubectl rollouts undo",
		"xyz": "",
	} {
		got := newInMemory(t).run(t, typed)
		first, more, _ := strings.Cut(got.Err, "\n")
		if got.Code != 1 || !strings.Contains(first, `there is no verb "`+typed+`"; see: kubectl rollouts --help`) || strings.Contains(more, want) != (want != "" || more == "") {
			t.Errorf("%s: %+v, want %q below", typed, got, want)
		}
	}
}

func TestWordsOfKubectlAndArgoRolloutsAreVerbs(t *testing.T) {
	for line, want := range map[string]string{"undo shop": "rollback", "pause shop": "suspend", "list": "get", "watch shop": "get", "describe shop": "status"} {
		verb, _, err := NewRoot(program.New("kubectl rollouts", genericiooptions.NewTestIOStreamsDiscard())).Find(strings.Fields(line))
		if err != nil || verb.Name() != want {
			t.Errorf("%s is %s, want %s: %v", line, verb.Name(), want, err)
		}
	}
}

func TestRolloutMayBeNamedWithItsKind(t *testing.T) {
	shop := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.5.0").Succeeded()).Obj()
	for _, line := range []string{
		"get shop -o name", "get rollout shop -o name", "get rollout/shop -o name", "get rollouts.kuberik.com/shop -o name", "get rollout.kuberik.com/shop -o name",
	} {
		got := newInMemory(t, shop).run(t, strings.Fields(line)...)
		if diff := cmp.Diff("rollout.kuberik.com/shop\n", got.Out); diff != "" || got.Code != 0 {
			t.Errorf("%s (-want +got):\n%s%s", line, diff, got.Err)
		}
	}
	for _, line := range []string{"history rollout shop", "history rollout/shop", "suspend rollout shop --dry-run", "explain rollout/shop"} {
		if got := newInMemory(t, shop).run(t, strings.Fields(line)...); got.Code != 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if got := newInMemory(t, fixture.MakeRollout("rollout").Obj()).run(t, "get", "rollout", "-o", "name"); got.Out != "rollout.kuberik.com/rollout\n" {
		t.Errorf("a Rollout that is called rollout: %+v", got)
	}
}

func TestHelpListsVerbsByUseAndFewFlagsOfTheConnection(t *testing.T) {
	root := newInMemory(t).run(t, "--help").Out
	before := -1
	for _, verb := range []string{"  get ", "  explain ", "  status ", "  promote ", "  rollback ", "  options "} {
		if at := strings.Index(root, verb); at <= before {
			t.Errorf("%q is not after those that are used more:\n%s", verb, root)
		} else {
			before = at
		}
	}
	help := newInMemory(t).run(t, "explain", "--help").Out
	for flag, want := range map[string]bool{"--namespace": true, "--context": true, "--token": false, "--as-group": false, "kubectl rollouts options": true} {
		if strings.Contains(help, flag) != want {
			t.Errorf("%s in the help: %t, want %t:\n%s", flag, !want, want, help)
		}
	}
	if all := newInMemory(t).run(t, "options").Out; !strings.Contains(all, "--token") || !strings.Contains(all, "--namespace") {
		t.Errorf("options has:\n%s", all)
	}
}

func TestTraceAcceptsAKindAndAName(t *testing.T) {
	m := newInMemory(t, fixture.MakeRollout("shop").Obj())
	want := m.run(t, "trace", "rollout/shop")
	if got := m.run(t, "trace", "rollout", "shop"); want.Code != 0 || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, line := range []string{"trace", "trace rollout", "trace rollout/", "trace /shop", "trace rollout shop web", "trace a/b/c"} {
		if got := m.run(t, strings.Fields(line)...); got.Code != 1 || !strings.Contains(got.Err, "expected KIND/NAME") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

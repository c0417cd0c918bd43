// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// paged is a cluster with pages of Rollouts. It notes what was written before each page.
type paged struct {
	client.WithWatch
	pages  int
	out    *strings.Builder
	before []string
}

func (p *paged) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	if asked.Limit != program.PageSize {
		return fmt.Errorf("a page has %d Rollouts", asked.Limit)
	}
	p.before = append(p.before, p.out.String())
	n := len(p.before)
	rollouts := list.(*v1alpha1.RolloutList)
	rollouts.Items = []v1alpha1.Rollout{*fixture.MakeRollout(fmt.Sprintf("shop-%d", n)).Obj()}
	if n < p.pages {
		rollouts.Continue = fmt.Sprint(n)
	}
	return nil
}

// Case 24.
func TestGetPrintsAPageBeforeItAsksForTheNext(t *testing.T) {
	out := &strings.Builder{}
	pages := &paged{pages: 3, out: out}
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{Out: out, ErrOut: out})
	p.Connect = func(context.Context) (program.Cluster, error) { return program.Cluster{Client: pages}, nil }
	if code := run(t.Context(), p, []string{"get", "-A"}); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if len(pages.before) != 3 || strings.Count(pages.before[1], "shop-1") != 1 || strings.Count(pages.before[2], "shop-2") != 1 {
		t.Errorf("before each page there was: %q", pages.before)
	}
	if strings.Count(out.String(), "NAMESPACE") != 1 {
		t.Errorf("the header is not there once:\n%s", out)
	}
}

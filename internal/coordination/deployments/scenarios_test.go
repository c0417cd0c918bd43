// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// scenario is a list of events by users and fate. Each happens once and in order, when its
// condition is true.
type scenario struct {
	setUp  func(*world)
	events []event
}

type event struct {
	when func(*world) bool
	what string
	does func(*world)
}

// TestScenarios runs the planner in a small cluster, in a fixed order, and compares the
// result with the golden file of the scenario's name. To update these files:
//
//	go test ./internal/coordination/deployments -run TestScenarios -update
func TestScenarios(t *testing.T) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			s.setUp(w)
			s.play(w)
			w.rest(400)
			compareGolden(t, name, "## "+name+"\n\n"+w.lines.String())
		})
	}
}

func (s scenario) play(w *world) {
	w.t.Helper()
	events := s.events
	for range 400 {
		w.step(5 * time.Second)
		if len(events) == 0 {
			return
		}
		if e := events[0]; e.when(w) {
			w.log("%s", e.what)
			e.does(w)
			events = events[1:]
		}
	}
	w.t.Fatalf("it never happens that %s:\n%s", events[0].what, w.tail())
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the scenario has changed (-golden +now); if that is meant, run with -update:\n%s", diff)
	}
}

// Conditions of events.

func atRest(w *world) bool {
	for _, r := range w.crs {
		if ready(r.Journal).Status != metav1.ConditionTrue {
			return false
		}
	}
	return true
}

// turnOf returns true while an app has the turn and so many of its replicas are updated.
func turnOf(name string, updated int32) func(*world) bool {
	return func(w *world) bool {
		a := w.apps[name]
		for _, r := range w.crs {
			if a != nil && r.Journal.HasTurn(a.Key) && a.UpdatedReplicas == updated && a.ObservedGeneration == a.Generation {
				return true
			}
		}
		return false
	}
}

// says returns true while a coordination is not ready for the given reason.
func says(name, reason string) func(*world) bool {
	return func(w *world) bool { return ready(w.crs[name].Journal).Reason == reason }
}

// bakes returns true while an app has the turn and is rolled out.
func bakes(name string) func(*world) bool {
	return func(w *world) bool {
		a := w.apps[name]
		return turnOf(name, a.Replicas)(w) && a.facts().RolledOut
	}
}

// rolledOut returns true once a template is rolled out completely.
func rolledOut(name, template string) func(*world) bool {
	return func(w *world) bool { return w.apps[name].finished == template }
}

// givenUp returns true once Kubernetes reports a timeout.
func givenUp(name string) func(*world) bool {
	return func(w *world) bool { return w.apps[name].Failure != nil }
}

func not(f func(*world) bool) func(*world) bool { return func(w *world) bool { return !f(w) } }

func always(*world) bool { return true }

// Actions of events.

func change(template string, names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.edit(w.apps[name], func(a *app) { a.Template, a.broken = template, false })
		}
	}
}

func breakWith(template, name string) func(*world) {
	return func(w *world) {
		w.edit(w.apps[name], func(a *app) { a.Template, a.broken = template, true })
	}
}

func hold(held bool, name string) func(*world) {
	return func(w *world) { w.edit(w.apps[name], func(a *app) { a.UserPaused = held }) }
}

func pauseBy(manager, name string, paused bool) func(*world) {
	return func(w *world) { w.edit(w.apps[name], func(a *app) { a.Paused, a.PausedBy = paused, manager }) }
}

func label(name, group, value string) func(*world) {
	return func(w *world) {
		w.edit(w.apps[name], func(a *app) {
			if delete(a.Labels, group); value != "" {
				a.Labels[group] = value
			}
		})
	}
}

func scale(name string, replicas int32) func(*world) {
	return func(w *world) { w.edit(w.apps[name], func(a *app) { a.Replicas = replicas }) }
}

func remove(name string) func(*world) {
	return func(w *world) { delete(w.apps, name); w.version++ }
}

func uncoordinate(name string) func(*world) {
	return func(w *world) { delete(w.crs, name); w.version++ }
}

// misspell makes the selector invalid.
func misspell(name string) func(*world) {
	return func(w *world) { w.selectBy(name, "Like") }
}

// correct makes the coordination select its name as a label again.
func correct(name string) func(*world) {
	return func(w *world) { w.selectBy(name, metav1.LabelSelectorOpExists) }
}

func (w *world) selectBy(name string, operator metav1.LabelSelectorOperator) {
	w.crs[name].Spec.LabelSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: name, Operator: operator}}}
	w.crs[name].Generation++
	w.version++
}

func baking(seconds int32) func(*deployments.Coordination) {
	return func(c *deployments.Coordination) { c.Spec.MinReadySeconds = seconds }
}

// atATime sets maxConcurrent to a number or a percentage.
func atATime(n string) func(*deployments.Coordination) {
	return func(c *deployments.Coordination) {
		most := intstr.Parse(n)
		c.Spec.MaxConcurrent = &most
	}
}

func resuming(c *deployments.Coordination) { c.Spec.IdlePolicy = coordinationv1.IdleResume }

// shop has three apps that are rolled out, under one coordination.
func shop(change ...func(*deployments.Coordination)) func(*world) {
	return func(w *world) {
		for _, name := range []string{"api", "cart", "web"} {
			w.up(name, 2, "shop")
		}
		w.coordinate("shop", change...)
	}
}

var scenarios = map[string]scenario{
	"three Deployments are created paused and roll out one at a time": {
		setUp: func(w *world) {
			for _, name := range []string{"api", "cart", "web"} {
				a := w.create(name, "1.0", 2, "shop")
				w.edit(a, func(a *app) { a.Paused = true })
			}
			w.coordinate("shop", baking(60))
		},
	},

	"a release rolls out one at a time under Resume": {
		setUp: func(w *world) {
			w.holdForm = "policy"
			shop(baking(30), resuming)(w)
		},
		events: []event{
			{atRest, "people: apply 1.1 to all", change("1.1", "web", "cart", "api")},
		},
	},

	"without admission the Deployment that has begun goes first": {
		setUp: shop(resuming),
		events: []event{
			{atRest, "people: apply 1.1 to web", change("1.1", "web")},
			{turnOf("web", 1), "people: apply 1.1 to cart and api", change("1.1", "cart", "api")},
		},
	},

	"idle Deployments that Flux applies are reported once": {
		setUp: func(w *world) {
			shop()(w)
			w.apps["web"].AppliedBy = "Kustomization flux-system/shop"
			w.apps["api"].AppliedBy = "HelmRelease shop/api"
		},
		events: []event{
			{atRest, "people: apply 1.1 to web", change("1.1", "web")},
		},
	},

	"a rollout fails and its fix rolls out at once": {
		setUp: shop(),
		events: []event{
			{atRest, "people: apply 1.1, which is broken, to api, and 1.1 to cart", func(w *world) {
				breakWith("1.1", "api")(w)
				change("1.1", "cart")(w)
			}},
			{says("shop", coordinationv1.RolloutFailedReason), "people: apply 1.2 to api", change("1.2", "api")},
		},
	},

	"the controller crashes between the journal and the unpausing": {
		setUp: shop(),
		events: []event{
			{atRest, "fate: kills the controller after its next write; people: apply 1.1 to api and web", func(w *world) {
				w.dies = 1
				change("1.1", "api", "web")(w)
			}},
		},
	},

	"an unpaused Deployment comes back paused": {
		setUp: shop(),
		events: []event{
			{atRest, "fate: an old webhook pauses api once more; people: apply 1.1 to api and web", func(w *world) {
				w.stale["shop/api"] = "once"
				change("1.1", "api", "web")(w)
			}},
		},
	},

	"unpausing is rejected for a while": {
		setUp: shop(),
		events: []event{
			{atRest, "fate: writes to api are refused; people: apply 1.1 to api and web", func(w *world) {
				w.refused["shop/api"] = "admission webhook says no"
				change("1.1", "api", "web")(w)
			}},
			{says("shop", coordinationv1.ErrorReason), "fate: writes to api are made again", func(w *world) { clear(w.refused) }},
		},
	},

	"a pause by a user is undone and the rollout-paused annotation is not": {
		setUp: shop(baking(60)),
		events: []event{
			{atRest, "people: apply 1.1 to api and web", change("1.1", "api", "web")},
			{turnOf("api", 1), "people: kubectl rollout pause api", pauseBy("kubectl-rollout", "api", true)},
			{bakes("api"), "people: add the annotation rollout-paused to api", hold(true, "api")},
			{says("shop", coordinationv1.ActiveDeploymentHeldReason), "people: remove the annotation rollout-paused of api", hold(false, "api")},
		},
	},

	"a Deployment with the rollout-paused annotation is skipped": {
		setUp: shop(resuming),
		events: []event{
			{atRest, "people: add the annotation rollout-paused to api", hold(true, "api")},
			{atRest, "people: apply 1.1 to api and web", change("1.1", "api", "web")},
			{atRest, "people: remove the annotation rollout-paused of api", hold(false, "api")},
		},
	},

	"three roll out already when the coordination is created": {
		setUp: func(w *world) {
			for _, name := range []string{"api", "cart", "web"} {
				w.up(name, 3, "shop")
			}
			change("1.1", "api", "cart", "web")(w)
			for range 3 {
				w.control(w.apps["web"])
			}
			w.coordinate("shop")
		},
	},

	"two coordinations share a Deployment": {
		setUp: func(w *world) {
			w.up("a", 2, "east")
			w.up("b", 2, "east", "west")
			w.up("c", 2, "west")
			w.coordinate("east", baking(10))
			w.coordinate("west", baking(30))
		},
		events: []event{
			{atRest, "people: apply 1.1 to all", change("1.1", "a", "b", "c")},
		},
	},

	"a label joins two coordinations that both have an active Deployment": {
		setUp: func(w *world) {
			w.up("a", 4, "east")
			w.up("b", 4, "middle")
			w.up("c", 4, "west")
			w.coordinate("east")
			w.coordinate("west")
		},
		events: []event{
			{atRest, "people: apply 1.1 to a", change("1.1", "a")},
			{turnOf("a", 2), "people: apply 1.1 to c", change("1.1", "c")},
			{turnOf("c", 1), "people: label b for both", func(w *world) {
				label("b", "east", "yes")(w)
				label("b", "west", "yes")(w)
			}},
		},
	},

	"the active Deployment is deleted and another loses its label": {
		setUp: shop(),
		events: []event{
			{atRest, "people: apply 1.1 to all", change("1.1", "api", "cart", "web")},
			{turnOf("api", 1), "people: delete api and create it anew", func(w *world) {
				remove("api")(w)
				w.create("api", "1.1", 2, "shop")
			}},
			{turnOf("cart", 1), "people: take the label from cart", label("cart", "shop", "")},
		},
	},

	"a coordination is deleted and its Deployments are unpaused": {
		setUp: func(w *world) {
			shop()(w)
			w.apps["web"].Labels["web"] = "yes"
			w.coordinate("web")
		},
		events: []event{
			{atRest, "people: add the annotation rollout-paused to api", hold(true, "api")},
			{atRest, "people: delete coordination shop", uncoordinate("shop")},
			{always, "people: empty the selector of web", func(w *world) {
				w.crs["web"].Spec.LabelSelector = metav1.LabelSelector{}
				w.crs["web"].Generation++
				w.version++
			}},
			{says("web", coordinationv1.EmptySelectorReason), "people: delete coordination web", uncoordinate("web")},
		},
	},

	"a manifest that sets paused is reported and not overwritten again and again": {
		setUp: shop(),
		events: []event{
			{atRest, "Flux: applies paused false to api", pauseBy("kustomize-controller", "api", false)},
			{always, "people: apply 1.1 to cart and web", change("1.1", "cart", "web")},
			{turnOf("cart", 1), "Flux: applies 1.1 and paused false to web", pauseBy("kustomize-controller", "web", false)},
			{turnOf("web", 1), "Flux: applies paused true to web", pauseBy("kustomize-controller", "web", true)},
		},
	},

	"Deployments are scaled and have no replicas": {
		setUp: shop(baking(60)),
		events: []event{
			{atRest, "people: scale api to 5", scale("api", 5)},
			{always, "people: scale cart to 0", scale("cart", 0)},
			{always, "people: apply 1.1 to cart and web", change("1.1", "cart", "web")},
			{bakes("web"), "people: scale web to 4 and cart to 3", func(w *world) {
				scale("web", 4)(w)
				scale("cart", 3)(w)
			}},
		},
	},

	"a Pod fails during the bake": {
		setUp: shop(baking(60)),
		events: []event{
			{atRest, "people: apply 1.1 to api and web", change("1.1", "api", "web")},
			{bakes("api"), "fate: a Pod of api fails", func(w *world) { w.apps["api"].blinks = 1 }},
			{not(bakes("api")), "fate: the Pod of api is back", func(w *world) { w.apps["api"].blinks = 0 }},
		},
	},

	"another idlePolicy unpauses Deployments while a Pod is missing": {
		setUp: shop(),
		events: []event{
			{atRest, "fate: a Pod of api fails", func(w *world) { w.apps["api"].blinks = 1 }},
			{always, "people: set idlePolicy to Resume", func(w *world) {
				w.crs["shop"].Spec.IdlePolicy = coordinationv1.IdleResume
				w.crs["shop"].Generation++
				w.version++
			}},
			{givenUp("api"), "people: apply 1.1 to web", change("1.1", "web")},
		},
	},

	"a Deployment that changes during its bake waits for those that had no turn": {
		setUp: func(w *world) {
			w.holdForm = "policy"
			shop(baking(60), resuming)(w)
		},
		events: []event{
			{atRest, "people: apply 1.1 to api", change("1.1", "api")},
			{turnOf("api", 1), "people: apply 1.1 to web", change("1.1", "web")},
			{bakes("api"), "people: apply 1.2 to api", change("1.2", "api")},
			{bakes("web"), "people: apply 1.1 to cart", change("1.1", "cart")},
		},
	},

	"Deployments that go back do not bake": {
		setUp: func(w *world) {
			w.holdForm = "policy"
			shop(baking(60), resuming)(w)
		},
		events: []event{
			{atRest, "people: apply 1.1 to all", change("1.1", "api", "cart", "web")},
			{bakes("cart"), "people: go back to 1.0 with all, where web has not left it", change("1.0", "api", "cart", "web")},
			{atRest, "people: apply 1.1 to all once more", change("1.1", "api", "cart", "web")},
		},
	},

	"a busy pair does not starve the third": {
		setUp: shop(),
		events: []event{
			{atRest, "people: apply 1.1 to all", change("1.1", "api", "cart", "web")},
			{turnOf("cart", 1), "people: apply 1.2 to api", change("1.2", "api")},
			{turnOf("web", 1), "people: apply 1.2 to cart", change("1.2", "cart")},
			{turnOf("api", 1), "people: apply 1.2 to web", change("1.2", "web")},
			{turnOf("cart", 1), "people: apply 1.3 to api", change("1.3", "api")},
			{atRest, "people: apply 1.4 to web and api", change("1.4", "web", "api")},
		},
	},

	"two may roll out at a time": {
		setUp: func(w *world) {
			w.holdForm = "policy"
			for _, name := range []string{"api", "cart", "store", "web"} {
				w.up(name, 2, "shop")
			}
			w.coordinate("shop", baking(30), resuming, atATime("50%"))
		},
		events: []event{
			{atRest, "people: apply 1.1 to all", change("1.1", "api", "cart", "store", "web")},
			{bakes("cart"), "people: apply 1.2 to cart", change("1.2", "cart")},
		},
	},

	"one of two at a time fails and the other ends its turn": {
		setUp: func(w *world) {
			w.holdForm = "policy"
			shop(resuming, atATime("2"))(w)
		},
		events: []event{
			{atRest, "people: apply 1.1, which is broken, to api, and 1.1 to cart and web", func(w *world) {
				breakWith("1.1", "api")(w)
				change("1.1", "cart", "web")(w)
			}},
			{says("shop", coordinationv1.RolloutFailedReason), "people: apply 1.2 to cart", change("1.2", "cart")},
			{always, "people: apply 1.2 to api", change("1.2", "api")},
		},
	},

	"maxConcurrent becomes smaller during a release": {
		setUp: shop(atATime("100%")),
		events: []event{
			{atRest, "people: apply 1.1 to all", change("1.1", "api", "cart", "web")},
			{turnOf("web", 1), "people: remove maxConcurrent", func(w *world) {
				w.crs["shop"].Spec.MaxConcurrent = nil
				w.crs["shop"].Generation++
				w.version++
			}},
		},
	},

	"the selector is invalid for a while": {
		setUp: shop(),
		events: []event{
			{atRest, "people: write an operator that there is not", misspell("shop")},
			{says("shop", coordinationv1.InvalidSelectorReason), "people: correct it", correct("shop")},
		},
	},

	"the selector is invalid while one rolls out and two wait": {
		setUp: func(w *world) {
			w.holdForm = "policy"
			shop(baking(30), resuming)(w)
		},
		events: []event{
			{atRest, "people: apply 1.1 to all", change("1.1", "web", "cart", "api")},
			{turnOf("api", 1), "people: write an operator that there is not", misspell("shop")},
			{rolledOut("api", "1.1"), "people: correct it", correct("shop")},
		},
	},

	"the selector of one of two coordinations that share a Deployment is invalid for a while": {
		setUp: func(w *world) {
			w.up("a", 2, "east")
			w.up("b", 2, "east", "west")
			w.up("c", 2, "west")
			w.coordinate("east")
			w.coordinate("west")
		},
		events: []event{
			{atRest, "people: apply 1.1 to all", change("1.1", "a", "b", "c")},
			{turnOf("a", 1), "people: write an operator that there is not for east", misspell("east")},
			{rolledOut("c", "1.1"), "people: correct it", correct("east")},
		},
	},
}

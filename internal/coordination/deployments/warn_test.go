// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// events returns all notes of a plan, as they are emitted if all writes succeed.
func events(p deployments.Plan) []string {
	var lines []string
	line := func(name string, n deployments.Note) {
		if n.Reason != "" {
			kind := "Normal"
			if n.Warning {
				kind = "Warning"
			}
			lines = append(lines, fmt.Sprintf("%s %s %s: %s", name, kind, n.Reason, n.Message))
		}
	}
	for _, j := range p.Journals {
		for _, n := range j.Notes {
			line(j.Coordination, n)
		}
	}
	for _, w := range p.Writes {
		for _, name := range w.Coordinations {
			line(name, w.Done)
		}
	}
	return lines
}

func TestEvents(t *testing.T) {
	t.Parallel()

	paused := func(by string) func(*deployments.Deployment) {
		return func(d *deployments.Deployment) {
			d.Paused, d.RolledOut, d.PausedBy, d.HeldBy, d.Generation = true, false, by, "", 3
		}
	}
	spelled := func(d *deployments.Deployment) { d.PausedBy, d.Generation = "kustomize-controller", 3 }
	flux := func(d *deployments.Deployment) { d.AppliedBy = "Kustomization flux-system/shop" }
	tests := map[string]struct {
		in   deployments.Input
		want []string
	}{
		"the first turn": {
			in: of(coordination("web"), but(deployment("a", "web"), waiting)),
			want: []string{
				"web Normal DeploymentActivated: shop/a is active: its turn has come",
				"web Normal DeploymentUnpaused: shop/a is unpaused: it has the turn",
			},
		},
		"one that rolls already": {
			in:   of(coordination("web"), but(deployment("a", "web"), rolling(1))),
			want: []string{"web Normal DeploymentActivated: shop/a is active: it rolls out already"},
		},
		"from one to the next": {
			in: of(coordination("web", seconds(60), wrote("a", longDone("a"))), deployment("a", "web"), but(deployment("b", "web"), waiting)),
			want: []string{
				"web Normal ActiveDeploymentReady: shop/a is rolled out and has been ready for 1m0s",
				"web Normal ActiveDeploymentChanged: the turn goes from shop/a to shop/b",
				"web Normal DeploymentActivated: shop/b is active: its turn has come",
				"web Normal DeploymentPaused: shop/a is paused: it has nothing to roll out",
				"web Normal DeploymentUnpaused: shop/b is unpaused: it has the turn",
			},
		},
		"the last one": {
			in: of(coordination("web", resume, wrote("a", longDone("a"))), deployment("a", "web")),
			want: []string{
				"web Normal ActiveDeploymentReady: shop/a is rolled out",
				"web Normal ActiveDeploymentCleared: the turn of shop/a is over, and no Deployment waits for the next",
			},
		},
		"the active one is gone": {
			in: of(coordination("web", wrote("a", justStarted("a")))),
			want: []string{
				"web Normal ActiveDeploymentCleared: shop/a had the turn; it was deleted, or is not selected any more",
			},
		},
		"the active one is gone, and there is a next": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("b", "web"), waiting)),
			want: []string{
				"web Normal ActiveDeploymentCleared: shop/a had the turn; it was deleted, or is not selected any more",
				"web Normal DeploymentActivated: shop/b is active: its turn has come",
				"web Normal DeploymentUnpaused: shop/b is unpaused: it has the turn",
			},
		},
		"the active one was created anew": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), waiting, func(d *deployments.Deployment) { d.UID = "another" })),
			want: []string{
				"web Normal ActiveDeploymentCleared: shop/a had the turn; it was deleted, or is not selected any more",
				"web Normal DeploymentActivated: shop/a is active: its turn has come",
				"web Normal DeploymentUnpaused: shop/a is unpaused: it has the turn",
			},
		},
		"the turn goes where another coordination looks": {
			in: of(coordination("east", wrote("a", longDone("a"))), coordination("west"),
				deployment("a", "east"), but(deployment("b", "east", "west"), idle), but(deployment("c", "west"), waiting)),
			want: []string{
				"east Normal ActiveDeploymentReady: shop/a is rolled out",
				"east Normal ActiveDeploymentCleared: the turn goes from shop/a to shop/c, which is not selected here",
				"west Normal DeploymentActivated: shop/c is active: its turn has come",
				"east Normal DeploymentPaused: shop/a is paused: it has nothing to roll out",
				"west Normal DeploymentUnpaused: shop/c is unpaused: it has the turn",
			},
		},
		"half an end is reported once on each": {
			in: of(coordination("east", wrote("c", justStarted("c"))), coordination("west", wrote("b", longDone("b"))),
				but(deployment("b", "east", "west"), idle, func(d *deployments.Deployment) { d.Paused, d.RolledOut = false, true; d.HeldBy = "" }), but(deployment("c", "east"), rolling(1))),
			want: []string{
				"west Normal ActiveDeploymentReady: shop/b is rolled out",
				"west Normal ActiveDeploymentCleared: the turn goes from shop/b to shop/c, which is not selected here",
				"east Normal DeploymentPaused: shop/b is paused: it has nothing to roll out",
				"west Normal DeploymentPaused: shop/b is paused: it has nothing to roll out",
			},
		},
		"two rolled": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), rolling(1)), but(deployment("b", "web"), rolling(1))),
			want: []string{
				"web Normal DeploymentPaused: shop/b is paused: it waits for its turn; shop/a is active",
			},
		},
		"people hold the active one": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), rolling(1), userHeld)),
			want: []string{
				"web Normal DeploymentPaused: shop/a is paused: the annotation apps.containerinfra.nl/rollout-paused keeps it paused",
			},
		},
		"one is not paused any more while idle": {
			in: of(coordination("web", resume, wrote("")), but(deployment("a", "web"), idle)),
			want: []string{
				"web Normal DeploymentUnpaused: shop/a is unpaused: it has nothing to roll out, and idlePolicy is Resume",
			},
		},
		"a pause by hand is undone": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), rolling(1), paused("kubectl-rollout"))),
			want: []string{
				"web Normal DeploymentUnpaused: shop/a is unpaused: it has the turn (kubectl-rollout had paused it)",
			},
		},
		"a manifest pauses the active one": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), rolling(1), paused("kustomize-controller"))),
			want: []string{
				"web Warning PausedByManifest: kustomize-controller sets spec.paused of shop/a to true although it has the turn; take the field out of the manifest",
				"web Normal DeploymentUnpaused: shop/a is unpaused: it has the turn (kustomize-controller had paused it)",
			},
		},
		"a manifest had paused it before its turn, and the release is only repeated": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), waiting, paused("kubectl"), func(d *deployments.Deployment) { d.Generation = 1 })),
			want: []string{
				"web Normal DeploymentUnpaused: shop/a is unpaused: it has the turn (kubectl had paused it)",
			},
		},
		"the write against a manifest could not be made, which was reported": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), rolling(1), paused("kustomize-controller"), func(d *deployments.Deployment) {
				d.WriteError = "conflict"
			})),
			want: []string{
				"web Normal DeploymentUnpaused: shop/a is unpaused: it has the turn (kustomize-controller had paused it)",
			},
		},
		"a manifest releases one that waits": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), rolling(1)), but(deployment("b", "web"), rolling(0), spelled)),
			want: []string{
				"web Warning PausedByManifest: kustomize-controller sets spec.paused of shop/b to false although it waits for its turn; take the field out of the manifest",
				"web Normal DeploymentPaused: shop/b is paused: it waits for its turn; shop/a is active",
			},
		},
		"somebody unpauses one that waits, and says nothing of it": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), rolling(1)),
				but(deployment("b", "web"), rolling(0), func(d *deployments.Deployment) { d.WasPaused = true })),
			want: []string{
				"web Warning PausedByManifest: spec.paused of shop/b was removed although it waits for its turn; " +
					"clients that update the whole Deployment must keep the field, or use a patch or server-side apply",
				"web Normal DeploymentPaused: shop/b is paused: it waits for its turn; shop/a is active",
			},
		},
		"and one that is idle": {
			in: of(coordination("web", wrote("", state("a", "t1"))), but(deployment("a", "web"), func(d *deployments.Deployment) { d.WasPaused = true })),
			want: []string{
				"web Warning PausedByManifest: spec.paused of shop/a was removed although it has nothing to roll out; " +
					"clients that update the whole Deployment must keep the field, or use a patch or server-side apply",
				"web Normal DeploymentPaused: shop/a is paused: it has nothing to roll out",
			},
		},
		"which Resume leaves alone": {
			in: of(coordination("web", resume, wrote("", state("a", "t1"))), but(deployment("a", "web"), func(d *deployments.Deployment) { d.WasPaused = true })),
		},
		"a manifest releases an idle one: left alone": {
			in: of(coordination("web", wrote("", state("a", "t1"))), but(deployment("a", "web"), spelled, flux)),
			want: []string{
				"web Warning PausedByManifest: kustomize-controller sets spec.paused of shop/a to false, so it is not paused while it has nothing to roll out; take the field out of the manifest",
			},
		},
		"and reported once": {
			in: of(coordination("web", wrote("", state("a", "t1"))), but(deployment("a", "web"), spelled, func(d *deployments.Deployment) { d.Generation = 1 })),
		},
		"and not at all under Resume": {
			in: of(coordination("web", resume, wrote("", state("a", "t1"))), but(deployment("a", "web"), spelled)),
		},
		"idle and applied by Flux": {
			in: of(coordination("web"), but(deployment("a", "web"), idle, flux)),
			want: []string{
				"web Warning IdlePaused: paused while there is nothing to roll out, which Flux never finds ready: shop/a of Kustomization flux-system/shop; set spec.idlePolicy to Resume",
			},
		},
		"reported once": {
			in: of(coordination("web", wrote("", state("a", "t1"))), but(deployment("a", "web"), idle, flux)),
		},
		"reported again when its turn is over": {
			in: of(coordination("web", wrote("a", longDone("a"))), but(deployment("a", "web"), flux)),
			want: []string{
				"web Normal ActiveDeploymentReady: shop/a is rolled out",
				"web Normal ActiveDeploymentCleared: the turn of shop/a is over, and no Deployment waits for the next",
				"web Warning IdlePaused: paused while there is nothing to roll out, which Flux never finds ready: shop/a of Kustomization flux-system/shop; set spec.idlePolicy to Resume",
				"web Normal DeploymentPaused: shop/a is paused: it has nothing to roll out",
			},
		},
		"reported when the policy was changed": {
			in: of(coordination("web", wrote("", state("a", "t1")), func(c *deployments.Coordination) { c.Generation = 2 }), but(deployment("a", "web"), idle, flux)),
			want: []string{
				"web Warning IdlePaused: paused while there is nothing to roll out, which Flux never finds ready: shop/a of Kustomization flux-system/shop; set spec.idlePolicy to Resume",
			},
		},
		"the first few of many": {
			in: func() deployments.Input {
				in := of(coordination("web"))
				for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
					in.Deployments = append(in.Deployments, but(deployment(name, "web"), idle, func(d *deployments.Deployment) { d.AppliedBy = "x" }))
				}
				return in
			}(),
			want: []string{
				"web Warning IdlePaused: paused while there is nothing to roll out, which Flux never finds ready: shop/a of x, shop/b of x, shop/c of x, shop/d of x, shop/e of x, and 2 more; set spec.idlePolicy to Resume",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := events(deployments.Decide(tt.in)); !slices.Equal(got, tt.want) {
				t.Errorf("the events are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
		})
	}
}

// TestFailuresAreReported verifies the notes about writes that fail.
func TestFailuresAreReported(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		member deployments.Deployment
		want   deployments.Note
	}{
		"a hold": {
			member: deployment("a", "web"),
			want:   deployments.Note{Reason: coordinationv1.PauseFailedEvent, Warning: true, Message: "shop/a could not be paused"},
		},
		"a mark": {
			member: but(deployment("a", "web"), idle, func(d *deployments.Deployment) { d.HeldBy = "" }),
			want:   deployments.Note{Reason: coordinationv1.PauseFailedEvent, Warning: true, Message: "shop/a could not be paused"},
		},
		"a release": {
			member: but(deployment("a", "web"), waiting),
			want:   deployments.Note{Reason: coordinationv1.UnpauseFailedEvent, Warning: true, Message: "shop/a could not be unpaused"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writes := deployments.Decide(of(coordination("web"), tt.member)).Writes
			if len(writes) != 1 || writes[0].Failed != tt.want || !slices.Equal(writes[0].Coordinations, []string{"web"}) {
				t.Errorf("the writes are %+v, want one whose failure is reported as %+v", writes, tt.want)
			}
		})
	}
}

func TestNextLook(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		in     deployments.Input
		want   time.Time
		begins bool
	}{
		"at rest": {in: of(coordination("web", wrote("", state("a", "t1"))), but(deployment("a", "web"), idle))},
		"while one rolls": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), rolling(1))),
		},
		"a turn is given":     {in: of(coordination("web", wrote("")), but(deployment("a", "web"), waiting)), begins: true},
		"a turn is passed on": {in: of(coordination("web", wrote("a", longDone("a"))), deployment("a", "web"), but(deployment("b", "web"), waiting)), begins: true},
		"a turn is over":      {in: of(coordination("web", wrote("a", longDone("a"))), deployment("a", "web")), begins: true},
		"the active one is gone": {
			in: of(coordination("web", wrote("a", longDone("a")))), begins: true,
		},
		"the first of several ends": {
			in: of(coordination("east", seconds(60), wrote("a", state("a", "t1", started(ago(time.Minute)), finished(ago(10*time.Second))))),
				coordination("west", seconds(60), wrote("b", state("b", "t1", started(ago(time.Minute)), finished(ago(20*time.Second))))),
				coordination("zone", seconds(60), wrote("c", state("c", "t1", started(ago(time.Minute)), finished(ago(15*time.Second))))),
				deployment("a", "east"), deployment("b", "west"), deployment("c", "zone")),
			want: noon.Add(40 * time.Second),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := deployments.Decide(tt.in)
			if !p.RecheckAt.Equal(tt.want) || p.Begins != tt.begins {
				t.Errorf("look again at %s, begins: %t; want %s, %t", p.RecheckAt, p.Begins, tt.want, tt.begins)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// claims returns the conditions of a journal except HoldMode, one line each.
func claims(s coordinationv1.DeploymentCoordinationStatus) []string {
	var lines []string
	for _, c := range s.Conditions {
		if c.Type != coordinationv1.HoldModeCondition {
			lines = append(lines, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return lines
}

func TestConditions(t *testing.T) {
	t.Parallel()

	const fine = "Degraded False NoErrors: nothing has failed"
	b := but(deployment("b", "web"), waiting)
	tests := map[string]struct {
		in   deployments.Input
		want []string
	}{
		"all rolled out": {
			in: of(coordination("web"), but(deployment("a", "web"), idle), but(deployment("b", "web"), idle)),
			want: []string{
				"Ready True AllDeploymentsReady: 2 of 2 Deployments are rolled out",
				"Progressing False AllDeploymentsReady: 2 of 2 Deployments are rolled out",
				fine,
			},
		},
		"nothing selected": {
			in: of(coordination("web")),
			want: []string{
				"Ready True AllDeploymentsReady: no Deployment is selected",
				"Progressing False AllDeploymentsReady: no Deployment is selected",
				fine,
			},
		},
		"people hold one": {
			in: of(coordination("web"), but(b, userHeld)),
			want: []string{
				"Ready True AllDeploymentsReady: 0 of 1 Deployments are rolled out; the annotation apps.containerinfra.nl/rollout-paused keeps shop/b paused",
				"Progressing False AllDeploymentsReady: 0 of 1 Deployments are rolled out; the annotation apps.containerinfra.nl/rollout-paused keeps shop/b paused",
				fine,
			},
		},
		"an order that is no number": {
			in: of(coordination("web"), but(deployment("a", "web"), idle, func(d *deployments.Deployment) { d.Order = "first" })),
			want: []string{
				"Ready True AllDeploymentsReady: 1 of 1 Deployments are rolled out; the annotation apps.containerinfra.nl/order of shop/a is not an integer and counts as 0",
				"Progressing False AllDeploymentsReady: 1 of 1 Deployments are rolled out; the annotation apps.containerinfra.nl/order of shop/a is not an integer and counts as 0",
				fine,
			},
		},
		"about to be unpaused": {
			in: of(coordination("web"), but(deployment("a", "web"), idle), b),
			want: []string{
				"Ready False DeploymentsInProgress: 1 of 2 Deployments are rolled out; shop/b is about to be unpaused",
				"Progressing True DeploymentRollingOut: 1 of 2 Deployments are rolled out; shop/b is about to be unpaused",
				fine,
			},
		},
		"rolling": {
			in: of(coordination("web"), but(deployment("a", "web"), rolling(1)), b),
			want: []string{
				"Ready False DeploymentsInProgress: 0 of 2 Deployments are rolled out; shop/a rolls out: 1 of 3 replicas are updated",
				"Progressing True DeploymentRollingOut: 0 of 2 Deployments are rolled out; shop/a rolls out: 1 of 3 replicas are updated",
				fine,
			},
		},
		"rolling, all updated": {
			in: of(coordination("web"), but(deployment("a", "web"), rolling(3), func(d *deployments.Deployment) { d.AvailableReplicas = 2 })),
			want: []string{
				"Ready False DeploymentsInProgress: 0 of 1 Deployments are rolled out; shop/a rolls out: 3 of 3 replicas are updated, 2 available",
				"Progressing True DeploymentRollingOut: 0 of 1 Deployments are rolled out; shop/a rolls out: 3 of 3 replicas are updated, 2 available",
				fine,
			},
		},
		"ready for a while": {
			in: of(coordination("web", seconds(90), wrote("a", state("a", "t1", started(ago(time.Minute)), finished(ago(time.Second))))), deployment("a", "web"), b),
			want: []string{
				"Ready False DeploymentsInProgress: 1 of 2 Deployments are rolled out; shop/a is rolled out, and has to be ready until 2026-03-02T12:01:29Z",
				"Progressing True DeploymentRollingOut: 1 of 2 Deployments are rolled out; shop/a is rolled out, and has to be ready until 2026-03-02T12:01:29Z",
				fine,
			},
		},
		"held": {
			in: of(coordination("web", wrote("b", justStarted("b"))), but(b, userHeld)),
			want: []string{
				"Ready False ActiveDeploymentHeld: 0 of 1 Deployments are rolled out; shop/b is active, and the annotation apps.containerinfra.nl/rollout-paused keeps it paused",
				"Progressing True ActiveDeploymentHeld: 0 of 1 Deployments are rolled out; shop/b is active, and the annotation apps.containerinfra.nl/rollout-paused keeps it paused",
				fine,
			},
		},
		"failed": {
			in: of(coordination("web", wrote("a", justStarted("a"))), but(deployment("a", "web"), failedAt(noon)), b),
			want: []string{
				`Ready False RolloutFailed: shop/a has failed to roll out: ReplicaSet "a-1" has timed out progressing; correct or revert its template, or take it out of the selection`,
				`Progressing False RolloutFailed: shop/a has failed to roll out: ReplicaSet "a-1" has timed out progressing; correct or revert its template, or take it out of the selection`,
				`Degraded True RolloutFailed: shop/a has failed to roll out: ReplicaSet "a-1" has timed out progressing; correct or revert its template, or take it out of the selection`,
				`Stalled True RolloutFailed: shop/a has failed to roll out: ReplicaSet "a-1" has timed out progressing; correct or revert its template, or take it out of the selection`,
			},
		},
		"a write that could not be made": {
			in: of(coordination("web", wrote("b", justStarted("b"))), but(b, func(d *deployments.Deployment) { d.WriteError = "admission says no" })),
			want: []string{
				"Ready False Error: shop/b: admission says no",
				"Progressing False Error: shop/b: admission says no",
				"Degraded True Error: shop/b: admission says no",
			},
		},
		"something cannot be read": {
			in: func() deployments.Input {
				in := of(coordination("web"), b)
				in.Unreadable = errors.New("replicasets is forbidden")
				return in
			}(),
			want: []string{
				"Ready False Error: replicasets is forbidden",
				"Progressing False Error: replicasets is forbidden",
				"Degraded True Error: replicasets is forbidden",
			},
		},
		"another coordinator": {
			in: func() deployments.Input {
				in := of(coordination("web"), b)
				in.Other = "the webhook configuration upstream-webhook is another coordinator's"
				return in
			}(),
			want: []string{
				"Ready False OtherCoordinatorInstalled: the webhook configuration upstream-webhook is another coordinator's; nothing is touched while it is there",
				"Progressing False OtherCoordinatorInstalled: the webhook configuration upstream-webhook is another coordinator's; nothing is touched while it is there",
				fine,
				"Stalled True OtherCoordinatorInstalled: the webhook configuration upstream-webhook is another coordinator's; nothing is touched while it is there",
			},
		},
		"an empty selector": {
			in: of(coordination("web", func(c *deployments.Coordination) { c.Spec.LabelSelector = metav1.LabelSelector{} }), b),
			want: []string{
				"Ready False EmptySelector: spec.labelSelector is empty, which would select every Deployment of the namespace, so no Deployment gets a turn: name labels",
				"Progressing False EmptySelector: spec.labelSelector is empty, which would select every Deployment of the namespace, so no Deployment gets a turn: name labels",
				fine,
				"Stalled True EmptySelector: spec.labelSelector is empty, which would select every Deployment of the namespace, so no Deployment gets a turn: name labels",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := claims(journalOf(t, deployments.Decide(tt.in), "web").Status)
			if !slices.Equal(got, tt.want) {
				t.Errorf("the conditions are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
		})
	}
}

func TestDeploymentsThatWaitForAnotherCoordination(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		active deployments.Deployment
		want   string
	}{
		"that rolls":       {but(deployment("a", "east"), rolling(1)), "shop/a has the turn"},
		"that has failed":  {but(deployment("a", "east"), failedAt(noon)), "shop/a has failed to roll out"},
		"that people hold": {but(deployment("a", "east"), rolling(1), userHeld), "shop/a is held by annotation"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := of(coordination("east", wrote("a", justStarted("a"))), coordination("west"),
				tt.active, but(deployment("b", "east", "west"), waiting))
			want := []string{
				"Ready False WaitingForCoordination: 0 of 1 Deployments are rolled out; waits for coordination east, where " + tt.want,
				"Progressing True DeploymentsPending: 0 of 1 Deployments are rolled out; waits for coordination east, where " + tt.want,
				"Degraded False NoErrors: nothing has failed",
			}
			if got := claims(journalOf(t, deployments.Decide(in), "west").Status); !slices.Equal(got, want) {
				t.Errorf("the conditions are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			}
		})
	}
}

func TestConditionsKeepTheirTimes(t *testing.T) {
	t.Parallel()

	c := coordination("web", wrote(""))
	c.Generation = 7
	p := deployments.Decide(of(c, but(deployment("a", "web"), idle)))
	status := journalOf(t, p, "web").Status
	if status.ObservedGeneration != 7 {
		t.Errorf("observedGeneration is %d", status.ObservedGeneration)
	}
	for _, cond := range status.Conditions {
		since := noon
		if cond.Type == coordinationv1.ReadyCondition { // it was True before
			since = noon.Add(-time.Hour)
		}
		if !cond.LastTransitionTime.Time.Equal(since) || cond.ObservedGeneration != 7 {
			t.Errorf("%s is of generation %d, since %s; want 7, since %s", cond.Type, cond.ObservedGeneration, cond.LastTransitionTime, since)
		}
	}
}

func TestConditionsThatChangeHaveTheTimeOfTheChange(t *testing.T) {
	t.Parallel()

	p := deployments.Decide(of(coordination("web", wrote("")), but(deployment("a", "web"), waiting)))
	if got := ready(journalOf(t, p, "web").Status); got.Status != metav1.ConditionFalse || !got.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("Ready is %s since %s, want False since now", got.Status, got.LastTransitionTime)
	}
}

func TestHoldMode(t *testing.T) {
	t.Parallel()

	for reason, want := range map[string]metav1.ConditionStatus{
		coordinationv1.AdmissionPolicyReason:  metav1.ConditionTrue,
		coordinationv1.AdmissionWebhookReason: metav1.ConditionTrue,
		coordinationv1.ControllerOnlyReason:   metav1.ConditionFalse,
	} {
		in := of(coordination("web"))
		in.HoldMode = deployments.AdmissionMode{Reason: reason, Message: "so it is"}
		conditions := journalOf(t, deployments.Decide(in), "web").Status.Conditions
		i := slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == coordinationv1.HoldModeCondition })
		if got := conditions[i]; got.Status != want || got.Reason != reason || got.Message != "so it is" {
			t.Errorf("HoldMode is %s %s %q, want %s", got.Status, got.Reason, got.Message, want)
		}
	}
}

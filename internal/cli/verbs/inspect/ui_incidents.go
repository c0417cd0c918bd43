// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/incident"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// incidentPage is what went wrong in the last day.
type incidentPage struct {
	From  metav1.Time     `json:"from"`
	To    metav1.Time     `json:"to"`
	Lanes []incident.Lane `json:"lanes"`
	// Omitted is how many releases are not among the lanes.
	Omitted  int      `json:"omitted,omitempty"`
	Problems []string `json:"problems,omitempty"`
	// Command lists the quarantines in a terminal.
	Command string `json:"command"`
}

// Incidents implements web.Source.
func (p *pages) Incidents(ctx context.Context) (any, error) {
	shown, err := p.shown(ctx)
	if err != nil {
		return nil, err
	}
	now := p.Now()
	page := incidentPage{From: metav1.NewTime(now.Add(-incident.Lookback)), To: metav1.NewTime(now), Command: p.command("quarantine", shown)}
	facts := incident.Facts{}
	for _, namespace := range shown {
		if err := readIncidents(ctx, p.cluster.Client, namespace, &facts, &page.Problems); err != nil {
			return nil, err
		}
	}
	err = program.EachPage(ctx, p.cluster.Client, "", func(l *v1alpha1.ClusterReleaseQuarantineList) {
		facts.OfCluster = append(facts.OfCluster, l.Items...)
	})
	if err != nil {
		page.Problems = append(page.Problems, fmt.Sprintf("quarantines of the whole cluster are not shown: %v", err))
	}
	page.Lanes, page.Omitted = incident.Of(facts, now)
	return page, nil
}

// readIncidents reads a namespace, or all of them. Without the Rollouts there is no answer.
func readIncidents(ctx context.Context, from client.Reader, namespace string, facts *incident.Facts, problems *[]string) error {
	err := program.EachPage(ctx, from, namespace, func(l *v1alpha1.RolloutList) { facts.Rollouts = append(facts.Rollouts, l.Items...) })
	if err != nil {
		return fmt.Errorf("list Rollouts: %w", err)
	}
	err = program.EachPage(ctx, from, namespace, func(l *v1alpha1.ReleaseQuarantineList) { facts.Quarantines = append(facts.Quarantines, l.Items...) })
	if err != nil {
		*problems = append(*problems, fmt.Sprintf("quarantines are not shown: %v", err))
	}
	return nil
}

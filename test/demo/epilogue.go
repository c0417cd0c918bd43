// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// guide says how to look at the same things with kubectl.
func (d *demo) guide() {
	d.print("\nTo look around in a second terminal while the story goes on:\n\n")
	for _, command := range []string{
		"export KUBECONFIG=" + d.plane.Kubeconfig(),
		"kubectl get rollouts -n demo --watch",
		"kubectl describe rollout shop -n demo",
		"kubectl get events -n demo --field-selector involvedObject.kind=Rollout",
		"kubectl get ocirepository,kustomization,healthcheck,deployment -n demo",
	} {
		d.print("   %s\n", d.style.bold(command))
	}
}

// invite says that the stage stays up.
func (d *demo) invite() {
	d.print("\nEverything stays up until you press Ctrl-C, and what happens is told here. Send shop back, for example:\n\n")
	d.print("   %s\n\n", d.style.bold(`kubectl patch rollout shop -n demo --type=merge -p '{"spec":{"wantedVersion":"1.1.0"}}'`))
}

// epilogue checks the whole history and shows it in two ways.
func (s *story) epilogue(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, chapterLimit)
	defer cancel()
	s.print("\n%s\n\n", s.style.bold("What came of it"))
	if err := s.must(ctx, s.wholeHistory()...); err != nil {
		return err
	}
	seen, _ := s.look()
	s.print("\n%s\n", summary(seen.rollout.Status.History))
	table, err := tableOf(ctx, s.plane.RESTConfig(), s.Namespace, "rollouts")
	if err != nil {
		return err
	}
	s.print("%s\n%s", s.style.bold("$ kubectl get rollouts -n "+s.Namespace), table)
	return nil
}

// summary shows the promotions, oldest first.
func summary(entries []v1alpha1.DeploymentHistoryEntry) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "#\tVERSION\tWHY\tOUTCOME\tTOOK")
	for i := range entries {
		e := &entries[len(entries)-1-i]
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", idOf(e), e.Version.Tag, why(e), e.State(), took(e))
	}
	_ = table.Flush()
	for i := range entries {
		if e := &entries[i]; e.State() == v1alpha1.BakeFailed {
			fmt.Fprintf(&text, "\n%s failed: %s\n", e.Version.Tag, told(e.BakeStatusMessage))
		}
	}
	return text.String()
}

func why(e *v1alpha1.DeploymentHistoryEntry) string {
	if e.TriggeredBy == nil {
		return told(e.Message)
	}
	return fmt.Sprintf("%s: %s", e.TriggeredBy.Kind, told(e.Message))
}

func took(e *v1alpha1.DeploymentHistoryEntry) time.Duration {
	if e.BakeEndTime == nil {
		return 0
	}
	return e.BakeEndTime.Sub(e.Timestamp.Time)
}

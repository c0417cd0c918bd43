// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	known "github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// guide prints how to look at the same objects with kubectl.
func (d *demo) guide() {
	d.print("\nTo look around in a second terminal meanwhile:\n\n")
	var commands []string
	for _, c := range d.clusters() {
		commands = append(commands, fmt.Sprintf("export KUBECONFIG=%s PATH=%s:$PATH%s", c.plane.Kubeconfig(), filepath.Dir(d.plugin()), comment(c.plane.Name())))
	}
	for _, command := range append(commands, d.commands...) {
		d.print("   %s\n", d.style.bold(command))
	}
	d.print("\nIn your browser, if you open it within a minute (later: kubectl rollouts ui):\n\n   %s\n", d.style.bold(d.address))
}

// comment returns a comment of the shell, for the name of a cluster if it has one.
func comment(name string) string {
	if name == "" {
		return ""
	}
	return " # " + name
}

// invitation prints that everything stays up.
func (d *demo) invitation() {
	d.print("\nEverything stays up until you press Ctrl-C, and what happens is shown here. %s\n\n", d.invite)
	d.print("   %s\n\n", d.style.bold(d.command))
}

// showResult checks the whole history and shows it in two ways.
func (s *session) showResult(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	s.print("\n%s\n\n", s.style.bold("What came of it"))
	if err := s.must(ctx, s.ending...); err != nil {
		return err
	}
	seen, _ := s.look()
	s.print("\n%s\n", summary(seen.rollout.Status.History))
	for _, kind := range s.tables {
		table, err := s.plane.TableOf(ctx, s.Namespace, kind)
		if err != nil {
			return err
		}
		s.print("%s\n%s", s.style.bold("$ kubectl get "+kind.Resource+" -n "+s.Namespace), controlplane.FormatTable(table))
	}
	for _, questions := range s.questions {
		if err := s.rollouts(ctx, questions...); err != nil {
			return err
		}
	}
	return nil
}

// summary shows the promotions, oldest first.
func summary(entries []v1alpha1.DeploymentHistoryEntry) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "#\tVERSION\tWHY\tOUTCOME\tTOOK")
	for i := range entries {
		e := &entries[len(entries)-1-i]
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", idOf(e), known.NameAmong(e.Version, entries), why(e), e.State(), took(e))
	}
	_ = table.Flush()
	for i := range entries {
		if e := &entries[i]; e.State() == v1alpha1.BakeFailed {
			fmt.Fprintf(&text, "\n%s failed: %s\n", e.Version.Tag, reported(e.BakeStatusMessage))
		}
	}
	return text.String()
}

func why(e *v1alpha1.DeploymentHistoryEntry) string {
	if e.TriggeredBy == nil {
		return reported(e.Message)
	}
	return fmt.Sprintf("%s: %s", e.TriggeredBy.Kind, reported(e.Message))
}

func took(e *v1alpha1.DeploymentHistoryEntry) time.Duration {
	if e.BakeEndTime == nil {
		return 0
	}
	return e.BakeEndTime.Sub(e.Timestamp.Time)
}

// SPDX-License-Identifier: Apache-2.0

package act

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

type approving struct {
	*changing
	gate   string
	revoke bool
}

// NewApprove returns the verb approve.
func NewApprove(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "approve NAME [VERSION]", Short: "Approve a release, or make a gate pass for one version",
		Long: `Approve a release where gates ask for approvals. It creates a RolloutApproval of its content
in each role that is asked for and that you have, under the name by which the API server
knows you. It needs the right "approve", or "approve:ROLE", on the Rollout.

Where no gate asks for approvals, or with --gate, make a gate pass for one version and for
nothing else: the next release waits again. It changes only the RolloutGate, and needs no
right to change the Rollout. Your name and your message are in an annotation of the gate.

Without a version it is the newest candidate, and without --gate the only gate that does
not let it pass.`,
		Example: fmt.Sprintf(`  # As one of the people that a gate asks
  %[1]s approve shop --version 1.4.0 -m CHG-1
  # Another gate
  %[1]s approve shop 1.5.0 --gate qa -m "tested by hand"`, p.Called),
	}
	a := &approving{changing: newChanging(p, cmd)}
	cmd.Flags().Lookup("message").Usage = "why, for those who ask later"
	a.approves(cmd)
	cmd.Flags().StringVar(&a.gate, "gate", "", "the RolloutGate; needed if more than one does not let the version pass")
	cmd.Flags().BoolVar(&a.revoke, "revoke", false, "with a gate that allows versions by their names: allow it no more")
	return cmd
}

func (a *approving) request(v program.View) (request.Request, error) {
	tag := a.tag
	if tag == "" {
		if a.revoke || len(v.Decision.Candidates) == 0 {
			return request.Request{}, program.Refuse("there is no candidate: say which version")
		}
		tag = v.Policy.FullName(v.Decision.Candidates[0].Release)
	}
	gate, err := a.chosen(v, tag)
	if err != nil {
		return request.Request{}, err
	}
	if a.revoke {
		return request.Revoke(gate.Name, tag), nil
	}
	if err := a.warns(v, tag); err != nil {
		return request.Request{}, err
	}
	a.saysWhatIsRemoved(gate, tag)
	r := request.Approve(gate.Name, tag)
	return r, letsOnly(v, r, tag)
}

// chosen returns the gate that is meant.
func (a *approving) chosen(v program.View, tag string) (*v1alpha1.RolloutGate, error) {
	if a.gate != "" {
		return gateNamed(v, a.gate)
	}
	var all []*v1alpha1.RolloutGate
	var names []string
	for i := range v.Gates.Gates {
		if gate := &v.Gates.Gates[i]; a.isAbout(gate, tag) {
			all, names = append(all, gate), append(names, gate.Name)
		}
	}
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(all) > 1:
		return nil, program.Refuse("say which gate, with --gate: %s", strings.Join(names, ", "))
	case a.revoke:
		return nil, program.Refuse("Rollout %s has no gate that allows %s by its name%s", v.Rollout.Name, tag, program.GatesOf(&v))
	}
	return nil, program.Refuse("Rollout %s has no gate that holds %s%s", v.Rollout.Name, tag, program.GatesOf(&v))
}

// isAbout reports whether a gate can be meant. That of a freeze is ended by unfreeze.
func (a *approving) isAbout(gate *v1alpha1.RolloutGate, tag string) bool {
	if a.revoke {
		return gate.Spec.AllowedVersions != nil && slices.Contains(*gate.Spec.AllowedVersions, tag)
	}
	return gate.Labels[v1alpha1.ManagedByLabel] != request.FreezeManager && !request.Allows(gate, tag)
}

// gateNamed refuses gates that show a schedule: the schedule counts, and not its gate.
func gateNamed(v program.View, name string) (*v1alpha1.RolloutGate, error) {
	is := func(g v1alpha1.RolloutGate) bool { return g.Name == name }
	if i := slices.IndexFunc(v.Gates.Copies, is); i >= 0 {
		labels := v.Gates.Copies[i].Labels
		return nil, program.Refuse("gate %s shows the state of %s %s: to change it has no effect",
			name, labels[v1alpha1.ScheduleKindLabel], labels[v1alpha1.ScheduleNameLabel])
	}
	if mirror := v.Gates.Mirror; mirror != nil && is(*mirror) {
		return nil, program.Refuse("gate %s shows what environments, quarantines, failures and gates of the cluster hold: to change it has no effect", name)
	}
	if i := slices.IndexFunc(v.Gates.Gates, is); i >= 0 {
		return &v.Gates.Gates[i], nil
	}
	return nil, program.NoSuchGate(v, name)
}

// saysWhatIsRemoved names the versions that a closed gate would allow if it was only opened.
func (a *approving) saysWhatIsRemoved(gate *v1alpha1.RolloutGate, tag string) {
	if list := gate.Spec.AllowedVersions; list != nil && !gate.IsPassing() {
		if others := slices.DeleteFunc(slices.Clone(*list), func(v string) bool { return v == tag }); len(others) > 0 {
			a.Err.Sentence(show.Warns, "gate %s is closed: it opens for %s alone, and allows no more: %s", gate.Name, tag, strings.Join(others, ", "))
		}
	}
}

// letsOnly refuses an approval after which another release goes out.
func letsOnly(v program.View, r request.Request, tag string) error {
	if after := promotion.Decide(r.Apply(v.Input)); after.Action.Promotes() && !releases.Name(tag).Is(after.Release) {
		return program.Refuse("not %s goes out then, but %s: %s", tag, after.Release.Tag, after.Message)
	}
	return nil
}

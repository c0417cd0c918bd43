// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/simulation"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// events returns what the flags say will happen, and says it.
func (s *simulating) events(v *program.View) (all []simulation.Event, said []string, err error) {
	for _, group := range []struct {
		flag  string
		texts []string
		parse func(v *program.View, what string) (change func(*promotion.Input), said string, err error)
	}{
		{"--release", s.releases, release},
		{"--gate", s.gates, gateChange},
		{"--health", s.health, healthChange},
		{"--approved", s.approved, approvedBy},
	} {
		for _, text := range group.texts {
			what, at, when, err := s.when(v.Now, text)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", group.flag, err)
			}
			change, sentence, err := group.parse(v, what)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", group.flag, err)
			}
			all, said = append(all, simulation.Event{At: at, Change: change}), append(said, sentence+when)
		}
	}
	if s.pin != "" {
		v.Input = request.Pin(s.pin).Apply(v.Input)
		said = append(said, s.pin+" is pinned now")
	}
	return all, said, nil
}

// when splits "WHAT@TIME".
func (s *simulating) when(now time.Time, text string) (what string, at time.Time, said string, err error) {
	what, late, isLater := strings.Cut(text, "@")
	if !isLater {
		return what, now, " now", nil
	}
	at, err = program.TimeOf(late, now, s.Zone)
	return what, at, " at " + at.In(s.Zone).Format(time.RFC3339), err
}

// release makes the policy name a release.
func release(_ *program.View, tag string) (func(*promotion.Input), string, error) {
	if !releases.IsTag(tag) {
		return nil, "", fmt.Errorf("%q cannot be a tag in an OCI registry", tag)
	}
	return func(in *promotion.Input) {
		in.Policy.Latest = &v1alpha1.VersionInfo{Tag: tag}
		in.Policy.Scanned = append(slices.Clone(in.Policy.Scanned), tag)
	}, tag + " appears", nil
}

// approvedBy makes as many people approve a release as gates ask for.
func approvedBy(v *program.View, tag string) (func(*promotion.Input), string, error) {
	if !releases.IsTag(tag) {
		return nil, "", fmt.Errorf("%q cannot be a tag in an OCI registry", tag)
	}
	if len(v.RolesAsked()) == 0 {
		return nil, "", fmt.Errorf("no gate of Rollout %s asks for approvals", v.Rollout.Name)
	}
	return func(in *promotion.Input) {
			in.Approvals.Given = append(slices.Clone(in.Approvals.Given), enough(*in, tag)...)
		},
		"all who are asked approve " + tag, nil
}

// enough returns approvals of a release in each role that is asked for, by as many people as a
// gate can ask for and one more: whoever has asked for the release may be among them.
func enough(in promotion.Input, tag string) []v1alpha1.RolloutApproval {
	var all []v1alpha1.RolloutApproval
	for _, role := range request.RolesAsked(in.Gates) {
		for person := range mostAsked + 1 {
			name := fmt.Sprintf("%s-%d", role, person)
			given := *request.ApproveAs(name, role, v1alpha1.VersionInfo{Tag: tag}, false).Decision
			given.Name, given.UID, given.CreationTimestamp = name, types.UID(name), metav1.NewTime(in.Now)
			all = append(all, given)
		}
	}
	return all
}

// mostAsked is how many people a gate can ask for.
const mostAsked = 10

// gateChange opens or closes a gate, or makes it allow some tags only.
func gateChange(v *program.View, text string) (func(*promotion.Input), string, error) {
	name, to, ok := strings.Cut(text, "=")
	if !ok || to == "" {
		return nil, "", fmt.Errorf("%q: write NAME=open, NAME=closed or NAME=TAG,TAG", text)
	}
	if !slices.ContainsFunc(v.Gates.Gates, func(g v1alpha1.RolloutGate) bool { return g.Name == name }) {
		return nil, "", fmt.Errorf("the Rollout has no gate %s%s", name, program.GatesOf(v))
	}
	spec, said := v1alpha1.RolloutGateSpec{}, "opens"
	switch to {
	case "open":
		spec.Passing = new(true)
	case "closed":
		spec.Passing, said = new(false), "closes"
	default:
		tags := strings.Split(to, ",")
		spec.Passing, spec.AllowedVersions, said = new(true), &tags, "allows "+to
	}
	return func(in *promotion.Input) {
		for i := range in.Gates.Gates {
			if gate := &in.Gates.Gates[i]; gate.Name == name {
				gate.Spec.Passing, gate.Spec.AllowedVersions = spec.Passing, spec.AllowedVersions
			}
		}
	}, fmt.Sprintf("gate %s %s", name, said), nil
}

// healthChange makes a HealthCheck report something.
func healthChange(v *program.View, text string) (func(*promotion.Input), string, error) {
	name, to, _ := strings.Cut(text, "=")
	status := v1alpha1.HealthStatus(to)
	if status != v1alpha1.HealthStatusHealthy && status != v1alpha1.HealthStatusUnhealthy && status != v1alpha1.HealthStatusPending {
		return nil, "", fmt.Errorf("%q: write NAME=Healthy, NAME=Unhealthy or NAME=Pending", text)
	}
	is := func(check v1alpha1.HealthCheck) bool {
		return check.Name == name || check.Namespace+"/"+check.Name == name
	}
	if !slices.ContainsFunc(v.Health.Checks, is) {
		return nil, "", fmt.Errorf("the Rollout selects no HealthCheck %s", name)
	}
	return func(in *promotion.Input) {
		for i := range in.Health.Checks {
			if check := &in.Health.Checks[i]; is(*check) {
				check.Status.Status = status
				if status == v1alpha1.HealthStatusUnhealthy {
					check.Status.LastErrorTime = &metav1.Time{Time: in.Now}
				}
			}
		}
	}, fmt.Sprintf("HealthCheck %s becomes %s", name, to), nil
}

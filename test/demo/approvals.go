// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// approvalsScript is the scenario of releases that people approve.
var approvalsScript = script{
	about: "releases that two people approve, each under a name that the API server vouches for",
	steps: approvalsSteps,
	ending: []expectation{
		history("1: 1.0.0 Succeeded", "2: 1.1.0 Succeeded", "3: 1.2.0 Succeeded", "4: 1.3.0 Succeeded", "5: 1.2.0 Succeeded", "6: 1.4.0 Succeeded"),
		targetsCarry("1.4.0"), runs("registry.example/shop:1.4.0"), atRest,
	},
	commands: []string{
		"kubectl rollouts approvals -n demo",
		"kubectl rollouts approvals -n demo --past",
		"kubectl get rolloutapprovals -n demo",
	},
	tables:     []schema.GroupVersionResource{v1alpha1.GroupVersion.WithResource("rollouts"), v1alpha1.GroupVersion.WithResource("rolloutapprovals")},
	questions:  [][]string{{"approvals", "-n", "demo"}, {"approvals", "-n", "demo", "--past"}, {"history", "shop", "-n", "demo"}},
	invite:     "Ask who approved a promotion, for example:",
	command:    "kubectl rollouts history shop 4 -n demo",
	watched:    ofReleases,
	components: []string{"approvals", "deploy-user", "tenant-view"},
}

var approvalsSteps = []step{
	{
		title: "The first release",
		intro: "Flux deploys shop 1.0.0, and it proves itself. Nobody asks for approvals yet.",
		play:  (*session).pinnedRelease,
	},
	{
		title: "Two people are asked, and a name is forged",
		intro: "A RolloutGate asks for two people, and 1.1.0 is pushed. Alice approves it twice, once as herself and once as Bob. " +
			"The API server knows who she is.",
		play: (*session).forgedApproval,
	},
	{
		title: "Alice twice, then Bob",
		intro: "Alice approves again. She is still one person. Then Bob looks at it, too.",
		play:  (*session).secondPerson,
	},
	{
		title: "A no",
		intro: "1.2.0 leaks memory, says Alice. Her no holds it, whoever says yes, until she takes it back.",
		play:  (*session).rejectedRelease,
	},
	{
		title: "A pin of one's own",
		intro: "Alice is in a hurry, pins 1.3.0 and approves it. Who asks for a release is not one of those who approve it.",
		play:  (*session).ownPin,
	},
	{
		title: "Back, without asking",
		intro: "1.3.0 is slow. To go back to what has succeeded here needs nobody.",
		play:  (*session).rollbackUnasked,
	},
	{
		title: "Break the glass",
		intro: "1.4.0 has the fix, and everybody sleeps. Dave is on call and has the right to override. The history keeps who, and why.",
		play:  (*session).overriddenRelease,
	},
}

// people are the users, with their roles in the namespace.
var people = map[string][]string{
	"alice": {"edit", "rollout-controller-release-approver-role"},
	"bob":   {"view", "rollout-controller-release-approver-role"},
	"carol": {"view", "rollout-controller-release-approver-role"},
	"dave":  {"view", "rollout-controller-release-override-role"},
}

func (s *session) forgedApproval(ctx context.Context) error {
	if err := errors.Join(s.invitePeople(ctx), s.awaitPolicies(ctx)); err != nil {
		return err
	}
	s.printer.show(says(you, plain, "create RolloutGate two-people, which asks for the approvals of two people"))
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "two-people"}}
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: s.Name}, new(true)
	gate.Spec.Approvals = &v1alpha1.Approvals{Count: new(int32(2))}
	if err := s.create(ctx, gate); err != nil {
		return err
	}
	if err := s.await(ctx, shownGate(gate.Name)); err != nil {
		return err
	}
	if err := s.push(ctx, s.Release("1.1.0")); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.1.0", v1alpha1.ApprovalRequiredReason)); err != nil {
		return err
	}
	if err := s.as(ctx, "alice", "approve", s.Name, "--version", "1.1.0", "-m", "CHG-1", "-y"); err != nil {
		return err
	}
	return s.forge(ctx, "alice", "bob")
}

// forge has a user approve under the name of another one, and expects to be refused.
func (s *session) forge(ctx context.Context, user, claims string) error {
	s.printer.show(says(you, order, "as %s: create a RolloutApproval of 1.1.0 by %s", user, claims))
	config, err := s.plane.RESTConfigFor(user)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: s.plane.Client().Scheme()})
	if err != nil {
		return fmt.Errorf("connect as %s: %w", user, err)
	}
	forged := &v1alpha1.RolloutApproval{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "forged"}}
	forged.Spec.RolloutRef.Name, forged.Spec.Version, forged.Spec.Digest = s.Name, "1.1.0", "sha256:"+strings.Repeat("0", 64)
	forged.Spec.Decision, forged.Spec.By.Username = v1alpha1.DecisionApprove, claims
	err = c.Create(ctx, forged)
	if err == nil || !strings.Contains(err.Error(), "must be your own name") {
		return fmt.Errorf("the API server did not refuse a forged name: %w", err)
	}
	s.print("\n%s\n", indented(err.Error()+"\n"))
	s.passed(expectation{what: "the API server refuses the name"})
	return nil
}

func (s *session) secondPerson(ctx context.Context) error {
	if err := s.as(ctx, "alice", "approve", s.Name, "--version", "1.1.0", "-y"); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.1.0", v1alpha1.ApprovalRequiredReason)); err != nil {
		return err
	}
	if err := s.as(ctx, "bob", "get", "-n", s.Namespace, "--awaiting-approval"); err != nil {
		return err
	}
	if err := s.as(ctx, "bob", "approve", s.Name, "--version", "1.1.0", "-m", "looked at it", "-y"); err != nil {
		return err
	}
	return s.must(ctx, current(2, "1.1.0", v1alpha1.BakeSucceeded), runs(s.image("1.1.0")), outcome(v1alpha1.OutcomeApproved))
}

func (s *session) rejectedRelease(ctx context.Context) error {
	if err := s.push(ctx, s.Release("1.2.0")); err != nil {
		return err
	}
	if err := s.await(ctx, heldBack("1.2.0", v1alpha1.ApprovalRequiredReason)); err != nil {
		return err
	}
	for _, call := range [][]string{
		{"alice", "reject", s.Name, "--version", "1.2.0", "-m", "leaks memory", "-y"},
		{"bob", "approve", s.Name, "--version", "1.2.0", "-y"},
		{"carol", "approve", s.Name, "--version", "1.2.0", "-y"},
	} {
		if err := s.as(ctx, call[0], call[1:]...); err != nil {
			return err
		}
	}
	if err := s.must(ctx, heldBack("1.2.0", v1alpha1.ApprovalRejectedReason)); err != nil {
		return err
	}
	if err := s.as(ctx, "alice", "reject", s.Name, "--withdraw", "-y"); err != nil {
		return err
	}
	return s.must(ctx, current(3, "1.2.0", v1alpha1.BakeSucceeded), runs(s.image("1.2.0")), outcome(v1alpha1.OutcomeApproved))
}

func (s *session) ownPin(ctx context.Context) error {
	if err := s.push(ctx, s.Release("1.3.0")); err != nil {
		return err
	}
	if err := s.await(ctx, heldBack("1.3.0", v1alpha1.ApprovalRequiredReason)); err != nil {
		return err
	}
	for _, call := range [][]string{
		{"alice", "pin", s.Name, "1.3.0", "-m", "in a hurry", "-y"},
		{"alice", "approve", s.Name, "--version", "1.3.0", "-y"},
		{"bob", "approve", s.Name, "--version", "1.3.0", "-y"},
	} {
		if err := s.as(ctx, call[0], call[1:]...); err != nil {
			return err
		}
	}
	if err := s.stays(ctx, heldFor, runs(s.image("1.2.0"))); err != nil {
		return err
	}
	s.passed(expectation{what: "1.2.0 still runs: one of two people has approved the pin"})
	if err := s.as(ctx, "carol", "approve", s.Name, "--version", "1.3.0", "-m", "for alice", "-y"); err != nil {
		return err
	}
	return s.must(ctx, current(4, "1.3.0", v1alpha1.BakeSucceeded), runs(s.image("1.3.0")), outcome(v1alpha1.OutcomeApproved))
}

func (s *session) rollbackUnasked(ctx context.Context) error {
	if err := s.as(ctx, "alice", "rollback", s.Name, "--to", "1.2.0", "-m", "1.3.0 is slow", "-y"); err != nil {
		return err
	}
	return s.must(ctx, current(5, "1.2.0", v1alpha1.BakeSucceeded), runs(s.image("1.2.0")), outcome(v1alpha1.OutcomeNotNeeded))
}

func (s *session) overriddenRelease(ctx context.Context) error {
	if err := s.as(ctx, "alice", "unpin", s.Name, "-y"); err != nil {
		return err
	}
	if err := s.push(ctx, s.Release("1.4.0")); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.4.0", v1alpha1.ApprovalRequiredReason)); err != nil {
		return err
	}
	if err := s.as(ctx, "dave", "override", s.Name, "--version", "1.4.0", "--for", "1h", "-m", "INC-4711: the shop is down", "-y"); err != nil {
		return err
	}
	return s.must(ctx, current(6, "1.4.0", v1alpha1.BakeSucceeded), runs(s.image("1.4.0")), outcome(v1alpha1.OutcomeOverridden))
}

// invitePeople creates the users, and gives them their roles.
func (s *session) invitePeople(ctx context.Context) error {
	// The controller manager adds their rules to those of Kubernetes.
	if err := scenario.CreateFluxRoles(ctx, s.plane); err != nil {
		return err
	}
	for name, roles := range people {
		for _, role := range roles {
			if err := scenario.Grant(ctx, s.plane, name, role, s.Namespace); err != nil {
				return err
			}
		}
	}
	return nil
}

// settles is how long after the last change of the policies approvals count.
const settles = 32 * time.Second

// awaitPolicies waits until the policies have been in force for long enough.
func (s *session) awaitPolicies(ctx context.Context) error {
	all := &admissionv1.ValidatingAdmissionPolicyList{}
	if err := s.plane.Client().List(ctx, all); err != nil {
		return fmt.Errorf("list the policies: %w", err)
	}
	var last time.Time
	for i := range all.Items {
		for _, by := range all.Items[i].ManagedFields {
			if by.Time != nil && by.Time.After(last) {
				last = by.Time.Time
			}
		}
	}
	s.printer.show(says(you, plain, "wait until the policies that check names have been there for half a minute"))
	select {
	case <-time.After(time.Until(last.Add(settles))):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// as runs the command line as a user.
func (s *session) as(ctx context.Context, user string, args ...string) error {
	kubeconfig, err := s.plane.AddUser(user)
	if err != nil {
		return err
	}
	if args[1] == s.Name {
		args = append(args, "-n", s.Namespace)
	}
	s.printer.show(says(you, order, "as %s$ kubectl rollouts %s", user, strings.Join(quoted(args), " ")))
	command := exec.CommandContext(ctx, s.plugin(), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err = command.Run()
	s.print("\n%s\n", indented(output.String()))
	if strings.Contains(output.String(), "no approval counts") || strings.Contains(output.String(), "of 3 approvals") {
		err = errors.Join(err, errors.New("it does not count the approvals that the controller counts"))
	}
	if err != nil {
		return fmt.Errorf("as %s: kubectl rollouts %s: %w", user, strings.Join(args, " "), err)
	}
	return nil
}

// shownGate expects that the Rollout knows this gate.
func shownGate(name string) expectation {
	return expectation{"the Rollout knows RolloutGate " + name, func(s *sights) string {
		for _, g := range s.rollout.Status.Gates {
			if g.Name == name {
				return ""
			}
		}
		return "the Rollout does not show it"
	}}
}

// outcome expects how the newest promotion passed the gates that ask for approvals.
func outcome(wanted v1alpha1.ApprovalOutcome) expectation {
	return expectation{"its approval is " + string(wanted), func(s *sights) string {
		entry := s.rollout.Current()
		if entry == nil || entry.Approval == nil || entry.Approval.Outcome != wanted {
			return fmt.Sprintf("the entry is %+v", entry)
		}
		return ""
	}}
}

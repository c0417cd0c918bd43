// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	prodName, stagingName = "prod-eu", "staging-eu"
	// reportRepository is where staging reports to.
	reportRepository = "promotions/staging"

	// bakeElsewhere is long enough for production to see that staging bakes: it looks each
	// 10 seconds while it does not know until when.
	bakeElsewhere = 16 * time.Second
	// soakElsewhere is how long a release must have been healthy in staging, its bake
	// included.
	soakElsewhere = 26 * time.Second
)

// clustersScript is the scenario of two environments in two clusters. It is that of one
// cluster, but for what connects them.
var clustersScript = script{
	about:  "production takes what staging has proven, in another cluster",
	steps:  clusterSteps,
	ending: environmentsScript.ending,
	commands: []string{
		"kubectl rollouts pipeline shop -n demo",
		"kubectl rollouts explain shop -n demo",
		"kubectl get environment shop -n demo -o yaml",
	},
	tables: []schema.GroupVersionResource{
		v1alpha1.GroupVersion.WithResource("rollouts"), environmentsv1.GroupVersion.WithResource("environments"),
	},
	questions: [][]string{{"pipeline", "shop", "-n", "demo"}, {"history", "shop", "-n", "demo"}},
	invite:    "Let production look at the report of staging, for example:",
	command:   "kubectl annotate environment shop -n demo --overwrite reconcile.fluxcd.io/requestedAt=$(date +%s)",
	watched:   ofReleases,
	other:     environment{"demo", staging},
	elsewhere: stagingName,
	bake:      bakeElsewhere,
}

var clusterSteps = []step{
	{
		title: "Two clusters",
		intro: "Staging and production have the same objects in two clusters, and no access to each other. Staging signs what it says " +
			"of its releases, and stores this report in the registry. Production has the public key, and an Environment that says: " +
			"after staging, and after " + soakElsewhere.String() + " of health there.",
		play: (*session).firstInBothClusters,
	},
	{
		title: "Staging first",
		intro: "1.1.0 is pushed, and both see it. It bakes in staging, and production says until when: this is in the report. It " +
			"looks again right after that, and needs nobody for it.",
		play: (*session).reportedRelease,
	},
	{
		title: "A bad release stops in staging",
		intro: "The pods of 1.2.0 will never become ready. Production learns why it will not come.",
		play:  (*session).stoppedRelease,
	},
	{
		title: "A hotfix passes with its reason",
		intro: "1.2.1 is urgent, and staging is occupied with its failure. Whoever lets it past has to say why, and the history keeps it.",
		play:  (*session).hotfix,
	},
	{
		title: "Staging goes back",
		intro: "Later, staging proves 1.2.1, and goes back from it because of something that nobody had checked. At rest, production " +
			"does not ask the registry. A request makes it look, and it is told. It does nothing by itself: going back is its own decision.",
		play: (*session).withdrawnElsewhere,
	},
}

// startBoth starts both clusters at the same time.
func (d *demo) startBoth(ctx context.Context, program string) error {
	begun := time.Now()
	err := d.during("Starting two control planes, each with etcd, the Kubernetes API and Flux, and one registry", func() error {
		return d.startWithKeys(ctx, program)
	})
	d.took = time.Since(begun)
	return err
}

// startWithKeys gives staging the key that it signs with, and production the public one.
func (d *demo) startWithKeys(ctx context.Context, program string) error {
	keys, err := scenario.NewKeyPair()
	if err != nil {
		return err
	}
	if d.registry, err = controlplane.OpenRegistry(); err != nil {
		return err
	}
	var errs [2]error
	var group sync.WaitGroup
	start := func(to *cluster, err *error, name string, secret client.Object) {
		*to, *err = d.startCluster(ctx, program, controlplane.Options{Name: name, Registry: d.registry},
			[]client.Object{secret}, scenario.ReportFlags(name)...)
	}
	group.Go(func() { start(&d.otherCluster, &errs[0], stagingName, keys.Secret(scenario.Namespace)) })
	group.Go(func() {
		start(&d.cluster, &errs[1], prodName, scenario.TrustedKeys(scenario.Namespace, map[string]scenario.KeyPair{stagingName: keys}))
	})
	group.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return errors.Join(err, d.clear())
	}
	return nil
}

func (s *session) firstInBothClusters(ctx context.Context) error {
	s.costs()
	digest, err := s.plane.Registry.Push(ctx, s.Release("1.0.0"))
	if err != nil {
		return fmt.Errorf("push 1.0.0: %w", err)
	}
	reports := s.plane.Registry.Host() + "/" + reportRepository
	s.printer.show(
		says(registry, plain, "has a first artifact, %s:1.0.0 (%s)", s.Name, short(digest)),
		says(you, plain, "create the Flux objects, a HealthCheck, the Rollout and an Environment, all named %s, in both clusters", s.Name))
	before := scenario.Reporting(s.Environment("staging"), reports)
	if err := createIn(ctx, s.otherCluster.plane, append(s.objectsOf(s.bake), before)...); err != nil {
		return err
	}
	upstream := s.Elsewhere("staging", stagingName, reports)
	upstream.SoakTime = &metav1.Duration{Duration: soakElsewhere}
	prod := scenario.Reporting(s.Environment("prod", upstream), "")
	// The Environment comes right after the namespace: the Rollout never is without it.
	if err := s.create(ctx, slices.Insert(s.objects(), 1, client.Object(prod))...); err != nil {
		return err
	}
	return s.proves(ctx, 1, "1.0.0")
}

// costs shows what the clusters cost.
func (s *session) costs() {
	for _, c := range s.clusters() {
		memory, err := c.plane.Memory()
		if err != nil {
			s.note("%v", err)
			continue
		}
		s.note("   %s uses %d MiB of memory, with Flux, and %d MiB with the programs themselves.", c.plane.Name(), memory.Own>>20, memory.Resident>>20)
	}
	s.note("   Both were ready after %s.\n", s.took.Round(100*time.Millisecond))
}

func (s *session) reportedRelease(ctx context.Context) error {
	if err := s.pushToBoth(ctx, "1.1.0"); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.1.0", environmentsv1.UpstreamPendingReason), saysUntil); err != nil {
		return err
	}
	if err := s.rollouts(ctx, "pipeline", s.Name, "-n", s.Namespace); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.1.0", environmentsv1.UpstreamSoakingReason)); err != nil {
		return err
	}
	return s.proves(ctx, 2, "1.1.0")
}

// saysUntil expects that production says until when staging bakes.
var saysUntil = expectation{"production says until when it bakes in staging", func(seen *sights) string {
	said := condition(&seen.rollout, v1alpha1.GatesPassingCondition).Message
	if !strings.Contains(said, "waits for staging: it bakes there since ") || !strings.Contains(said, ", until ") {
		return fmt.Sprintf("it says %q", said)
	}
	return ""
}}

func (s *session) withdrawnElsewhere(ctx context.Context) error {
	if err := s.pinStaging(ctx, "1.2.1", "it fixes 1.2.0"); err != nil {
		return err
	}
	if err := s.pinStaging(ctx, "1.1.0", "1.2.1 loses orders"); err != nil {
		return err
	}
	if err := s.reported(ctx, "1.1.0"); err != nil {
		return err
	}
	s.printer.show(says(you, order, "%s$ kubectl annotate environment %s -n %s reconcile.fluxcd.io/requestedAt=now", place(s.plane), s.Name, s.Namespace))
	if err := s.plane.RequestReconcile(ctx, s.Environment("")); err != nil {
		return err
	}
	return s.isTold(ctx)
}

// reported waits until the report of staging says that a version has succeeded.
func (s *session) reported(ctx context.Context, version string) error {
	e := s.Environment("")
	for {
		if err := s.otherCluster.plane.Client().Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return fmt.Errorf("read the Environment of staging: %w", err)
		}
		if published(e, version) {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the report of staging is %+v: %w", e.Status.Report, context.Cause(ctx))
		}
	}
}

// published reports whether the last report is newer than the success of a version. The
// time of that is rounded up to a second, and the time of the report down.
func published(e *environmentsv1.Environment, version string) bool {
	report := e.Status.Report
	if report == nil || report.PublishedTime == nil || len(e.Status.Releases) == 0 {
		return false
	}
	newest := e.Status.Releases[0]
	return newest.Tag == version && newest.State == v1alpha1.BakeSucceeded && newest.Since != nil && !report.PublishedTime.Add(time.Second).Before(newest.Since.Time)
}

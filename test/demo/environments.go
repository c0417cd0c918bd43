// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// soakTime is how long a release must have been healthy in staging, its bake included.
const soakTime = 14 * time.Second

const stagingNamespace = "demo-staging"

// environmentsScript is the scenario of two environments in one cluster. The application
// of the session is production; staging has a namespace of its own.
var environmentsScript = script{
	about: "production takes what staging has proven, in one cluster",
	steps: environmentSteps,
	ending: []expectation{
		history("1: 1.0.0 Succeeded", "2: 1.1.0 Succeeded", "3: 1.2.1 Succeeded"),
		targetsCarry("1.2.1"), runs("registry.example/shop:1.2.1"), atRest,
	},
	commands: []string{
		"kubectl rollouts pipeline shop -n demo",
		"kubectl rollouts explain shop -n demo",
		"kubectl get environments -A",
	},
	tables: []schema.GroupVersionResource{
		v1alpha1.GroupVersion.WithResource("rollouts"), environmentsv1.GroupVersion.WithResource("environments"),
	},
	questions: [][]string{{"pipeline", "shop", "-n", "demo"}, {"history", "shop", "-n", "demo"}},
	invite:    "Release something, and watch it come to staging first, for example:",
	command:   "kubectl rollouts pin shop 1.2.1 -n " + stagingNamespace,
	watched:   ofReleases,
	other:     environment{stagingNamespace, staging},
}

var environmentSteps = []step{
	{
		title: "Two environments",
		intro: "Staging and production have the same objects, in two namespaces. An Environment in each names its Rollout, and that " +
			"of production says: after staging, and after " + soakTime.String() + " of health there. Nothing else connects them.",
		play: (*session).firstInBoth,
	},
	{
		title: "Staging first",
		intro: "1.1.0 is pushed, and both see it. It bakes in staging, and production says what it waits for and until when.",
		play:  (*session).provenRelease,
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
		intro: "Later, staging proves 1.2.1, and goes back from it because of something that nobody had checked. Production is told. " +
			"It does nothing by itself: going back is its own decision.",
		play: (*session).withdrawnRelease,
	},
}

func (s *session) firstInBoth(ctx context.Context) error {
	digest, err := s.plane.Registry.Push(ctx, s.Release("1.0.0"))
	if err != nil {
		return fmt.Errorf("push 1.0.0: %w", err)
	}
	s.printer.show(
		says(registry, plain, "has a first artifact, %s:1.0.0 (%s)", s.Name, short(digest)),
		says(you, plain, "create the Flux objects, a HealthCheck, the Rollout and an Environment, all named %s, in %s and in %s", s.Name, stagingNamespace, s.Namespace))
	first := session{demo: s.demo, App: s.otherApp()}
	before := first.Environment("staging")
	before.Spec.AccessFrom = &v1alpha1.AccessFrom{NamespaceSelectors: []v1alpha1.NamespaceSelector{{
		MatchLabels: map[string]string{corev1.LabelMetadataName: s.Namespace}}}}
	prod := s.Environment("prod", environmentsv1.Upstream{
		Environment: "staging", Namespace: stagingNamespace, SoakTime: &metav1.Duration{Duration: soakTime}})
	objects := append(first.objects(), before, s.NamespaceObject(), prod)
	for _, o := range s.objects() {
		if _, isNamespace := o.(*corev1.Namespace); !isNamespace {
			objects = append(objects, o)
		}
	}
	if err := s.create(ctx, objects...); err != nil {
		return err
	}
	return s.proves(ctx, 1, "1.0.0")
}

// pushToBoth pushes a release, which both environments find.
func (s *session) pushToBoth(ctx context.Context, version string) error {
	if err := s.push(ctx, s.Release(version)); err != nil {
		return err
	}
	return s.scanOther(ctx)
}

// stagingIs waits until staging has brought a version to a state.
func (s *session) stagingIs(ctx context.Context, version string, state v1alpha1.BakeStatus) error {
	return s.beyond.await(ctx, expectation{fmt.Sprintf("%s is %s in staging", version, state), func(seen *sights) string {
		entry := seen.rollout.Current()
		switch {
		case entry == nil:
			return "staging has promoted nothing"
		case entry.Version.Tag == version && entry.State() == state:
			return ""
		}
		return fmt.Sprintf("%s is %s there", entry.Version.Tag, entry.State())
	}})
}

func (s *session) provenRelease(ctx context.Context) error {
	if err := s.pushToBoth(ctx, "1.1.0"); err != nil {
		return err
	}
	if err := s.stagingIs(ctx, "1.1.0", v1alpha1.BakeInProgress); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.1.0", environmentsv1.UpstreamPendingReason)); err != nil {
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

func (s *session) stoppedRelease(ctx context.Context) error {
	if err := s.otherCluster.plane.BreakVersion(ctx, "1.2.0"); err != nil {
		return err
	}
	if err := s.pushToBoth(ctx, "1.2.0"); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.2.0", environmentsv1.UpstreamFailedReason), current(2, "1.1.0", v1alpha1.BakeSucceeded)); err != nil {
		return err
	}
	return s.rollouts(ctx, "explain", s.Name, "-n", s.Namespace)
}

func (s *session) hotfix(ctx context.Context) error {
	if err := s.pushToBoth(ctx, "1.2.1"); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.2.1", environmentsv1.UpstreamPendingReason)); err != nil {
		return err
	}
	if err := s.rollouts(ctx, "promote", s.Name, "--version", "1.2.1", "--past-gates", "-m", "INC-4711", "-n", s.Namespace, "-y"); err != nil {
		return err
	}
	if err := s.proves(ctx, 3, "1.2.1"); err != nil {
		return err
	}
	return s.must(ctx, expectation{"the history has the reason", func(seen *sights) string {
		if message := reported(seen.rollout.Current().Message); !strings.Contains(message, "INC-4711") {
			return message
		}
		return ""
	}})
}

func (s *session) withdrawnRelease(ctx context.Context) error {
	if err := s.pinStaging(ctx, "1.2.1", "it fixes 1.2.0"); err != nil {
		return err
	}
	if err := s.pinStaging(ctx, "1.1.0", "1.2.1 loses orders"); err != nil {
		return err
	}
	return s.isTold(ctx)
}

// pinStaging pins staging to a version, which succeeds there.
func (s *session) pinStaging(ctx context.Context, version, why string) error {
	if err := s.rolloutsIn(ctx, s.otherCluster.plane, "pin", s.Name, version, "-n", s.other.namespace, "-m", why, "-y"); err != nil {
		return err
	}
	return s.stagingIs(ctx, version, v1alpha1.BakeSucceeded)
}

// isTold waits until production knows that staging went back.
func (s *session) isTold(ctx context.Context) error {
	told := expectation{"production is told that staging went back", func(seen *sights) string {
		c := apimeta.FindStatusCondition(seen.rollout.Status.Conditions, environmentsv1.UpstreamWithdrewCondition)
		if c == nil || !strings.Contains(c.Message, "which went back to 1.1.0") {
			return fmt.Sprintf("it is told %+v", c)
		}
		return ""
	}}
	return s.must(ctx, told, current(3, "1.2.1", v1alpha1.BakeSucceeded))
}

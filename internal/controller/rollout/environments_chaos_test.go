// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// lateCaches answers reads of some kinds as the API server was when the kind was last
// caught up with, like caches whose watches are late. Each kind is late by itself.
type lateCaches struct {
	seen map[string]client.ObjectList // by the type of the list
}

// lateKinds returns a list of each kind whose cache is late.
func lateKinds() []client.ObjectList {
	return []client.ObjectList{
		&v1alpha1.RolloutList{}, &environmentsv1.EnvironmentList{}, &v1alpha1.HealthCheckList{},
		&imagev1.ImagePolicyList{}, &sourcev1.OCIRepositoryList{}, &kustomizev1.KustomizationList{},
	}
}

// catchUp reads what there is of a kind.
func (l *lateCaches) catchUp(s *testEnv, kind client.ObjectList) {
	s.Expect(s.List(s.Ctx, kind, client.InNamespace(s.Namespace))).To(Succeed())
	l.seen[fmt.Sprintf("%T", kind)] = kind
}

// through returns a client that reads like the late caches, without field indexes, and
// writes at once.
func (l *lateCaches) through(live client.WithWatch) client.WithWatch {
	return interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			kind, late := l.seen[fmt.Sprintf("%TList", o)]
			if !late {
				return c.Get(ctx, key, o, opts...)
			}
			return getFrom(kind, key, o)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			kind, late := l.seen[fmt.Sprintf("%T", list)]
			if !late {
				return c.List(ctx, list, opts...)
			}
			return listFrom(kind, list, (&client.ListOptions{}).ApplyOptions(opts))
		},
	})
}

func getFrom(kind client.ObjectList, key client.ObjectKey, o client.Object) error {
	all, err := apimeta.ExtractList(kind)
	for _, item := range all {
		if client.ObjectKeyFromObject(item.(client.Object)) == key {
			reflect.ValueOf(o).Elem().Set(reflect.ValueOf(item.DeepCopyObject()).Elem())
			return err
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func listFrom(kind, list client.ObjectList, options *client.ListOptions) error {
	all, err := apimeta.ExtractList(kind.DeepCopyObject())
	if err != nil {
		return err
	}
	return apimeta.SetList(list, slices.DeleteFunc(all, func(o runtime.Object) bool {
		object := o.(client.Object)
		return options.Namespace != "" && object.GetNamespace() != options.Namespace ||
			options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(object.GetLabels()))
	}))
}

// chaos is a chain in which everything happens in random order. Nobody chooses a release
// for production: all of its promotions are automatic.
type chaos struct {
	*chain
	random   *rand.Rand
	released map[string]int // how many releases each ImagePolicy has named
	said     []string       // what has happened
	promoted int            // to production
	// staging has all entries that its history ever had, newest first.
	staging []v1alpha1.DeploymentHistoryEntry
}

func openChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	c := &chaos{chain: openChain(t), random: rand.New(rand.NewPCG(seed, 0)), released: map[string]int{}}
	c.late = &lateCaches{seen: map[string]client.ObjectList{}}
	c.start()
	c.catchUp()
	return c
}

func (c *chaos) catchUp() {
	for _, kind := range lateKinds() {
		c.late.catchUp(c.testEnv, kind)
	}
}

// happens lets one thing happen, or, now and then, most of what brings a release further.
// Otherwise hardly any would come to production.
func (c *chaos) happens() {
	switch n := c.random.IntN(80); {
	case n < 40:
		c.step(c.random.IntN(len(c.steps)))
	case n < 55:
		all := lateKinds()
		c.late.catchUp(c.testEnv, all[c.random.IntN(len(all))])
	case n < 68:
		c.goesOn()
	case n < 72:
		c.races()
	default:
		c.disturbs(n)
	}
}

// goesOn brings releases further. Any part of it may be left out.
func (c *chaos) goesOn() {
	maybe := func(do func()) {
		if c.random.IntN(8) > 0 {
			do()
		}
	}
	maybe(c.fluxApplies)
	if c.random.IntN(4) == 0 {
		c.pin("staging", nil)
	}
	maybe(func() { c.checksSay(v1alpha1.HealthStatusHealthy) })
	c.Pass(time.Duration(c.random.IntN(60)) * time.Second)
	for _, i := range c.random.Perm(len(c.steps)) {
		for _, kind := range lateKinds() {
			maybe(func() { c.late.catchUp(c.testEnv, kind) })
		}
		maybe(func() { c.step(i) })
	}
}

// races makes staging go back from a release at the moment when production learns that
// there is such a release. The process has not seen what it has written of staging.
func (c *chaos) races() {
	staging, production := c.rollout("staging"), c.rollout("shop").Current()
	current := staging.Current()
	if staging.Spec.WantedVersion != nil || current.State() != v1alpha1.BakeSucceeded || c.Clock.Now().Before(current.BakeStartTime.Add(soak)) ||
		production != nil && production.Version.Tag == current.Version.Tag {
		return
	}
	c.goesBack()
	c.late.catchUp(c.testEnv, &v1alpha1.RolloutList{})
	c.step(stepOfStaging)
	for c.released["shop"] < c.released["staging"] {
		c.next("shop")
	}
	c.late.catchUp(c.testEnv, &imagev1.ImagePolicyList{})
	c.step(stepOfProduction)
}

// disturbs lets one of the rarer things happen.
func (c *chaos) disturbs(n int) {
	switch n {
	case 72, 73, 74:
		c.next("staging")
	case 75:
		c.next("shop")
	case 76:
		c.checksSay(v1alpha1.HealthStatusUnhealthy)
	case 77:
		c.goesBack()
	case 78:
		c.pin("staging", nil)
		c.unblock()
	default:
		c.start()
	}
}

// unblock lets staging go on after a release that has failed.
func (c *chaos) unblock() {
	c.Change(c.rollout("staging"), func(o client.Object) {
		o.SetAnnotations(map[string]string{v1alpha1.UnblockFailedAnnotation: "true"})
	})
}

// The steps of the two Rollouts.
const stepOfStaging, stepOfProduction = 0, 1

// step lets the process act on one object, and checks a promotion to production.
func (c *chaos) step(i int) {
	before := c.history("shop")
	if history := c.rollout("staging").Status.History; len(history) > 0 {
		c.note(history)
	}
	_, _ = c.steps[i]() // a late cache may make it fail
	after := c.history("shop")
	if len(after) == 0 || len(before) > 0 && before[0].ID == after[0].ID {
		return
	}
	c.promoted++
	entry := c.rollout("shop").Status.History[0]
	c.said = append(c.said, fmt.Sprintf("production takes %s; staging has %v", entry.Version.Tag, c.history("staging")))
	c.Expect(entry.TriggeredBy.Kind).To(Equal(v1alpha1.TriggeredBySystem))
	c.proven(*entry.Version.Digest)
}

// note keeps the entries of staging. Its Rollout keeps only the last ones, and a release
// stays proven when its entry has gone.
func (c *chaos) note(history []v1alpha1.DeploymentHistoryEntry) {
	oldest := *history[len(history)-1].ID
	older := slices.IndexFunc(c.staging, func(e v1alpha1.DeploymentHistoryEntry) bool { return *e.ID < oldest })
	if older < 0 {
		older = len(c.staging)
	}
	c.staging = slices.Concat(history, c.staging[older:])
}

// proven checks that staging had proven a release at that moment, whatever the caches of
// the process said. This is all that is asked of it, and how that is known is not its
// concern: it reads only what the history of the Rollout said.
func (c *chaos) proven(digest string) {
	at := slices.IndexFunc(c.staging, func(e v1alpha1.DeploymentHistoryEntry) bool {
		return *e.Version.Digest == digest && e.State() != v1alpha1.BakeCancelled
	})
	c.Expect(at).To(BeNumerically(">=", 0), "staging never had it: %v", c.said)
	entry := c.staging[at]
	c.Expect(entry.State()).To(Equal(v1alpha1.BakeSucceeded), "%v", c.said)
	c.Expect(c.longestSoak(at)).To(BeNumerically(">=", soak), "its soak was too short: %v", c.said)
	for _, later := range c.staging[:at] {
		isBack := later.State() != v1alpha1.BakeCancelled && strings.Compare(later.Version.Tag, entry.Version.Tag) < 0
		c.Expect(isBack).To(BeFalse(), "staging went back from it to %s: %v", later.Version.Tag, c.said)
	}
}

// longestSoak returns how long staging kept a release at most, from the start of a bake until
// another release came. It counts from the last failure of that release.
func (c *chaos) longestSoak(newest int) time.Duration {
	var longest time.Duration
	until := c.Clock.Now()
	if newest > 0 {
		until = c.staging[newest-1].Timestamp.Time
	}
	for _, e := range c.staging[newest:] {
		isIt := *e.Version.Digest == *c.staging[newest].Version.Digest
		if isIt && e.State() == v1alpha1.BakeFailed {
			break
		}
		if isIt && e.State() == v1alpha1.BakeSucceeded {
			longest = max(longest, until.Sub(e.BakeStartTime.Time))
		}
		until = e.Timestamp.Time
	}
	return longest
}

// next makes an ImagePolicy name its next release.
func (c *chaos) next(policy string) {
	c.publish(policy, fmt.Sprintf("1.%d.0", 100+c.released[policy])) // each has the same length
	c.released[policy]++
}

// goesBack pins staging to an older release, or ends that.
func (c *chaos) goesBack() {
	var tag *string
	if rollout := c.rollout("staging"); rollout.Spec.WantedVersion == nil && len(rollout.Status.History) > 1 {
		tag = &rollout.Status.History[1].Version.Tag
	}
	c.pin("staging", tag)
}

// settles lets everyone do what is left, without delay. A release that comes last must
// reach production.
func (c *chaos) settles() {
	c.pin("staging", nil)
	for c.released["staging"] <= c.released["shop"] {
		c.next("staging")
	}
	for c.released["shop"] < c.released["staging"] {
		c.next("shop")
	}
	c.unblock()
	for range 40 {
		c.checksSay(v1alpha1.HealthStatusHealthy)
		for i := range c.steps {
			c.catchUp()
			c.step(i)
		}
		c.fluxApplies()
		c.Pass(30 * time.Second)
		if staging, production := c.rollout("staging").Current(), c.rollout("shop").Current(); production != nil &&
			staging.Version.Tag == production.Version.Tag && production.State() == v1alpha1.BakeSucceeded {
			return
		}
	}
	c.Expect(errors.New("the last release did not come to production")).NotTo(HaveOccurred(), "%v; staging has %v, %v",
		c.said, c.history("staging"), c.rollout("shop").Status.Conditions)
}

// TestProductionNeverTakesWhatStagingHasNotProven: whatever the order in which things
// happen, and however late the caches are.
func TestProductionNeverTakesWhatStagingHasNotProven(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("repeat it with -args -seed=%d", *seed)
	worlds, things := 8, 500
	if testing.Short() {
		worlds, things = 2, 200
	}
	for world := range worlds {
		t.Run(fmt.Sprint("world ", world), func(t *testing.T) {
			c := openChaos(t, *seed+uint64(world))
			for range things {
				c.happens()
			}
			during := c.promoted
			c.settles()
			t.Logf("%d promotions to production in disorder, %d in the end", during, c.promoted-during)
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/controller/environment"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// soak is how long a release must be healthy in staging before it may come to production.
const soak = 2 * time.Minute

// chain is a test env with staging and production, and both reconcilers of one process.
// Each environment has an ImagePolicy and targets of its own. The Rollout shop is that of
// production.
type chain struct {
	*testEnv
	recorder *environment.Reconciler
	// late, if set, is between the process and what it reads.
	late *lateCaches
	// steps of the process, one for each object.
	steps []func() (ctrl.Result, error)
}

func openChain(t *testing.T) *chain {
	t.Helper()
	c := &chain{testEnv: open(t)}
	for _, name := range []string{"staging", "shop"} {
		c.Add(
			fixture.MakeScan(name).Found().Obj(), fixture.MakePolicy(name).Obj(),
			fixture.MakeRepository(name).DrivenBy(name).Tag("0.0.1").Obj(),
			fixture.MakeKustomization(name).DrivenBy(name, "VERSION").Obj(),
		)
	}
	c.Add(
		fixture.MakeHealthCheck("smoke").Healthy().Obj(),
		fixture.MakeRollout("staging").BakeTime(time.Minute).SelectAllChecks().Obj(),
		fixture.MakeRollout("shop").Environment("prod").Obj(),
		fixture.MakeEnvironment("staging").Obj(),
		fixture.MakeEnvironment("prod").Of("shop").After("staging", fixture.Soak(soak)).Obj(),
	)
	c.lawless = true // the law of the conditions has tests of its own
	c.start()
	return c
}

// start replaces the process with one that remembers nothing.
func (c *chain) start() {
	c.restart()
	if c.late != nil {
		c.reconciler.Client = c.Wire.Through(c.indexes().Cached(c.late.through(c.WithWatch)))
	}
	c.recorder = &environment.Reconciler{Client: c.reconciler.Client, Events: c.Events, Now: c.Clock.Now}
	c.steps = nil
	for _, name := range []string{"staging", "shop"} {
		c.steps = append(c.steps, func() (ctrl.Result, error) { return c.try(name) })
	}
	for _, name := range []string{"staging", "prod"} {
		c.steps = append(c.steps, func() (ctrl.Result, error) {
			return c.recorder.Reconcile(c.Ctx, ctrl.Request{NamespacedName: c.Key(name)})
		})
	}
}

// publish makes an ImagePolicy name a release with its digest.
func (c *chain) publish(policy, tag string) {
	c.release(policy, tag)
	c.ChangeStatus(fixture.MakePolicy(policy).Obj(), func(o client.Object) {
		o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = imageOf(tag)
	})
}

// round lets everyone act once, and returns when the process wants to act again. A process
// that has died is replaced.
func (c *chain) round() time.Duration {
	pause := time.Minute
	for i := range c.steps {
		result, _ := c.steps[i]()
		if result.RequeueAfter > 0 {
			pause = min(pause, result.RequeueAfter)
		}
		if c.Wire.Dead() {
			c.Wire = &fixture.Wire{}
			c.start()
			pause = time.Second
		}
	}
	c.fluxApplies()
	if c.check("smoke").Status.Status == v1alpha1.HealthStatusPending {
		c.checksSay(v1alpha1.HealthStatusHealthy)
	}
	return max(pause, time.Second)
}

// openChainWithRelease opens a chain in which 1.0.0 has come to production.
func openChainWithRelease(t *testing.T) *chain {
	t.Helper()
	c := openChain(t)
	c.play("1.0.0")
	c.Wire.Forget()
	return c
}

// play releases a version, and ends when production has it and there is nothing left to
// do.
func (c *chain) play(tag string) {
	c.publish("shop", tag)
	c.publish("staging", tag)
	c.comesThrough(tag)
}

func (c *chain) comesThrough(tag string) {
	for range 60 {
		writes := len(c.Wire.Writes())
		pause := c.round()
		current := c.rollout("shop").Current()
		if current != nil && current.Version.Tag == tag && current.State() == v1alpha1.BakeSucceeded && len(c.Wire.Writes()) == writes {
			return
		}
		c.Pass(pause)
	}
	c.Expect(errors.New("the release did not come to production")).NotTo(HaveOccurred(),
		"staging %v, production %v: %v", c.history("staging"), c.history("shop"), c.rollout("shop").Status.Conditions)
}

// passed is what must not depend on crashes.
type passed struct {
	History  map[string][]promoted
	Releases map[string][]string // that Environments say, as "tag state evidence current"
	Targets  map[string]int64    // how often their specs were written, by kind and name
}

func (c *chain) passed() passed {
	p := passed{History: map[string][]promoted{}, Releases: map[string][]string{}, Targets: map[string]int64{}}
	for rollout, name := range map[string]string{"staging": "staging", "shop": "prod"} {
		p.History[rollout] = c.history(rollout)
		e := &environmentsv1.Environment{}
		c.Expect(c.Get(c.Ctx, c.Key(name), e)).To(Succeed())
		for _, r := range e.Status.Releases {
			p.Releases[name] = append(p.Releases[name], fmt.Sprint(r.Tag, " ", r.State, " ", r.Evidence, " ", r.Current, r.Withdrawn, r.Unhealthy))
		}
		for kind, target := range map[string]client.Object{"OCIRepository ": &sourcev1.OCIRepository{}, "Kustomization ": &kustomizev1.Kustomization{}} {
			c.Expect(c.Get(c.Ctx, c.Key(rollout), target)).To(Succeed())
			p.Targets[kind+rollout] = target.GetGeneration()
		}
	}
	return p
}

// soaked checks that each release was healthy in staging for long enough before it came
// to production.
func (c *chain) soaked() {
	staging := c.rollout("staging").Status.History
	for _, entry := range c.rollout("shop").Status.History {
		at := slices.IndexFunc(staging, func(e v1alpha1.DeploymentHistoryEntry) bool { return e.Version.Tag == entry.Version.Tag })
		c.Expect(at).To(BeNumerically(">=", 0))
		c.Expect(entry.Timestamp.Time).To(BeTemporally(">=", staging[at].BakeStartTime.Add(soak)), entry.Version.Tag)
	}
}

// TestControllerMayDieWhileAReleaseGoesToProduction crashes the process after each of its
// writes, and before the first. It lets each write of an Environment fail once as well,
// before and after it was carried out.
func TestControllerMayDieWhileAReleaseGoesToProduction(t *testing.T) {
	clean := openChainWithRelease(t)
	clean.play("1.1.0")
	clean.soaked()
	want, writes := clean.passed(), clean.Wire.Writes()
	clean.Expect(want.History["shop"]).To(Equal([]promoted{
		{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
	clean.Expect(want.Releases["prod"]).To(Equal([]string{"1.1.0 Succeeded Applied true", "1.0.0 Succeeded Applied false"}))

	dead := fixture.Fault{Err: fixture.ErrDead, Lost: true, Fatal: true}
	faults := map[string]fixture.Fault{}
	for n, write := range writes {
		name := fmt.Sprintf("write %d, %s", n+1, write)
		faults[name+": dies after it"] = dead
		if strings.HasPrefix(write, "patch Environment/status") {
			faults[name+": fails before it"] = fixture.Fault{Err: apierrors.NewTimeoutError("injected", 1)}
			faults[name+": fails after it"] = fixture.Fault{Err: apierrors.NewTimeoutError("injected", 1), Lost: true}
		}
	}
	faults["write 1: dies before it"] = fixture.Fault{Err: fixture.ErrDead, Fatal: true}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			var at int
			_, _ = fmt.Sscanf(name, "write %d", &at)
			c := openChainWithRelease(t)
			c.Wire.Fail = func(n int, _ string, _ client.Object) fixture.Fault {
				if n == at {
					return fault
				}
				return fixture.Fault{}
			}
			c.play("1.1.0")
			c.Expect(c.passed()).To(Equal(want))
			c.soaked()
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// goesAtOnce shows that all Deployments go at once after the commands of the runbook, also
// when Flux applies the way back, and one at a time again afterwards.
func (f *fleet) goesAtOnce() {
	f.Fleet.Members = members
	f.deploy(false)
	f.stopsHalfWay("1.7.0", func(version string) { f.release(version, nil) })

	f.follow("runbook.md", "that would be the bad release otherwise")
	f.awaitPaused(0)
	f.Pin("1.0.0")
	f.awaitRolledOut("1.0.0")
	f.awaitPaused(0)
	if c := f.coordination(); len(c.Status.Deployments) > 0 {
		f.T.Errorf("after Flux has applied the release, the coordination selects %v", c.Status.Deployments)
	}

	f.follow("runbook.md", "When all are rolled out")
	kustomization := f.Kustomization()
	f.Change(kustomization, func() {
		metav1.SetMetaDataAnnotation(&kustomization.ObjectMeta, v1alpha1.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano))
	})
	env.Eventually(f.T, "Flux restoring the selector", func() (bool, string) {
		c := f.coordination()
		return len(c.Status.Deployments) == len(members), fmt.Sprint(c.Spec.LabelSelector)
	})
	for _, name := range members {
		f.giveTo(name, "1.7.0")
	}
	f.awaitPaused(len(members) - 1)
}

// goesByHalves shows that two of four Deployments go at a time after the commands of the
// runbook.
func (f *fleet) goesByHalves() {
	if err := f.Plane.SlowVersion(f.T.Context(), "1.8.0", time.Second); err != nil {
		f.T.Fatal(err)
	}
	f.Fleet.Members = []string{"basket", "orders", "search", "web"}
	f.deploy(false)
	f.follow("runbook.md", "that a failure still stops the others")
	seen := newRecord(f.T, f.Plane, f.Namespace)
	f.release("1.8.0", nil)
	f.AwaitState("1.8.0", v1alpha1.BakeSucceeded)
	f.awaitRolledOut("1.8.0")

	o := observe(seen.Sights())
	if len(o.broken) > 0 {
		f.T.Errorf("promises were broken: %q", o.broken)
	}
	isRelease := func(what string) bool {
		return strings.HasPrefix(what, "released ") || strings.HasPrefix(what, "finished ")
	}
	order := slices.DeleteFunc(o.order, func(what string) bool { return !isRelease(what) })
	if want := []string{"released basket", "released orders"}; !slices.Equal(order[:min(2, len(order))], want) {
		f.T.Errorf("first comes %q, want %q", order, want)
	}
}

// awaitPaused waits until so many Deployments are paused.
func (f *fleet) awaitPaused(want int) {
	f.T.Helper()
	env.Eventually(f.T, fmt.Sprintf("%d Deployments that are paused", want), func() (bool, string) {
		got := 0
		for _, name := range members {
			d := f.deployment(name)
			if f.Read(d); d.Spec.Paused {
				got++
			}
		}
		return got == want, fmt.Sprint(got)
	})
}

// SPDX-License-Identifier: Apache-2.0

package crashpoints

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/crashscenario"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// run plays the scenario of the crash tests in a world of its own.
type run struct {
	*world
	*crashscenario.Scenario
}

func open(t *testing.T, of *crashscenario.Scenario) *run {
	t.Helper()
	return &run{world: newWorld(t, of.Objects()...), Scenario: of}
}

// play runs all parts until the scenario is over, and the controller was killed if the
// test wants that. Then it waits until the controller is at rest.
func (r *run) play(mayEnd func() bool) {
	r.t.Helper()
	for begin := time.Now(); !r.Over() || !mayEnd(); time.Sleep(pace) {
		if time.Since(begin) > patience {
			r.t.Fatalf("the scenario did not end; history %q, writes %q", env.History(r.rollout()), r.wire.Writes())
		}
		r.revive()
		r.fluxActs()
		if now, ok := r.look(); ok {
			r.Act(r, now)
		}
	}
	r.revive()
	if !r.awaitRest() {
		r.t.Errorf("the controller never comes to rest: %q", r.wire.Log())
	}
}

// look returns a recent state.
func (r *run) look() (now crashscenario.State, ok bool) {
	rollout, repository, kustomization := objects()
	if r.get(rollout) && r.get(repository) && r.get(kustomization) {
		return crashscenario.See(rollout, repository, kustomization, nil), true
	}
	return now, false
}

func objects() (*v1alpha1.Rollout, *sourcev1.OCIRepository, *kustomizev1.Kustomization) {
	rollout, repository, kustomization := &v1alpha1.Rollout{}, &sourcev1.OCIRepository{}, &kustomizev1.Kustomization{}
	rollout.Name, repository.Name, kustomization.Name = crashscenario.App, crashscenario.App, crashscenario.App
	return rollout, repository, kustomization
}

// ChangeRollout changes the Rollout as a user does.
func (r *run) ChangeRollout(change func(*v1alpha1.Rollout)) {
	r.t.Helper()
	rollout := r.rollout()
	before := rollout.DeepCopy()
	change(rollout)
	r.must(shared.Client().Patch(r.t.Context(), rollout, client.MergeFrom(before), client.FieldOwner("user")))
}

func (r *run) rollout() *v1alpha1.Rollout {
	r.t.Helper()
	rollout, _, _ := objects()
	r.read(rollout)
	return rollout
}

// outcome must be the same, independent of how the controller was killed.
type outcome struct {
	crashscenario.State
	// Status without its times, its uids and the namespace.
	Status string
}

// ofOneWorld matches times and uids in the format of the API.
var ofOneWorld = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func (r *run) outcome() outcome {
	r.t.Helper()
	rollout, repository, kustomization := objects()
	r.read(rollout)
	r.read(repository)
	r.read(kustomization)
	status, err := json.MarshalIndent(rollout.Status, "", " ")
	r.must(err)
	quarantines := &v1alpha1.ReleaseQuarantineList{}
	r.must(shared.Client().List(r.t.Context(), quarantines, client.InNamespace(r.namespace)))
	return outcome{crashscenario.See(rollout, repository, kustomization, quarantines.Items), r.timeless(string(status))}
}

// timeless returns a text without the parts that differ between worlds.
func (r *run) timeless(text string) string {
	return ofOneWorld.ReplaceAllString(strings.ReplaceAll(text, r.namespace, "world"), "…")
}

// events counts the events that the controller emitted.
func (r *run) events() map[string]int {
	r.t.Helper()
	list := &corev1.EventList{}
	r.must(shared.Client().List(r.t.Context(), list, client.InNamespace(r.namespace)))
	reported := map[string]int{}
	for i := range list.Items {
		e := &list.Items[i]
		reported[r.timeless(fmt.Sprintf("%s %s: %s", e.InvolvedObject.Kind, e.Reason, e.Message))] += int(max(e.Count, 1))
	}
	return reported
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

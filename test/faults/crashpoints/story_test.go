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
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	// app is the name of everything in a world.
	app = "shop"
	// slow is a release that Flux does not apply at first, so it is still Deploying when
	// a user goes back to old.
	slow, old = "1.1.0", "0.9.0"
)

// story consists of four promotions to two targets, with a bake and a HealthCheck. The
// third is a pin that cancels the second, and the fourth is forced.
type story struct {
	*world
	chapter int
}

func openStory(t *testing.T) *story {
	t.Helper()
	scan := fixture.MakeScan(app).Image("127.0.0.1:1/shop").Found("1.0.0") // no registry answers
	s := &story{world: newWorld(t,
		scan.Obj(),
		fixture.MakePolicy(app).Latest("1.0.0").Obj(),
		fixture.MakeRepository(app).DrivenBy(app).Tag("0.0.1").Obj(),
		fixture.MakeKustomization(app).DrivenBy(app, "VERSION").Substitute("TIER", "gold").Obj(),
		fixture.MakeHealthCheck(app).Healthy().Obj(),
		fixture.MakeRollout(app).BakeTime(time.Second).DeployTimeout(time.Hour).SelectAllChecks().Obj(),
	)}
	s.slow = slow
	return s
}

// pages contains the states that the history must reach, and the next action after each.
var pages = []struct {
	until string
	then  func(*story)
}{
	{"1 1.0.0 Succeeded", func(s *story) { s.release(slow) }},
	{"2 1.1.0 Deploying", func(s *story) { s.pin(old) }},
	{"3 0.9.0 Succeeded", func(s *story) { s.force(slow); s.slow = "" }},
	{"4 1.1.0 Succeeded", func(*story) {}},
}

// tell runs all parts until the story is over, and the controller was killed if the test
// wants that. Then it waits until the controller is at rest.
func (s *story) tell(mayEnd func() bool) {
	s.t.Helper()
	for begin := time.Now(); s.chapter < len(pages) || !mayEnd(); time.Sleep(pace) {
		if time.Since(begin) > patience {
			s.t.Fatalf("the story did not end; history %q, writes %q", env.History(s.rollout()), s.wire.Writes())
		}
		s.revive()
		s.fluxActs()
		if s.chapter < len(pages) {
			s.turnPage()
		}
	}
	s.revive()
	if !s.awaitRest() {
		s.t.Errorf("the controller never comes to rest: %q", s.wire.Log())
	}
}

func (s *story) turnPage() {
	s.t.Helper()
	rollout := &v1alpha1.Rollout{}
	rollout.Name = app
	if !s.look(rollout) {
		return
	}
	history, page := env.History(rollout), pages[s.chapter]
	if len(history) == 0 || history[0] != page.until || !s.followed(rollout.Current().Version.Tag) {
		return
	}
	page.then(s)
	s.chapter++
}

// followed reports whether the targets are set to the release.
func (s *story) followed(tag string) bool {
	carried, _ := s.targets()
	return carried["tag"] == tag && carried["VERSION"] == tag
}

func (s *story) pin(tag string) {
	rollout := s.rollout()
	s.change(rollout, func() { rollout.Spec.WantedVersion = &tag })
}

// force unpins the Rollout and requests a release once.
func (s *story) force(tag string) {
	rollout := s.rollout()
	s.change(rollout, func() {
		rollout.Spec.WantedVersion = nil
		rollout.Annotations = map[string]string{v1alpha1.ForceDeployAnnotation: tag, v1alpha1.DeployUserAnnotation: "ann"}
	})
}

func (s *story) rollout() *v1alpha1.Rollout {
	s.t.Helper()
	rollout := &v1alpha1.Rollout{}
	rollout.Name = app
	s.read(rollout)
	return rollout
}

// targets returns the versions in the targets, and how often their specs were written.
func (s *story) targets() (carried map[string]string, generations map[string]int64) {
	repository, kustomization := &sourcev1.OCIRepository{}, &kustomizev1.Kustomization{}
	repository.Name, kustomization.Name = app, app
	if !s.look(repository) || !s.look(kustomization) {
		return nil, nil
	}
	carried = map[string]string{"tag": repository.Spec.Reference.Tag}
	if kustomization.Spec.PostBuild != nil {
		for variable, value := range kustomization.Spec.PostBuild.Substitute {
			carried[variable] = value
		}
	}
	return carried, map[string]int64{"OCIRepository": repository.Generation, "Kustomization": kustomization.Generation}
}

// outcome must be the same, independent of how the controller was killed.
type outcome struct {
	History     []string
	Carried     map[string]string
	Generations map[string]int64
	Annotations map[string]string
	// Status without its times and the namespace.
	Status string
}

// times matches times in the format of the API.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

func (s *story) outcome() outcome {
	s.t.Helper()
	rollout := s.rollout()
	status, err := json.MarshalIndent(rollout.Status, "", " ")
	s.must(err)
	carried, generations := s.targets()
	return outcome{
		History: history(rollout), Carried: carried, Generations: generations,
		Annotations: rollout.Annotations, Status: s.timeless(string(status)),
	}
}

// timeless returns a text without the parts that differ between worlds.
func (s *story) timeless(text string) string {
	return times.ReplaceAllString(strings.ReplaceAll(text, s.namespace, "world"), "…")
}

// history returns the promotions and their authors.
func history(rollout *v1alpha1.Rollout) []string {
	reported := env.History(rollout)
	for i := range reported {
		by := rollout.Status.History[i].TriggeredBy
		reported[i] += fmt.Sprintf(" %s %s", by.Kind, by.Name)
	}
	return reported
}

// events counts the events that the controller emitted.
func (s *story) events() map[string]int {
	s.t.Helper()
	list := &corev1.EventList{}
	s.must(shared.Client().List(s.t.Context(), list, client.InNamespace(s.namespace)))
	reported := map[string]int{}
	for i := range list.Items {
		e := &list.Items[i]
		reported[s.timeless(fmt.Sprintf("%s %s: %s", e.InvolvedObject.Kind, e.Reason, e.Message))] += int(max(e.Count, 1))
	}
	return reported
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

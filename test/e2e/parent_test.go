// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxkustomize "github.com/fluxcd/pkg/apis/kustomize"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// parent is the Kustomization fleet. Every five seconds it applies the OCIRepository shop
// of the Rollout shop from an artifact that stands for Git.
type parent struct {
	*env.Env
	fleet *env.Env
	names string // its name in messages
}

// manifest returns the manifest of the OCIRepository shop, with additions to its
// annotations and to its spec.
func (p parent) manifest(annotations, spec string) string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: shop
  annotations:
    rollout.kuberik.com/rollout: shop
%s
spec:
  url: oci://%s/%s
  interval: 1h
  insecure: true
%s
`, annotations, plane.Registry.Host(), p.Repository, spec)
}

const (
	spelled      = "  ref:\n    tag: 1.0.0"
	ifNotPresent = "    kustomize.toolkit.fluxcd.io/ssa: IfNotPresent"
)

// commit puts a manifest into the artifact that stands for Git, and requests that it is
// applied.
func (p parent) commit(manifest string) {
	p.T.Helper()
	p.fleet.Push(controlplane.Artifact{
		Repository: p.fleet.Repository, Tag: "main", Files: map[string]string{"shop.yaml": manifest},
	})
	source := p.fleet.OCIRepository("")
	p.Change(source, func() {
		source.Annotations = map[string]string{v1alpha1.ReconcileRequestAnnotation: time.Now().Format(time.RFC3339Nano)}
	})
}

// ruled returns the parent with the sources that Flux scans, and without a Rollout.
func ruled(t *testing.T) parent {
	t.Helper()
	s := newEnv(t)
	p := parent{Env: s, fleet: s.Another("fleet"), names: s.Namespace + "/fleet"}
	host := plane.Registry.Host()
	source, fleet := p.fleet.OCIRepository(host), p.fleet.Kustomization()
	source.Annotations, source.Spec.Reference = nil, &sourcev1.OCIRepositoryRef{Tag: "main"}
	fleet.Spec.Interval = metav1.Duration{Duration: 5 * time.Second}
	s.Create(s.NamespaceObject(), s.ImageRepository(host), s.ImagePolicy(">=1.0.0"), source, fleet)
	return p
}

// fight makes the parent and the Rollout write the same field until the controller
// reports a conflict. Git sets 1.0.0, and the Rollout promotes 1.1.0.
func fight(t *testing.T) parent {
	t.Helper()
	p := ruled(t)
	p.Create(p.Kustomization())
	p.commit(p.manifest("", spelled))
	p.Push(p.ConfigRelease("1.0.0"))
	p.Publish(p.ConfigRelease("1.1.0"))
	p.Create(p.Rollout())
	p.awaitConflict()
	return p
}

func (p parent) awaitConflict() *v1alpha1.Rollout {
	p.T.Helper()
	want := "TargetsApplied=False TargetConflict: OCIRepository shop: spec.ref.tag is overwritten by kustomize-controller " +
		"for Kustomization " + p.names + ": remove it from the manifest that this Kustomization applies, or name it in its spec.ignore"
	return p.Await("the conflict", func(r *v1alpha1.Rollout) bool {
		return env.Condition(r, v1alpha1.TargetsAppliedCondition) == want && env.Condition(r, v1alpha1.StalledCondition) != ""
	})
}

// tags collects the tags of the OCIRepository shop from now on, in their order. An empty
// text means that there is no tag.
func (p parent) tags() func() []string {
	p.T.Helper()
	watcher, err := client.NewWithWatch(plane.RESTConfig(), client.Options{Scheme: plane.Client().Scheme()})
	if err != nil {
		p.T.Fatal(err)
	}
	events, err := watcher.Watch(p.T.Context(), &sourcev1.OCIRepositoryList{}, client.InNamespace(p.Namespace),
		client.MatchingFields{"metadata.name": "shop"})
	if err != nil {
		p.T.Fatal(err)
	}
	p.T.Cleanup(events.Stop)
	var mu sync.Mutex
	var seen []string
	go func() {
		for e := range events.ResultChan() {
			repository, ok := e.Object.(*sourcev1.OCIRepository)
			if !ok {
				continue
			}
			tag := ""
			if repository.Spec.Reference != nil {
				tag = repository.Spec.Reference.Tag
			}
			mu.Lock()
			if len(seen) == 0 || seen[len(seen)-1] != tag {
				seen = append(seen, tag)
			}
			mu.Unlock()
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// written returns how often the controller wrote the tag after the first tag that was
// seen. Only the controller sets 1.1.0.
func written(tags []string) (n int) {
	for i, tag := range tags {
		if i > 0 && tag == "1.1.0" {
			n++
		}
	}
	return n
}

// nextWrite waits until the tag is written once more, and taken back. It returns the
// Rollout before and after that.
func (p parent) nextWrite(tags func() []string) (before, after *v1alpha1.Rollout) {
	p.T.Helper()
	before = p.Live()
	sofar := written(tags())
	env.Eventually(p.T, "the tag written once more, and taken back", func() (bool, string) {
		seen := tags()
		return written(seen) > sofar && seen[len(seen)-1] == "1.0.0", fmt.Sprint(seen)
	})
	return before, p.Live()
}

func TestParentThatTakesTheTagBackIsNamedAndNotOverwritten(t *testing.T) {
	p := fight(t)
	tags, since := p.tags(), time.Now()
	before, after := p.nextWrite(tags)
	if !cmp.Equal(before.Status.Targets, after.Status.Targets) { // Flux has applied 1.1.0, which happens once
		before, after = p.nextWrite(tags)
	}
	seen, took := tags(), time.Since(since)
	if most := 1 + int(took/(30*time.Second)); written(seen) > most {
		t.Errorf("within %s the tag was written %d times, want at most every 30 s: %q", took, written(seen), seen)
	}
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the Rollout was written during the conflict:\nbefore %+v\nafter %+v", before.Status, after.Status)
	}
	if reported := p.AwaitEvents(p.Rollout(), v1alpha1.TargetConflictReason); len(reported) != 1 {
		t.Errorf("the conflict was reported as %q, want it once", reported)
	}

	p.commit(p.manifest("", ""))
	p.awaitRecovery()
}

func TestParentStopsTakingTheTagBackWhenGitSays(t *testing.T) {
	t.Parallel()
	for name, remedy := range map[string]func(parent){
		"to ignore the field": func(p parent) {
			fleet := p.fleet.Kustomization()
			p.Change(fleet, func() {
				fleet.Spec.Ignore = []kustomizev1.IgnoreRule{{
					Paths:  []string{"/spec/ref/tag"},
					Target: &fluxkustomize.Selector{Kind: sourcev1.OCIRepositoryKind, Name: "shop"},
				}}
			})
		},
		"to apply the object only if it is missing": func(p parent) { p.commit(p.manifest(ifNotPresent, spelled)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := fight(t)
			remedy(p)
			p.awaitRecovery()
		})
	}
}

func (p parent) awaitRecovery() {
	p.T.Helper()
	p.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	p.Await("no conflict any more", func(r *v1alpha1.Rollout) bool {
		return env.Condition(r, v1alpha1.StalledCondition) == "" && r.Status.Targets[0].State == v1alpha1.TargetApplied
	})
	p.Stays("so", func(r *v1alpha1.Rollout) bool { return env.Condition(r, v1alpha1.StalledCondition) == "" })
}

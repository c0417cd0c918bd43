// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// evidence is the observed state of one promotion on which a bake may be based. It
// includes only objects that existed when the promotion was recorded. An observer cannot
// decide whether the controller could know other objects in time.
type evidence struct {
	tag string
	// applied contains, for each target, whether it was seen to have applied the version.
	applied map[types.UID]bool
	// proven contains, for each selected HealthCheck, how much it proves.
	proven map[types.UID]proof
}

// proof is the progress of a HealthCheck since all targets had applied the version.
type proof int

const (
	old    proof = iota // it is Healthy, possibly about the release before
	asked               // it was observed as not Healthy
	proven              // it was Healthy after that
)

// gather begins to collect evidence for the newest promotion.
func (s *Findings) gather(r *rollout) {
	r.evidence = nil
	current := r.object.Current()
	if current == nil {
		return
	}
	r.evidence = &evidence{tag: current.Version.Tag, applied: map[types.UID]bool{}, proven: map[types.UID]proof{}}
	for uid, t := range s.targets {
		if s.concerns(t, r) && !suspended(t.object) {
			r.evidence.applied[uid] = false
		}
	}
	for uid, check := range s.checks {
		if selected(r.object, check) {
			r.evidence.proven[uid] = old
		}
	}
	s.weigh(r)
}

// concerns reports whether the Rollout drives a target, or the source that the target
// consumes.
func (s *Findings) concerns(t *target, r *rollout) bool {
	key := client.ObjectKeyFromObject(r.object)
	if t.drivenBy(key) {
		return true
	}
	source := s.sourceOf(t.object)
	return source != nil && source.drivenBy(key)
}

// sourceOf returns the OCIRepository that a Kustomization consumes.
func (s *Findings) sourceOf(object client.Object) *target {
	k, ok := object.(*kustomizev1.Kustomization)
	if !ok || k.Spec.SourceRef.Kind != sourcev1.OCIRepositoryKind {
		return nil
	}
	key := client.ObjectKey{Namespace: k.Spec.SourceRef.Namespace, Name: k.Spec.SourceRef.Name}
	if key.Namespace == "" {
		key.Namespace = k.Namespace
	}
	for _, t := range s.targets {
		if _, ok := t.object.(*sourcev1.OCIRepository); ok && client.ObjectKeyFromObject(t.object) == key {
			return t
		}
	}
	return nil
}

// weigh updates the evidence with the present state of the targets.
func (s *Findings) weigh(r *rollout) {
	e := r.evidence
	if e == nil {
		return
	}
	before := e.allApplied()
	for uid := range e.applied {
		t := s.targets[uid]
		if t == nil || suspended(t.object) || !s.concerns(t, r) {
			delete(e.applied, uid) // the controller no longer needs to wait for it
			continue
		}
		e.applied[uid] = e.applied[uid] || s.hasApplied(t, r)
	}
	if e.allApplied() && !before {
		for uid := range e.proven {
			e.proven[uid] = old
			s.hear(e, uid)
		}
	}
}

// hear updates the evidence with the present state of a HealthCheck.
func (s *Findings) hear(e *evidence, uid types.UID) {
	check := s.checks[uid]
	healthy := check != nil && check.Status.Status == v1alpha1.HealthStatusHealthy
	switch {
	case check == nil:
		delete(e.proven, uid)
	case !healthy && e.proven[uid] == old:
		e.proven[uid] = asked
	case healthy && e.proven[uid] == asked:
		e.proven[uid] = proven
	}
}

func (e *evidence) allApplied() bool {
	for _, applied := range e.applied {
		if !applied {
			return false
		}
	}
	return true
}

// checkEvidence checks that a healthy promotion was applied everywhere, and was seen to
// be healthy after that. It also checks that a bake is not too short.
func (s *Findings) checkEvidence(r *rollout, is *entry, from, to v1alpha1.BakeStatus) {
	id := idOf(is)
	if to == v1alpha1.BakeSucceeded && tooShort(is, r.object.Spec.BakeTime) {
		s.complain("%s: the bake of promotion %d took less than %s", named(r.object), id, r.object.Spec.BakeTime.Duration)
	}
	begins := to == v1alpha1.BakeInProgress || to == v1alpha1.BakeSucceeded && from == v1alpha1.BakeDeploying
	if begins && r.evidence != nil {
		s.checkApplied(r, is)
		s.checkProven(r, is)
	}
}

func (s *Findings) checkApplied(r *rollout, is *entry) {
	for uid, applied := range r.evidence.applied {
		if !applied {
			s.complain("%s: promotion %d is %s, and %s has never applied %s",
				named(r.object), idOf(is), is.State(), named(s.targets[uid].object), is.Version.Tag)
		}
	}
}

// checkProven checks the HealthChecks. They count only after all targets have applied the
// version.
func (s *Findings) checkProven(r *rollout, is *entry) {
	for uid, proof := range r.evidence.proven {
		check := s.checks[uid]
		if r.evidence.allApplied() && proof != proven && selected(r.object, check) {
			s.complain("%s: promotion %d is %s, and %s was not Healthy since %s was applied",
				named(r.object), idOf(is), is.State(), named(check), is.Version.Tag)
		}
	}
}

func (s *Findings) seeCheck(check *v1alpha1.HealthCheck, gone bool) {
	s.checks[check.UID] = check
	if gone {
		delete(s.checks, check.UID)
	}
	for _, r := range s.rollouts {
		if e := r.evidence; e != nil && e.allApplied() {
			if _, asks := e.proven[check.UID]; asks {
				s.hear(e, check.UID)
			}
		}
	}
}

// selected reports whether a Rollout selects a HealthCheck of its own namespace, or owns it.
func selected(r *v1alpha1.Rollout, check *v1alpha1.HealthCheck) bool {
	if check != nil && metav1.GetControllerOf(check) != nil {
		return metav1.IsControlledBy(check, r)
	}
	wanted := r.Spec.HealthCheckSelector.LabelSelector()
	if wanted == nil || check == nil || check.Namespace != r.Namespace || r.Spec.HealthCheckSelector.NamespaceSelector != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	return err == nil && selector.Matches(labels.Set(check.Labels))
}

func suspended(object client.Object) bool {
	switch o := object.(type) {
	case *sourcev1.OCIRepository:
		return o.Spec.Suspend
	case *kustomizev1.Kustomization:
		return o.Spec.Suspend
	}
	return false
}

// hasApplied reports whether a target has applied the newest promotion, by the status
// that Flux reports.
func (s *Findings) hasApplied(t *target, r *rollout) bool {
	for _, f := range t.fields() {
		if f.rollout == client.ObjectKeyFromObject(r.object) && f.value != r.evidence.tag {
			return false
		}
	}
	switch o := t.object.(type) {
	case *sourcev1.OCIRepository:
		return o.Status.ObservedGeneration == o.Generation && ready(o.Status.Conditions) && isOf(o.Status.Artifact, r.evidence.tag)
	case *kustomizev1.Kustomization:
		return o.Status.ObservedGeneration == o.Generation && ready(o.Status.Conditions) &&
			o.Status.LastAppliedRevision != "" && s.isCurrent(o, r)
	}
	return false
}

// isCurrent reports whether a Kustomization has applied the artifact of its source. If
// the Rollout drives the source, the artifact must be that of the promotion.
func (s *Findings) isCurrent(k *kustomizev1.Kustomization, r *rollout) bool {
	if k.Spec.SourceRef.Kind != sourcev1.OCIRepositoryKind {
		return true
	}
	source := s.sourceOf(k)
	if source == nil {
		return false
	}
	artifact := source.object.(*sourcev1.OCIRepository).Status.Artifact
	driven := source.drivenBy(client.ObjectKeyFromObject(r.object))
	return artifact != nil && artifact.Revision == k.Status.LastAppliedRevision && (!driven || isOf(artifact, r.evidence.tag))
}

// isOf reports whether an artifact was pulled by a tag.
func isOf(artifact *meta.Artifact, tag string) bool {
	return artifact != nil && strings.HasPrefix(artifact.Revision, tag+"@")
}

func ready(conditions []metav1.Condition) bool {
	return apimeta.IsStatusConditionTrue(conditions, meta.ReadyCondition) &&
		!apimeta.IsStatusConditionTrue(conditions, meta.ReconcilingCondition) &&
		!apimeta.IsStatusConditionTrue(conditions, meta.StalledCondition)
}

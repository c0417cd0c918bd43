// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"strconv"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
)

// observer reads a record state by state, and checks each state against the promises of
// the coordinators. It does not know how the coordinators keep them.
type observer struct {
	coordinations map[types.UID]*coordinationv1.DeploymentCoordination
	members       map[types.UID]*member
	zones         map[types.UID]*zone
	said          map[types.UID]string

	// broken describes the promises that were broken.
	broken []string
	// finished counts how often each workload had a new template on all of its
	// pods, by name.
	finished map[string]int
	// begun counts how often a journal noted a new start, by namespace and name.
	begun map[string]int
	// order lists the Deployments that were resumed, the zones that began to roll, the
	// workloads whose template reached all of their pods, and the states of the release.
	order []string
	at    uint64
}

// observe reads all states.
func observe(seen []record.Sight) *observer {
	o := &observer{
		coordinations: map[types.UID]*coordinationv1.DeploymentCoordination{},
		members:       map[types.UID]*member{},
		zones:         map[types.UID]*zone{},
		said:          map[types.UID]string{},
		finished:      map[string]int{},
		begun:         map[string]int{},
	}
	for _, s := range seen {
		o.see(s)
	}
	return o
}

func (o *observer) see(s record.Sight) {
	o.at = s.At
	switch object := s.Object.(type) {
	case *coordinationv1.DeploymentCoordination:
		o.seeCoordination(object, s.Gone)
	case *appsv1.Deployment:
		o.seeDeployment(object, s.Gone)
	case *appsv1.StatefulSet:
		o.seeStatefulSet(object, s.Gone)
	case *corev1.Pod:
		o.seePod(object, s.Gone)
	case *v1alpha1.Rollout:
		o.seeRelease(object, stateOfRelease(object))
	case *kustomizev1.Kustomization:
		o.seeRelease(object, appliedBy(object))
	}
}

// seeRelease notes a new state of a release.
func (o *observer) seeRelease(object client.Object, said string) {
	if was, known := o.said[object.GetUID()]; known && was != said && said != "" {
		o.order = append(o.order, said)
	}
	o.said[object.GetUID()] = said
}

// stateOfRelease returns the state of the newest entry of a Rollout's history.
func stateOfRelease(r *v1alpha1.Rollout) string {
	if entry := r.Current(); entry != nil {
		return string(entry.State()) + " " + entry.Version.Tag
	}
	return ""
}

func appliedBy(k *kustomizev1.Kustomization) string {
	tag, _, _ := strings.Cut(k.Status.LastAppliedRevision, "@")
	return strings.TrimSuffix("applied "+tag, "applied ")
}

func (o *observer) complain(format string, args ...any) {
	o.broken = append(o.broken, fmt.Sprintf("at %d: ", o.at)+fmt.Sprintf(format, args...))
}

func (o *observer) happened(what string, object client.Object) {
	o.order = append(o.order, what+" "+object.GetName())
}

// member is a Deployment. It is finished if its present template was on all of its pods,
// and these were available, at any time.
type member struct {
	*appsv1.Deployment
	finished bool
}

// rolls reports whether the Deployment is not paused and has a template that was never
// finished.
func (m *member) rolls() bool { return !m.Spec.Paused && !m.finished }

func (o *observer) seeDeployment(d *appsv1.Deployment, gone bool) {
	was := o.members[d.UID]
	if gone {
		delete(o.members, d.UID)
		return
	}
	is := &member{Deployment: d}
	sameTemplate := was != nil && equality.Semantic.DeepEqual(was.Spec.Template, d.Spec.Template)
	is.finished = sameTemplate && was.finished || isRolledOut(d)
	o.members[d.UID] = is
	if was != nil && was.Spec.Paused && is.rolls() {
		o.happened("released", d)
		o.isInTheJournal(is)
	}
	if was != nil && is.finished && !was.finished {
		o.finished[d.Name]++
		o.happened("finished", d)
	}
	o.noMoreRollThanMay()
}

// isRolledOut reports whether a Deployment's status is about the present template and
// shows that it is rolled out.
func isRolledOut(d *appsv1.Deployment) bool {
	s, wanted := d.Status, *d.Spec.Replicas
	return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == wanted && s.Replicas == wanted && s.AvailableReplicas == wanted
}

// isInTheJournal checks that the journal named a Deployment before it was resumed.
func (o *observer) isInTheJournal(m *member) {
	for _, c := range o.coordinations {
		if o.selects(c, m) && !c.Status.HasTurn(key(m)) {
			o.complain("%s was released while the journal of %s named %q", key(m), c.Name, c.Status.Active())
		}
	}
}

// noMoreRollThanMay checks that no more of the Deployments that a coordination selects roll
// than maxConcurrent allows.
func (o *observer) noMoreRollThanMay() {
	for _, c := range o.coordinations {
		selected, rolling := 0, []string(nil)
		for _, m := range o.members {
			if !o.selects(c, m) {
				continue
			}
			if selected++; m.rolls() {
				rolling = append(rolling, m.Name)
			}
		}
		if len(rolling) > c.Spec.Concurrent(selected) {
			o.complain("of %s %s roll at once", c.Name, inOrder(rolling))
		}
	}
}

func (o *observer) selects(c *coordinationv1.DeploymentCoordination, m *member) bool {
	selector, err := metav1.LabelSelectorAsSelector(&c.Spec.LabelSelector)
	if err != nil {
		o.complain("the selector of %s cannot be read: %v", c.Name, err)
		return false
	}
	return !selector.Empty() && c.Namespace == m.Namespace && selector.Matches(labels.Set(m.Labels))
}

// seeCoordination checks that the journal marks a roll-out as finished only after it is
// finished.
func (o *observer) seeCoordination(c *coordinationv1.DeploymentCoordination, gone bool) {
	was := o.coordinations[c.UID]
	o.coordinations[c.UID] = c
	if gone {
		delete(o.coordinations, c.UID)
		return
	}
	if was == nil {
		return
	}
	for _, state := range c.Status.DeploymentStates {
		m, before := o.members[state.UID], stateOf(was, state.Name)
		if !state.LastRolloutStarted.Equal(before.LastRolloutStarted) {
			o.begun[state.Name]++
		}
		if m != nil && !m.finished && before.UID == state.UID && !state.LastRolloutFinished.Equal(before.LastRolloutFinished) {
			o.complain("the journal of %s calls %s finished, which it is not", c.Name, state.Name)
		}
	}
}

func stateOf(c *coordinationv1.DeploymentCoordination, name string) coordinationv1.DeploymentState {
	for _, state := range c.Status.DeploymentStates {
		if state.Name == name {
			return state
		}
	}
	return coordinationv1.DeploymentState{}
}

// zone is a StatefulSet of a rollout group with its pods.
type zone struct {
	set  *appsv1.StatefulSet
	pods map[types.UID]*corev1.Pod
	// whole is true once all pods that are wanted now existed and were Ready at the same
	// time. Before that, pods are missing because they were not created yet.
	whole bool
	// rolls is true from the deletion of a pod until all pods are Ready and of one
	// revision.
	rolls bool
}

func (o *observer) zone(uid types.UID) *zone {
	if o.zones[uid] == nil {
		o.zones[uid] = &zone{pods: map[types.UID]*corev1.Pod{}}
	}
	return o.zones[uid]
}

func (o *observer) seeStatefulSet(set *appsv1.StatefulSet, gone bool) {
	if gone {
		delete(o.zones, set.UID)
		return
	}
	z := o.zone(set.UID)
	if z.set == nil || *z.set.Spec.Replicas != *set.Spec.Replicas {
		z.whole = false
	}
	z.set = set
	o.judge(z)
}

func (o *observer) seePod(pod *corev1.Pod, gone bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "StatefulSet" {
		return
	}
	z := o.zone(owner.UID)
	z.pods[pod.UID] = pod
	if gone {
		delete(z.pods, pod.UID)
	}
	if (gone || pod.DeletionTimestamp != nil) && z.whole && !z.rolls {
		z.rolls = true
		if z.set != nil {
			o.happened("begun", z.set)
		}
	}
	o.judge(z)
}

// judge checks a set after a change in its pods or in the set itself.
func (o *observer) judge(z *zone) {
	if z.set == nil {
		return
	}
	missing := int(*z.set.Spec.Replicas) - z.ready()
	z.whole = z.whole || missing == 0
	if z.rolls && missing == 0 && z.isOfOneRevision() {
		z.rolls = false
		o.finished[z.set.Name]++
		o.happened("finished", z.set)
	}
	if most := maxUnavailable(z.set); z.whole && missing > most {
		o.complain("of %s %d pods are missing, at most %d may be", z.set.Name, missing, most)
	}
	o.atMostOneZoneRolls(z.set)
}

// ready counts the pods that are Ready and not being deleted.
func (z *zone) ready() int {
	n := 0
	for _, pod := range z.pods {
		if isReady(pod) && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (z *zone) isOfOneRevision() bool {
	for _, pod := range z.pods {
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] != z.set.Status.UpdateRevision {
			return false
		}
	}
	return z.set.Status.ObservedGeneration == z.set.Generation
}

// atMostOneZoneRolls checks that at most one StatefulSet in the group of a set rolls.
func (o *observer) atMostOneZoneRolls(of *appsv1.StatefulSet) {
	var rolling []string
	for _, z := range o.zones {
		if z.set != nil && z.rolls && z.set.Namespace == of.Namespace && z.set.Labels["rollout-group"] == of.Labels["rollout-group"] {
			rolling = append(rolling, z.set.Name)
		}
	}
	if len(rolling) > 1 {
		o.complain("of the group %s %s roll at once", of.Labels["rollout-group"], inOrder(rolling))
	}
}

// maxUnavailable returns the number in the annotation of a set.
func maxUnavailable(set *appsv1.StatefulSet) int {
	given := set.Annotations["rollout-max-unavailable"]
	number, percent := strings.CutSuffix(given, "%")
	n, err := strconv.Atoi(number)
	if percent {
		n = n * int(*set.Spec.Replicas) / 100
	}
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// SPDX-License-Identifier: Apache-2.0

// Package admission tests that all forms of pausing waiting Deployments at admission
// agree: the rule in Go, the policy that the API server evaluates, and the webhook that
// it calls. All of them run the same cases.
package admission

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

const (
	// Name is the name of every Deployment in the cases.
	Name = "web"
	// Elsewhere is the namespace of coordinations outside of the Deployment's namespace.
	Elsewhere = "elsewhere"
	// StoredUID stands for the UID that Old was given when it was created.
	StoredUID types.UID = "stored"
)

// Case is a Deployment that a client creates or changes.
type Case struct {
	// Coordinations exist already. Those without a namespace are in the namespace of the
	// Deployment.
	Coordinations []*v1.DeploymentCoordination
	// Old is the stored Deployment. It is nil if the Deployment is created.
	Old *appsv1.Deployment
	// New is the requested Deployment.
	New *appsv1.Deployment
	// ByController is true if the controller makes the request, not another client.
	ByController bool
	// PausedBy are the coordinations that may pause the Deployment. Any one of them may
	// have done it. If there are none, the Deployment is stored as requested.
	PausedBy []string
	// PausedByPolicy is the same for the policy, where it differs.
	PausedByPolicy []string
}

// Cases returns all cases, for a Deployment of the namespace.
func Cases(namespace string) map[string]Case {
	all := map[string]Case{}
	for _, some := range []map[string]Case{
		membership(), expressions(), mistakes(), turns(namespace), severalTurns(namespace), rolledOut(namespace), idle(), byHand(namespace), several(namespace),
	} {
		for name, c := range some {
			all[name] = c
		}
	}
	return all
}

func membership() map[string]Case {
	return map[string]Case{
		"no coordination: as asked": {New: web()},
		"a coordination that does not select it: as asked": {
			Coordinations: coordinations(selecting("a", "app", "other")), New: web(),
		},
		"a coordination that selects more labels than it has: as asked": {
			Coordinations: coordinations(a(label("tier", "front"))), New: web(),
		},
		"a coordination of another namespace: as asked": {
			Coordinations: coordinations(a(func(c *v1.DeploymentCoordination) { c.Namespace = Elsewhere })), New: web(),
		},
		"waiting, when it is created: paused": {Coordinations: coordinations(a()), New: web(), PausedBy: []string{"a"}},
		"waiting, when it is created paused: as asked": {
			Coordinations: coordinations(a()), New: web(paused),
		},
		"waiting, when it is changed: paused": {
			Coordinations: coordinations(a()), Old: web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"selected by a label that it is given: paused": {
			Coordinations: coordinations(a()), Old: web(labels(nil)), New: web(), PausedBy: []string{"a"},
		},
		"no longer selected by a label that is taken away: as asked": {
			Coordinations: coordinations(a()), Old: web(paused), New: web(labels(nil)),
		},
		"without labels: as asked": {Coordinations: coordinations(a()), New: web(labels(nil))},
		"released by the controller: as asked": {
			Coordinations: coordinations(a()), Old: web(paused), New: web(), ByController: true,
		},
		"released by somebody else: paused": {
			Coordinations: coordinations(a()), Old: web(paused), New: web(), PausedBy: []string{"a"},
		},
	}
}

func expressions() map[string]Case {
	cases := map[string]Case{}
	for name, c := range map[string]struct {
		expression metav1.LabelSelectorRequirement
		selects    bool
	}{
		"In, and its value is named":             {requirement("app", metav1.LabelSelectorOpIn, "shop", "web"), true},
		"In, and its value is not named":         {requirement("app", metav1.LabelSelectorOpIn, "shop"), false},
		"In, and it has no such label":           {requirement("tier", metav1.LabelSelectorOpIn, "front"), false},
		"NotIn, and its value is not named":      {requirement("app", metav1.LabelSelectorOpNotIn, "shop"), true},
		"NotIn, and its value is named":          {requirement("app", metav1.LabelSelectorOpNotIn, "shop", "web"), false},
		"NotIn, and it has no such label":        {requirement("tier", metav1.LabelSelectorOpNotIn, "front"), true},
		"Exists, and it has the label":           {requirement("app", metav1.LabelSelectorOpExists), true},
		"Exists, and it has no such label":       {requirement("tier", metav1.LabelSelectorOpExists), false},
		"DoesNotExist, and it has no such":       {requirement("tier", metav1.LabelSelectorOpDoesNotExist), true},
		"DoesNotExist, and it has the label":     {requirement("app", metav1.LabelSelectorOpDoesNotExist), false},
		"a key with a domain":                    {requirement("example.com/team", metav1.LabelSelectorOpDoesNotExist), true},
		"In, and an empty value is named":        {requirement("tier", metav1.LabelSelectorOpIn, ""), false},
		"an operator that does not exist":        {requirement("app", "Like", "web"), false},
		"In without values":                      {requirement("app", metav1.LabelSelectorOpIn), false},
		"NotIn without values":                   {requirement("app", metav1.LabelSelectorOpNotIn), false},
		"Exists with values":                     {requirement("app", metav1.LabelSelectorOpExists, "web"), false},
		"DoesNotExist with values":               {requirement("tier", metav1.LabelSelectorOpDoesNotExist, "front"), false},
		"NotIn with a value that is not valid":   {requirement("app", metav1.LabelSelectorOpNotIn, "not valid"), false},
		"a key that is not valid":                {requirement("not valid", metav1.LabelSelectorOpNotIn, "web"), false},
		"DoesNotExist with a key of two slashes": {requirement("a/b/c", metav1.LabelSelectorOpDoesNotExist), false},
	} {
		selected := Case{Coordinations: coordinations(coordination("a", expression(c.expression))), New: web()}
		if c.selects {
			selected.PausedBy = []string{"a"}
		}
		cases["expression: "+name] = selected
	}
	cases["labels match and an expression does not: as asked"] = Case{
		Coordinations: coordinations(a(expression(requirement("tier", metav1.LabelSelectorOpExists)))), New: web(),
	}
	cases["labels and expressions match: paused"] = Case{
		Coordinations: coordinations(a(
			expression(requirement("tier", metav1.LabelSelectorOpDoesNotExist)),
			expression(requirement("app", metav1.LabelSelectorOpIn, "web")),
		)), New: web(), PausedBy: []string{"a"},
	}
	cases["one of two expressions does not match: as asked"] = Case{
		Coordinations: coordinations(coordination("a",
			expression(requirement("app", metav1.LabelSelectorOpExists)),
			expression(requirement("tier", metav1.LabelSelectorOpExists)),
		)), New: web(),
	}
	return cases
}

func mistakes() map[string]Case {
	return map[string]Case{
		"an empty selector: as asked": {Coordinations: coordinations(coordination("a")), New: web()},
		"one coordination is a mistake, and another is not: paused": {
			Coordinations: coordinations(
				coordination("a", expression(requirement("app", "Like", "web"))), selecting("b", "app", "web")),
			New: web(), PausedBy: []string{"b"},
		},
	}
}

func turns(namespace string) map[string]Case {
	name := namespace + "/" + Name
	return map[string]Case{
		"it has the turn: as asked": {
			Coordinations: coordinations(a(active(name, ""))), Old: web(), New: web(image("web:2")),
		},
		"it has the turn under its UID: as asked": {
			Coordinations: coordinations(a(active(name, StoredUID))), Old: web(), New: web(image("web:2")),
		},
		"it has the turn and is released by somebody else: as asked": {
			Coordinations: coordinations(a(active(name, ""))), Old: web(paused), New: web(),
		},
		"another has the turn: paused": {
			Coordinations: coordinations(a(active(namespace+"/api", ""))), Old: web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"its namesake in another namespace has the turn: paused": {
			Coordinations: coordinations(a(active(Elsewhere+"/"+Name, ""))), Old: web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"created under the name of the one that has the turn: as asked": {
			Coordinations: coordinations(a(active(name, ""))), New: web(),
		},
		"created anew under the name of the one that had the turn: paused": {
			Coordinations: coordinations(a(active(name, "deleted"))), New: web(), PausedBy: []string{"a"},
		},
		"changed under the name of the one that had the turn: paused": {
			Coordinations: coordinations(a(active(name, "deleted"))), Old: web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
	}
}

// severalTurns has the cases of coordinations in which several Deployments have a turn.
func severalTurns(namespace string) map[string]Case {
	name, api, worker := namespace+"/"+Name, namespace+"/api", namespace+"/worker"
	entry := func(s v1.DeploymentState) func(*v1.DeploymentCoordination) {
		return func(c *v1.DeploymentCoordination) { c.Status.DeploymentStates = append(c.Status.DeploymentStates, s) }
	}
	since := metav1.NewTime(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC))
	return map[string]Case{
		"it has a turn beside another: as asked": {
			Coordinations: coordinations(a(active(api, ""), alsoActive(name))), Old: web(), New: web(image("web:2")),
		},
		"it has the first of two turns: as asked": {
			Coordinations: coordinations(a(active(name, ""), alsoActive(worker))), Old: web(), New: web(image("web:2")),
		},
		"two others have a turn: paused": {
			Coordinations: coordinations(a(active(api, ""), alsoActive(worker))), Old: web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"created anew under the name of one that has a turn beside another: paused": {
			Coordinations: coordinations(a(active(api, ""), alsoActive(name), entry(v1.DeploymentState{Name: name, UID: "deleted"}))),
			New:           web(), PausedBy: []string{"a"},
		},
		"rolled out in its turn beside another, and the template is another: paused": {
			Coordinations: coordinations(a(active(api, ""), alsoActive(name), entry(v1.DeploymentState{Name: name, ReadySince: &since}))),
			Old:           web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"it has a turn, and the first was rolled out in its own: as asked": {
			Coordinations: coordinations(a(activeOnce(api), alsoActive(name))), Old: web(), New: web(image("web:2")),
		},
		"the list of turns is older than the turn: paused": {
			Coordinations: coordinations(a(active(api, ""), others(name, worker))), Old: web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"the list of turns stayed, and nobody has one: paused": {
			Coordinations: coordinations(a(others(name))), Old: web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
	}
}

// rolledOut has the cases of a Deployment that has the turn, and whose template was rolled
// out in it: it bakes.
func rolledOut(namespace string) map[string]Case {
	name := namespace + "/" + Name
	return map[string]Case{
		"rolled out in its turn, and the template is another: paused": {
			Coordinations: coordinations(a(activeOnce(name))), Old: web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"rolled out in its turn under its UID, and the template is another: paused": {
			Coordinations: coordinations(a(activeOnce(name, func(s *v1.DeploymentState) { s.UID = StoredUID }))),
			Old:           web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"rolled out in its turn, and the template is another under Resume: paused": {
			Coordinations: coordinations(a(activeOnce(name), idlePolicy(v1.IdleResume))),
			Old:           web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"rolled out in its turn, and it is restarted: paused": {
			Coordinations: coordinations(a(activeOnce(name))), Old: web(), New: web(restarted), PausedBy: []string{"a"},
		},
		"rolled out in its turn, and it is scaled: as asked": {
			Coordinations: coordinations(a(activeOnce(name))), Old: web(), New: web(replicas(5)),
		},
		"rolled out in its turn, and it is released by somebody else: as asked": {
			Coordinations: coordinations(a(activeOnce(name))), Old: web(paused), New: web(),
		},
		"rolled out in its turn, and the controller decides: as asked": {
			Coordinations: coordinations(a(activeOnce(name))), Old: web(paused), New: web(image("web:2")), ByController: true,
		},
		"not rolled out yet in its turn, and the template is another: as asked": {
			Coordinations: coordinations(a(activeOnce(name, pendingAgain, notReady))), Old: web(), New: web(image("web:2")),
		},
		"replicas are missing since it was rolled out, and the template is another: as asked": {
			Coordinations: coordinations(a(activeOnce(name, broke))), Old: web(), New: web(image("web:2")),
		},
		"it lost its availability since it was rolled out, and the template is another: as asked": {
			Coordinations: coordinations(a(activeOnce(name, broke, notReady))), Old: web(), New: web(image("web:2")),
		},
		"another was rolled out, and this one has the turn: as asked": {
			Coordinations: coordinations(a(active(name, ""), func(c *v1.DeploymentCoordination) {
				since := metav1.NewTime(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC))
				c.Status.DeploymentStates = append(c.Status.DeploymentStates, v1.DeploymentState{Name: namespace + "/api", ReadySince: &since})
			})), Old: web(), New: web(image("web:2")),
		},
	}
}

func idle() map[string]Case {
	return map[string]Case{
		"Pause, and the template is the same: paused": {
			Coordinations: coordinations(a(idlePolicy(v1.IdlePause))), Old: web(), New: web(replicas(5)), PausedBy: []string{"a"},
		},
		"Pause, and it stays paused: as asked": {
			Coordinations: coordinations(a(idlePolicy(v1.IdlePause))), Old: web(paused), New: web(paused, image("web:2")),
		},
		"Resume, and it is created: paused": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))), New: web(), PausedBy: []string{"a"},
		},
		"Resume, and the template is another: paused": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))), Old: web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"Resume, and it is restarted: paused": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))), Old: web(), New: web(restarted), PausedBy: []string{"a"},
		},
		"Resume, and the template says the same in other words: as asked": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))), Old: web(cpu("500m")), New: web(cpu("0.5")),
		},
		"Resume, and it is scaled: as asked": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))), Old: web(), New: web(replicas(5)),
		},
		"Resume, and what waits is replaced without spec.paused: paused": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))),
			Old:           web(paused, annotation(v1.HeldByAnnotation, "a")), New: web(), PausedBy: []string{"a"},
		},
		"Resume, and what waits is released by somebody else: paused": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))),
			Old:           web(paused, annotation(v1.HeldByAnnotation, "a")), New: web(annotation(v1.HeldByAnnotation, "a")), PausedBy: []string{"a"},
		},
		"Resume, and what waits is released by the controller: as asked": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))),
			Old:           web(paused, annotation(v1.HeldByAnnotation, "a")), New: web(), ByController: true,
		},
		"Resume, and it was held by another: as asked": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))),
			Old:           web(paused, annotation(v1.HeldByAnnotation, "gone")), New: web(),
		},
		"Resume, and it is released by somebody else: as asked": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))), Old: web(paused), New: web(),
		},
	}
}

func byHand(namespace string) map[string]Case {
	byHand := annotation(v1.RolloutPausedAnnotation, v1.RolloutPausedValue)
	return map[string]Case{
		"paused by a user, though Resume lets it pass: paused": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume))), Old: web(), New: web(byHand), PausedBy: []string{"a"},
		},
		"paused by a user, though it has the turn: paused": {
			Coordinations: coordinations(a(active(namespace+"/"+Name, ""))), Old: web(), New: web(byHand), PausedBy: []string{"a"},
		},
		"paused by a user, and the controller decides: as asked": {
			Coordinations: coordinations(a()), Old: web(paused, byHand), New: web(byHand), ByController: true,
		},
		"paused by a user, and no coordination selects it: as asked": {New: web(byHand)},
		"not paused by a user any more, while it has the turn: as asked": {
			Coordinations: coordinations(a(active(namespace+"/"+Name, ""))),
			Old:           web(byHand), New: web(annotation(v1.RolloutPausedAnnotation, "false")),
		},
	}
}

func several(namespace string) map[string]Case {
	name := namespace + "/" + Name
	return map[string]Case{
		"two select it: paused by either": {
			Coordinations: coordinations(a(), selecting("b", "app", "web")), New: web(), PausedBy: []string{"a", "b"},
		},
		"two select it, and it is held by the second already: that stays": {
			Coordinations: coordinations(a(), selecting("b", "app", "web")),
			Old:           web(paused, annotation(v1.HeldByAnnotation, "b")), New: web(annotation(v1.HeldByAnnotation, "b")),
			PausedBy: []string{"b"},
		},
		"two select it, and it has the turn in both: as asked": {
			Coordinations: coordinations(a(active(name, "")), selecting("b", "app", "web", active(name, ""))),
			Old:           web(), New: web(image("web:2")),
		},
		// The policy sees one coordination at a time. It pauses the Deployment until the
		// status of the other coordination gives it the turn, too. Then the controller
		// unpauses it.
		"two select it, and it has the turn in one: as asked": {
			Coordinations: coordinations(a(active(name, "")), selecting("b", "app", "web")),
			Old:           web(), New: web(image("web:2")), PausedByPolicy: []string{"b"},
		},
		// Only one of them knows that it was rolled out. The other lets its template pass,
		// and so does the controller, to which it is not rolled out.
		"two select it, and it was rolled out in its turn in one: as asked": {
			Coordinations: coordinations(a(active(name, "")), selecting("b", "app", "web", activeOnce(name))),
			Old:           web(), New: web(image("web:2")), PausedByPolicy: []string{"b"},
		},
		"two select it, and it was rolled out in its turn in both: paused by either": {
			Coordinations: coordinations(a(activeOnce(name)), selecting("b", "app", "web", activeOnce(name))),
			Old:           web(), New: web(image("web:2")), PausedBy: []string{"a", "b"},
		},
		"two select it, and one says Resume: paused by the other": {
			Coordinations: coordinations(a(idlePolicy(v1.IdleResume)), selecting("b", "app", "web")),
			Old:           web(), New: web(replicas(5)), PausedBy: []string{"b"},
		},
		"one selects it, and another does not in which it has the turn: paused": {
			Coordinations: coordinations(a(), selecting("b", "app", "other", active(name, ""))),
			Old:           web(), New: web(image("web:2")), PausedBy: []string{"a"},
		},
		"an empty name of what holds it: written anew": {
			Coordinations: coordinations(a()),
			Old:           web(paused, annotation(v1.HeldByAnnotation, "")), New: web(annotation(v1.HeldByAnnotation, "")),
			PausedBy: []string{"a"},
		},
		"with other annotations, which stay: paused": {
			Coordinations: coordinations(a()), New: web(annotation("example.com/note", "kept")), PausedBy: []string{"a"},
		},
	}
}

// web returns the Deployment of the cases. Its label app is web.
func web(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	pods := map[string]string{"pod": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Labels: map[string]string{"app": "web"}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pods},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pods},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	for _, c := range change {
		c(d)
	}
	return d
}

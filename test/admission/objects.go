// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

func image(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = name }
}

func replicas(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
}

// restarted changes the Deployment as `kubectl rollout restart` does.
func restarted(d *appsv1.Deployment) {
	d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
}

func cpu(quantity string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(quantity),
		}
	}
}

func labels(all map[string]string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Labels = all }
}

func annotation(key, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value) }
}

func coordinations(all ...*v1.DeploymentCoordination) []*v1.DeploymentCoordination { return all }

// coordination returns a coordination with an empty selector, with the given changes.
func coordination(name string, change ...func(*v1.DeploymentCoordination)) *v1.DeploymentCoordination {
	c := &v1.DeploymentCoordination{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, change := range change {
		change(c)
	}
	return c
}

// selecting returns a coordination that selects by one label, with the given changes.
func selecting(name, key, value string, change ...func(*v1.DeploymentCoordination)) *v1.DeploymentCoordination {
	return coordination(name, append(change, label(key, value))...)
}

// a returns a coordination that selects web.
func a(change ...func(*v1.DeploymentCoordination)) *v1.DeploymentCoordination {
	return selecting("a", "app", "web", change...)
}

func label(key, value string) func(*v1.DeploymentCoordination) {
	return func(c *v1.DeploymentCoordination) {
		if c.Spec.LabelSelector.MatchLabels == nil {
			c.Spec.LabelSelector.MatchLabels = map[string]string{}
		}
		c.Spec.LabelSelector.MatchLabels[key] = value
	}
}

func expression(e metav1.LabelSelectorRequirement) func(*v1.DeploymentCoordination) {
	return func(c *v1.DeploymentCoordination) {
		c.Spec.LabelSelector.MatchExpressions = append(c.Spec.LabelSelector.MatchExpressions, e)
	}
}

func requirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func idlePolicy(p v1.IdlePolicy) func(*v1.DeploymentCoordination) {
	return func(c *v1.DeploymentCoordination) { c.Spec.IdlePolicy = p }
}

// active gives the turn to a Deployment, by namespace and name.
func active(name string, uid types.UID) func(*v1.DeploymentCoordination) {
	return func(c *v1.DeploymentCoordination) {
		c.Status.ActiveDeployment = name
		c.Status.DeploymentStates = []v1.DeploymentState{{Name: name, UID: uid}}
	}
}

// alsoActive adds Deployments that have a turn, too.
func alsoActive(names ...string) func(*v1.DeploymentCoordination) {
	return func(c *v1.DeploymentCoordination) {
		c.Status.ActiveDeployments = append([]string{c.Status.ActiveDeployment}, names...)
	}
}

// others are Deployments that have a turn, as a list that another implementation left behind.
func others(names ...string) func(*v1.DeploymentCoordination) {
	return func(c *v1.DeploymentCoordination) { c.Status.ActiveDeployments = names }
}

// activeOnce gives the turn to a Deployment that was rolled out in it, with other changes of
// its entry.
func activeOnce(name string, change ...func(*v1.DeploymentState)) func(*v1.DeploymentCoordination) {
	since := metav1.NewTime(time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC))
	state := v1.DeploymentState{Name: name, LastRolloutStarted: &since, LastRolloutFinished: &since, ReadySince: &since}
	for _, c := range change {
		c(&state)
	}
	return func(c *v1.DeploymentCoordination) {
		c.Status.ActiveDeployment, c.Status.DeploymentStates = name, []v1.DeploymentState{state}
	}
}

// notReady means that the Deployment lost its availability.
func notReady(s *v1.DeploymentState) { s.ReadySince = nil }

// broke means that replicas are missing since the Deployment was ready.
func broke(s *v1.DeploymentState) {
	since := metav1.NewTime(s.LastRolloutFinished.Add(time.Minute))
	s.UnavailableSince = &since
}

// pendingAgain means that it has a new template since, which rolls out.
func pendingAgain(s *v1.DeploymentState) { s.HasPendingChanges = true }

// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// mostNeeded is how many objects that the pods of a workload need are looked for.
const mostNeeded = 10

// need is an object without which a pod does not start.
type need struct{ kind, name string }

// gone returns nodes for objects that pods need and that do not exist. They are not below
// the Flux object any more: it has deleted them, while a Deployment that waits for its turn
// still has pods that need them. What a user may not read is not missing.
func (b *below) gone(ctx context.Context, namespace string, pods []*corev1.Pod) []*Node {
	needed := map[need]int{}
	for _, pod := range pods {
		for n := range needsOf(&pod.Spec) {
			needed[n]++
		}
	}
	sorted := slices.SortedFunc(maps.Keys(needed), func(x, y need) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.name, y.name))
	})
	var all []*Node
	for _, n := range sorted[:min(len(sorted), mostNeeded)] {
		of := batch{kind: corev1.SchemeGroupVersion.WithKind(n.kind), namespace: namespace}
		if apierrors.IsNotFound(b.get(ctx, of, n.name).err) {
			all = append(all, goneNode(of, n.name, needed[n]))
		}
	}
	return all
}

func goneNode(of batch, name string, pods int) *Node {
	noun := "pods"
	if pods == 1 {
		noun = "pod"
	}
	node := &Node{Object: &Object{Version: of.kind.Version, Kind: of.kind.Kind, Namespace: of.namespace, Name: name}}
	node.say(Failed, fmt.Sprintf("does not exist, and %d %s cannot start again without it", pods, noun))
	return node
}

// needsOf returns what a pod needs, without Secrets, which are not read.
func needsOf(spec *corev1.PodSpec) map[need]bool {
	all := map[need]bool{}
	if name := spec.ServiceAccountName; name != "" && name != "default" { // which Kubernetes creates again
		all[need{"ServiceAccount", name}] = true
	}
	configMap := func(name string, optional *bool) {
		if name != "" && (optional == nil || !*optional) {
			all[need{"ConfigMap", name}] = true
		}
	}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.PersistentVolumeClaim != nil {
			all[need{"PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName}] = true
		}
		configMapsOfVolume(v, configMap)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		configMapsOfContainer(&c, configMap)
	}
	return all
}

func configMapsOfVolume(v *corev1.Volume, add func(name string, optional *bool)) {
	if v.ConfigMap != nil {
		add(v.ConfigMap.Name, v.ConfigMap.Optional)
	}
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		if source.ConfigMap != nil {
			add(source.ConfigMap.Name, source.ConfigMap.Optional)
		}
	}
}

func configMapsOfContainer(c *corev1.Container, add func(name string, optional *bool)) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			add(from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		}
	}
	for _, variable := range c.Env {
		if from := variable.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			add(from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional)
		}
	}
}

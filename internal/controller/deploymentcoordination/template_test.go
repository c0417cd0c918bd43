// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Two templates differ if and only if Kubernetes creates another ReplicaSet for the
// second. Kubernetes does a semantic comparison without the label pod-template-hash.
func TestTemplateIsIdentifiedAsKubernetesComparesIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.PodTemplateSpec)
		other  bool
	}{
		"nothing differs": {
			change: func(*corev1.PodTemplateSpec) {},
		},
		"the hash of Kubernetes in a label": {
			change: func(p *corev1.PodTemplateSpec) { p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "5d4f8" },
		},
		"another spelling of a quantity": {
			change: func(p *corev1.PodTemplateSpec) { memory(p, "1048576Ki") },
		},
		"another spelling of a quantity in another unit": {
			change: func(p *corev1.PodTemplateSpec) { memory(p, "1073741824") },
		},
		"an empty map in the place of none": {
			change: func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{} },
		},
		"an empty list in the place of none": {
			change: func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Env = []corev1.EnvVar{} },
		},
		"another quantity": {
			change: func(p *corev1.PodTemplateSpec) { memory(p, "1025Mi") }, other: true,
		},
		"another image": {
			change: func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "shop:2" }, other: true,
		},
		"another label": {
			change: func(p *corev1.PodTemplateSpec) { p.Labels["version"] = "2" }, other: true,
		},
		"an annotation, which is how kubectl rollout restart does it": {
			change: func(p *corev1.PodTemplateSpec) {
				p.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
			}, other: true,
		},
		"an empty object in the place of none": {
			change: func(p *corev1.PodTemplateSpec) { p.Spec.SecurityContext = &corev1.PodSecurityContext{} }, other: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			one, two := template(), template()
			c.change(two)
			g.Expect(identityOf(one) != identityOf(two)).To(Equal(c.other))

			one.Labels[appsv1.DefaultDeploymentUniqueLabelKey], two.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "", ""
			g.Expect(!equality.Semantic.DeepEqual(one, two)).To(Equal(c.other), "Kubernetes compares so")
		})
	}
}

// The Deployments of all users pass through one goroutine, and one number must not block
// it: written out, 1e1000000 has a million zeros.
func TestLargeQuantityIsNotWrittenOut(t *testing.T) {
	known := map[string]string{}
	for _, large := range []string{"1e1000000", "1e999999", "2e1000000", "1e2000000000", "1" + strings.Repeat("0", 1000), "1" + strings.Repeat("7", 1000)} {
		t.Run(large[:7], func(t *testing.T) {
			g := NewWithT(t)
			p := template()
			memory(p, large)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			identity := identityOf(p)
			runtime.ReadMemStats(&after)
			g.Expect(after.TotalAlloc-before.TotalAlloc).To(BeNumerically("<", 16<<20), "bytes")
			g.Expect(known).NotTo(HaveKey(identity))
			known[identity] = large
		})
	}
}

func TestTemplateIsUnchangedByItsIdentification(t *testing.T) {
	g := NewWithT(t)
	one := template()
	identityOf(one)
	g.Expect(one).To(Equal(template()))
}

func template() *corev1.PodTemplateSpec {
	p := &corev1.PodTemplateSpec{}
	p.Labels = map[string]string{"app": "shop"}
	p.Spec.Containers = []corev1.Container{{Name: "shop", Image: "shop:1"}}
	memory(p, "1Gi")
	return p
}

func memory(p *corev1.PodTemplateSpec, quantity string) {
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(quantity)}
}

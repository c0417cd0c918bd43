// SPDX-License-Identifier: Apache-2.0

package kustomization_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

// largeObjects adds a megabyte to each object, and measures how much is in use after each.
type largeObjects struct {
	kustomization.Objects
	of          string // the kind of what is added to
	begin, most uint64
}

func (l *largeObjects) Get(ctx context.Context, kind *meta.RESTMapping, key types.NamespacedName, do func(json.RawMessage) error) error {
	return l.Objects.Get(ctx, kind, key, l.larger(kind, do))
}

func (l *largeObjects) Select(ctx context.Context, kind *meta.RESTMapping, namespace string, selector labels.Selector, page int64, do func(json.RawMessage) error) error {
	return l.Objects.Select(ctx, kind, namespace, selector, page, l.larger(kind, do))
}

func (l *largeObjects) larger(kind *meta.RESTMapping, do func(json.RawMessage) error) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		l.most = max(l.most, stats.HeapAlloc-min(stats.HeapAlloc, l.begin))
		if kind.GroupVersionKind.Kind != l.of {
			return do(raw)
		}
		object := map[string]any{}
		if err := json.Unmarshal(raw, &object); err != nil {
			return err
		}
		text := strings.Repeat("x", 1<<20)
		object["metadata"].(map[string]any)["annotations"] = map[string]string{"note": text}
		object["status"].(map[string]any)["message"] = text
		raw, err := json.Marshal(object)
		if err != nil {
			return err
		}
		return do(raw)
	}
}

// TestPodsAreNotHeldWhole: anyone who may create Pods can give a hundred of them the labels
// of a Deployment, and a megabyte each.
func TestPodsAreNotHeldWhole(t *testing.T) {
	const pods, most = 60, 10 << 20
	g := NewWithT(t)
	objects := append(ofRevision(rolling("web")), source([]metav1.Condition{ready}, webID))
	for i := range pods {
		objects = append(objects, podOf("hash-2", fmt.Sprint("web-", i), corev1.ContainerState{}, 0))
	}
	large := &largeObjects{Objects: stored{fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).Build()}, of: "Pod"}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	large.begin = stats.HeapAlloc
	result := evaluate(&kustomization.Checker{Objects: large, Mapper: mapper(), Now: time.Now}, checkWith(v1alpha1.KustomizationAnnotation, "web"))
	g.Expect(result.Status).To(Equal(v1alpha1.HealthStatusPending), result.Message)
	g.Expect(large.most).To(BeNumerically("<", most), "bytes in use")
}

// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// mostKept returns how many bytes a cache keeps of an object: its texts, lists and maps. The
// API server accepts 1.5 MiB for each object, and a tenant can create hundreds of them. The
// status of a Rollout is below 200 KiB of JSON, which take up to three times as much, and
// that of an Environment is below 128 KiB. Objects of all other kinds have some kilobytes;
// a schedule has up to 200 rules.
func mostKept(o client.Object) int {
	switch o.(type) {
	case *v1alpha1.Rollout:
		return 640 << 10
	case *coordinationv1.DeploymentCoordination: // it names each of its Deployments up to three times
		return 640 << 10
	case *environmentsv1.Environment:
		return 256 << 10
	case *v1alpha1.RolloutSchedule, *v1alpha1.ClusterRolloutSchedule:
		return 128 << 10
	case *v1alpha1.RolloutGate, *v1alpha1.ClusterRolloutGate, *v1alpha1.RolloutApproval, *sourcev1.OCIRepository, *sourcev1.GitRepository,
		*imagev1.ImagePolicy, *imagev1.ImageRepository:
		return 16 << 10
	case *kustomizev1.Kustomization, *helmv2.HelmRelease: // they may name hundreds of objects
		return 64 << 10
	case *corev1.Secret: // the API server accepts no more than a megabyte
		return 2 << 20
	case *batchv1.CronJob: // a Job is made of it
		return 128 << 10
	default:
		return 32 << 10
	}
}

// packBounded packs an object, and returns its size. While it is too large, it shrinks it
// and packs it again.
func (t *trimmer) packBounded(o client.Object) int {
	size := t.sizeOf(o)
	for size > mostKept(o) && shrink(o, size) {
		size = t.sizeOf(o)
	}
	return size
}

// sizeOf packs an object, and returns how many bytes it takes.
func (t *trimmer) sizeOf(o client.Object) int {
	return t.pack(o) + structure(reflect.ValueOf(o)) + sizeOfValues(o)
}

// sizeOfValues returns how many bytes the values of a HelmRelease need. They are no
// strings, and are not packed.
func sizeOfValues(o client.Object) int {
	h, ok := o.(*helmv2.HelmRelease)
	if !ok || h.Spec.Values == nil {
		return 0
	}
	return len(h.Spec.Values.Raw)
}

// Limits for an object that is too large. They keep enough of it to find the objects that
// it concerns, and far less than a cache may keep.
const (
	longestKept  = 512 // bytes of a text
	mostElements = 32  // elements of a list or a map
	fewElements  = 4
)

// shrink cuts an object that is too large, and marks it. The rest shows only that the
// object exists and what it refers to. shrink returns false once there is nothing to cut.
func shrink(o client.Object, size int) bool {
	most := mostElements
	if unreadable.Of(o) != nil {
		most = fewElements // second call: cut lists of lists
	}
	cut := cutter{most: most}
	cut.value(reflect.ValueOf(o))
	if unreadable.Of(o) == nil {
		unreadable.Mark(o, fmt.Sprintf("%d KiB of it would have to be kept in memory, and at most %d are; it has long texts or lists",
			size>>10, mostKept(o)>>10))
	}
	return cut.found
}

// cutter cuts long texts, lists and maps anywhere in a value.
type cutter struct {
	most  int
	found bool
}

func (c *cutter) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > longestKept {
			c.found = true
			v.SetString("")
		}
	case reflect.Pointer:
		if !v.IsNil() {
			c.value(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				c.value(field)
			}
		}
	case reflect.Slice:
		c.list(v)
	case reflect.Map:
		c.texts(v)
	default: // other kinds are small
	}
}

func (c *cutter) list(v reflect.Value) {
	most := c.most
	if v.Type().Elem().Kind() == reflect.Uint8 {
		most = longestKept
	}
	if v.Len() > most {
		c.found = true
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, most), v.Slice(0, most)))
	}
	for i := range v.Len() {
		c.value(v.Index(i))
	}
}

// texts keeps the first keys in sorted order, so the result is the same each time.
func (c *cutter) texts(v reflect.Value) {
	texts, ok := v.Interface().(map[string]string)
	if !ok {
		return
	}
	for i, key := range slices.Sorted(maps.Keys(texts)) {
		if i >= c.most && key != unreadable.Annotation || len(texts[key]) > longestKept {
			c.found = true
			delete(texts, key)
		}
	}
}

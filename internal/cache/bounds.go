// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// mostKept returns how many bytes of texts a cache keeps of an object. The status of a
// Rollout stays below 200 KiB, and the object contains user input in addition. Objects of
// all other kinds have some kilobytes. The API server accepts 1.5 MiB for each object,
// and a tenant can create hundreds of them.
func mostKept(o client.Object) int {
	if _, ok := o.(*v1alpha1.Rollout); ok {
		return 384 << 10
	}
	return 128 << 10
}

// packBounded packs an object. While it is too large, it shrinks it and packs it again.
func (t *trimmer) packBounded(o client.Object) {
	size := t.pack(o) + sizeOfValues(o)
	for size > mostKept(o) && shrink(o, size) {
		size = t.pack(o) + sizeOfValues(o)
	}
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
	longestKept  = 1 << 10 // bytes of a text
	mostElements = 64      // elements of a list or a map
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
		unreadable.Mark(o, fmt.Sprintf("%d KiB of it would have to be kept in memory, and at most %d are; it has long texts, or many of them",
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

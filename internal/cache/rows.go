// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// rows places the values that the fields of a status point to next to each other, one row
// for each type. In a Rollout, each release and each entry of the history points to ten
// values, and decoding allocates a piece of memory for each. With two releases, these are
// a quarter of all pieces that the garbage collector has to visit. In an Environment, each
// release points to two or three.
type rows struct {
	fields map[reflect.Type][]reflect.Value // the fields that point to a value, by its type
	moved  map[any]reflect.Value            // the new place, by the old pointer
}

// packPointers keeps the content of an object, but moves the values that it points to
// into rows. Two fields that share a value continue to share it. Therefore this is the
// last step.
func (w *words) packPointers(o client.Object) {
	var status reflect.Value
	switch o := o.(type) {
	case *v1alpha1.Rollout:
		status = reflect.ValueOf(&o.Status).Elem()
	case *environmentsv1.Environment:
		status = reflect.ValueOf(&o.Status).Elem()
	default:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rows.fields == nil {
		w.rows = rows{fields: map[reflect.Type][]reflect.Value{}, moved: map[any]reflect.Value{}}
	}
	w.rows.gather(status)
	for kind, fields := range w.rows.fields {
		w.rows.move(kind, fields)
		clear(fields) // also drops the references that keep the object alive
		w.rows.fields[kind] = fields[:0]
	}
}

// gather visits structs and lists, but does not follow pointers: the value behind a
// pointer moves as a whole.
func (r *rows) gather(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.CanSet() {
			r.fields[v.Type().Elem()] = append(r.fields[v.Type().Elem()], v)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.gather(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.gather(v.Index(i))
		}
	default: // contains no pointers
	}
}

func (r *rows) move(kind reflect.Type, fields []reflect.Value) {
	for _, field := range fields {
		r.moved[field.Interface()] = reflect.Value{}
	}
	row, next := reflect.MakeSlice(reflect.SliceOf(kind), len(r.moved), len(r.moved)), 0
	for _, field := range fields {
		place := r.moved[field.Interface()]
		if !place.IsValid() {
			place, next = row.Index(next).Addr(), next+1
			place.Elem().Set(field.Elem())
			r.moved[field.Interface()] = place
		}
		field.Set(place)
	}
	clear(r.moved)
}

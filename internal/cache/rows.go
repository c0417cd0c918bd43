// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// rows put what the fields of a Rollout's status point to next to each other, one
// row for each type. Each release and each entry of the history points to ten
// things, and decoding makes a piece of memory of each: with two releases they are
// a quarter of all that the garbage collector has to visit.
type rows struct {
	fields map[reflect.Type][]reflect.Value // that point to something, by its type
	moved  map[any]reflect.Value            // where it went, by the pointer to it
}

// packPointers leaves an object as it is, but with what it points to in rows. What
// two fields share they go on sharing, so it comes last.
func (w *words) packPointers(o client.Object) {
	rollout, ok := o.(*v1alpha1.Rollout)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rows.fields == nil {
		w.rows = rows{fields: map[reflect.Type][]reflect.Value{}, moved: map[any]reflect.Value{}}
	}
	w.rows.gather(reflect.ValueOf(&rollout.Status).Elem())
	for kind, fields := range w.rows.fields {
		w.rows.move(kind, fields)
		clear(fields) // and with it what keeps the object
		w.rows.fields[kind] = fields[:0]
	}
}

// gather looks at structs and lists, but not behind what a field points to: that
// moves as a whole.
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
	default: // points to nothing
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

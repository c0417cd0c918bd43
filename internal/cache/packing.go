// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"reflect"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packer copies all strings that only one object has into one piece of memory. Decoding
// allocates a piece for each string, and the garbage collector visits every piece again
// and again. In the caches, every second piece of memory would be such a string.
type packer struct {
	known  map[string]string // those that many objects have
	packed map[string]string // those of this object, by their text
	size   int               // total size of those
	text   strings.Builder
}

// mostPacked is the maximum number of strings for which a packer reuses its memory.
const mostPacked = 1024

// pack keeps the values of all strings of the object, but stores them in one piece of
// memory, or uses the known words. Its name and UID are kept for longer than one version
// of the object, and stay separate. It returns how many bytes the other strings need.
func (w *words) pack(o client.Object) int {
	name, uid := o.GetName(), o.GetUID()
	o.SetName("")
	o.SetUID("")
	w.mu.Lock()
	if w.packed == nil || len(w.packed) > mostPacked {
		w.packed = map[string]string{}
	}
	clear(w.packed)
	p, content := packer{known: w.known, packed: w.packed}, reflect.ValueOf(o)
	eachString(content, p.measure)
	p.text.Grow(p.size)
	eachString(content, p.move)
	w.mu.Unlock()
	o.SetName(name)
	o.SetUID(uid)
	return p.size
}

func (p *packer) measure(s string) string {
	if _, ok := p.known[s]; ok {
		return s
	}
	if _, ok := p.packed[s]; !ok {
		p.packed[s], p.size = "", p.size+len(s)
	}
	return s
}

func (p *packer) move(s string) string {
	if known, ok := p.known[s]; ok {
		return known
	}
	if p.packed[s] == "" {
		start := p.text.Len()
		p.text.WriteString(s)
		p.packed[s] = p.text.String()[start:]
	}
	return p.packed[s]
}

// eachString replaces all non-empty strings in a value: in structs, in lists, in maps
// from string to string, and behind pointers.
func eachString(v reflect.Value, replace func(string) string) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			v.SetString(replace(v.String()))
		}
	case reflect.Pointer:
		eachString(v.Elem(), replace)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				eachString(field, replace)
			}
		}
	case reflect.Slice:
		eachInList(v, replace)
	case reflect.Map:
		eachInMap(v, replace)
	default: // is not a string, and contains none
	}
}

func eachInList(list reflect.Value, replace func(string) string) {
	if list.Type().Elem().Kind() == reflect.Uint8 {
		return
	}
	for i := range list.Len() {
		eachString(list.Index(i), replace)
	}
}

// eachInMap assigns every value again, because the assignment also replaces the stored
// key.
func eachInMap(m reflect.Value, replace func(string) string) {
	texts, _ := m.Interface().(map[string]string)
	for key, value := range texts {
		texts[replace(key)] = replace(value)
	}
}

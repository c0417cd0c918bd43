// SPDX-License-Identifier: Apache-2.0

package cache

import "reflect"

// entrySize is about what an entry of a map of texts takes, without the texts.
const entrySize = 48

// structure returns how many bytes the lists, maps and pointers in a value take, without
// texts. A list of elements with short texts, or with the same texts, takes far more than
// its texts: five bytes of JSON may be an element of hundreds.
func structure(v reflect.Value) int {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return 0
		}
		return int(v.Type().Elem().Size()) + structure(v.Elem())
	case reflect.Struct:
		total := 0
		for i := range v.NumField() {
			total += structure(v.Field(i))
		}
		return total
	case reflect.Slice:
		return structureOfList(v)
	case reflect.Map:
		return v.Len() * entrySize
	default: // takes no memory of its own
		return 0
	}
}

func structureOfList(list reflect.Value) int {
	element := list.Type().Elem()
	total := list.Len() * int(element.Size())
	if isFlat(element) {
		return total
	}
	for i := range list.Len() {
		total += structure(list.Index(i))
	}
	return total
}

// isFlat reports whether values of a type contain no other memory, or only texts.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Struct, reflect.Interface:
		return false
	default:
		return true
	}
}

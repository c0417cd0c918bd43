// SPDX-License-Identifier: Apache-2.0

// Package fair shares resources that all tenants use. The namespaces take turns, no
// matter how much one of them requests.
package fair

import "slices"

// Turns contains the items that wait for their turn, by namespace. The items of a
// namespace keep their order. It is not safe for concurrent use. The zero value is ready
// to use.
type Turns[T any] struct {
	waiting map[string][]T // oldest first
	order   []string       // namespaces with items, the next first
	length  int
}

// Push adds an item as the last one of its namespace.
func (t *Turns[T]) Push(namespace string, item T) {
	if t.waiting == nil {
		t.waiting = map[string][]T{}
	}
	if _, waits := t.waiting[namespace]; !waits {
		t.order = append(t.order, namespace)
	}
	t.waiting[namespace] = append(t.waiting[namespace], item)
	t.length++
}

// PushNext adds an item as the next of all.
func (t *Turns[T]) PushNext(namespace string, item T) {
	t.Push(namespace, item)
	items := t.waiting[namespace]
	copy(items[1:], items)
	items[0] = item
	t.leave(namespace)
	t.order = slices.Insert(t.order, 0, namespace)
}

// Pop removes the oldest item of the namespace whose turn it is. It returns false if
// nothing waits.
func (t *Turns[T]) Pop() (T, bool) { return t.popAllowed(func(string) bool { return true }) }

// popAllowed removes the oldest item of the first namespace that is allowed. Those that are
// not keep their turn. It returns false if nothing waits of one that is allowed.
func (t *Turns[T]) popAllowed(allowed func(namespace string) bool) (T, bool) {
	i := slices.IndexFunc(t.order, allowed)
	if i < 0 {
		var none T
		return none, false
	}
	next := t.order[i]
	copy(t.order[1:i+1], t.order[:i]) // those before it are few
	t.order[0] = ""                   // the slice moves forward
	t.order = append(t.order[1:], next)
	return t.take(next), true
}

// DropFromLongest removes the oldest item of the namespace with the most items. If
// several have the most, it uses the one whose turn comes first. At least one item must
// wait.
func (t *Turns[T]) DropFromLongest() T {
	longest := t.order[0]
	for _, namespace := range t.order {
		if len(t.waiting[namespace]) > len(t.waiting[longest]) {
			longest = namespace
		}
	}
	return t.take(longest)
}

// Len returns how many items wait.
func (t *Turns[T]) Len() int { return t.length }

// take removes the oldest item of a namespace and frees its memory.
func (t *Turns[T]) take(namespace string) T {
	var none T
	items := t.waiting[namespace]
	item := items[0]
	items[0] = none
	t.waiting[namespace] = items[1:]
	if len(items) == 1 {
		delete(t.waiting, namespace)
		t.leave(namespace)
	}
	t.length--
	return item
}

// leave searches from the end, because a namespace that has just had its turn is there.
func (t *Turns[T]) leave(namespace string) {
	for i, of := range slices.Backward(t.order) {
		if of == namespace {
			t.order = slices.Delete(t.order, i, i+1)
			return
		}
	}
}

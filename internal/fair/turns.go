// SPDX-License-Identifier: Apache-2.0

// Package fair shares what all tenants use: the namespaces that want something take turns,
// however much one of them wants.
package fair

import "slices"

// Turns holds what waits for its turn, by namespace. What a namespace has keeps its order.
// It is not safe for concurrent use. The zero value is ready.
type Turns[T any] struct {
	waiting map[string][]T // the oldest first
	order   []string       // the namespaces that have any, the next first
	length  int
}

// Push adds what comes last of its namespace.
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

// PushNext adds what is the next of all.
func (t *Turns[T]) PushNext(namespace string, item T) {
	t.Push(namespace, item)
	items := t.waiting[namespace]
	copy(items[1:], items)
	items[0] = item
	t.leave(namespace)
	t.order = slices.Insert(t.order, 0, namespace)
}

// Pop removes the oldest of the namespace whose turn it is; false if nothing waits.
func (t *Turns[T]) Pop() (T, bool) {
	if t.length == 0 {
		var none T
		return none, false
	}
	next := t.order[0]
	t.order[0] = "" // the slice moves on
	t.order = append(t.order[1:], next)
	return t.take(next), true
}

// DropFromLongest removes the oldest of the namespace that has most; of several, of the
// one whose turn comes first. Something must wait.
func (t *Turns[T]) DropFromLongest() T {
	longest := t.order[0]
	for _, namespace := range t.order {
		if len(t.waiting[namespace]) > len(t.waiting[longest]) {
			longest = namespace
		}
	}
	return t.take(longest)
}

// Len is how many wait.
func (t *Turns[T]) Len() int { return t.length }

// take removes the oldest of a namespace, and lets go of its memory.
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

// leave looks from the end: who has just had a turn is there.
func (t *Turns[T]) leave(namespace string) {
	for i, of := range slices.Backward(t.order) {
		if of == namespace {
			t.order = slices.Delete(t.order, i, i+1)
			return
		}
	}
}

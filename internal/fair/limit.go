// SPDX-License-Identifier: Apache-2.0

package fair

// Limit lets only some items of each group be under way at a time. The others are parked
// until one has ended, and then begin in the order in which they came. It is not safe for
// concurrent use. Only Most must be set.
type Limit[T comparable] struct {
	// Most is how many items of a group may be under way.
	Most int

	running map[string]int // with those that were called
	parked  map[string][]T // oldest first
	waits   map[T]bool     // whether an item is parked
	// called are items that have the place of one that has ended: whatever tries to enter
	// before they do has come later.
	called map[T]bool
}

// Enter reports whether an item may begin. If not, the item is parked, once.
func (l *Limit[T]) Enter(group string, item T) bool {
	if l.called[item] {
		delete(l.called, item)
		return true
	}
	if l.running[group] < l.Most {
		if l.running == nil {
			l.running = map[string]int{}
		}
		l.running[group]++
		return true
	}
	l.park(group, item)
	return false
}

func (l *Limit[T]) park(group string, item T) {
	if l.waits[item] {
		return
	}
	if l.waits == nil {
		l.parked, l.waits, l.called = map[string][]T{}, map[T]bool{}, map[T]bool{}
	}
	l.parked[group], l.waits[item] = append(l.parked[group], item), true
}

// Leave ends an item that has entered. If items are parked, the oldest gets its place and
// is returned: it must try to enter again, even if there is nothing left to do for it.
func (l *Limit[T]) Leave(group string) (next T, ok bool) {
	parked := l.parked[group]
	if len(parked) == 0 {
		l.end(group)
		return next, false
	}
	next = parked[0]
	delete(l.waits, next)
	l.called[next] = true
	if l.parked[group] = parked[1:]; len(parked) == 1 {
		delete(l.parked, group)
	}
	return next, true
}

func (l *Limit[T]) end(group string) {
	if l.running[group]--; l.running[group] == 0 {
		delete(l.running, group)
	}
}

// Len returns how many items are under way, called or parked.
func (l *Limit[T]) Len() int {
	total := len(l.waits)
	for _, n := range l.running {
		total += n
	}
	return total
}

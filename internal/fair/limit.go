// SPDX-License-Identifier: Apache-2.0

package fair

// Limit lets only some items of each group be under way at a time. The others are parked
// until one has ended. It is not safe for concurrent use. Only Most must be set.
type Limit[T comparable] struct {
	// Most is how many items of a group may be under way.
	Most int

	running map[string]int
	parked  map[string][]T // oldest first
	waits   map[T]bool     // whether an item is parked
}

// Enter reports whether an item may begin. If not, the item is parked, once.
func (l *Limit[T]) Enter(group string, item T) bool {
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
		l.parked, l.waits = map[string][]T{}, map[T]bool{}
	}
	l.parked[group], l.waits[item] = append(l.parked[group], item), true
}

// Leave ends an item that has entered, and returns the one of the group to try next, if
// any is parked.
func (l *Limit[T]) Leave(group string) (next T, ok bool) {
	if l.running[group]--; l.running[group] == 0 {
		delete(l.running, group)
	}
	return l.Next(group)
}

// Next returns the parked item of a group to try next. Call it if the item before did not
// enter after all. It returns false if none is parked, or none may enter.
func (l *Limit[T]) Next(group string) (next T, ok bool) {
	parked := l.parked[group]
	if len(parked) == 0 || l.running[group] >= l.Most {
		return next, false
	}
	next = parked[0]
	delete(l.waits, next)
	if l.parked[group] = parked[1:]; len(parked) == 1 {
		delete(l.parked, group)
	}
	return next, true
}

// Len returns how many items are under way or parked.
func (l *Limit[T]) Len() int {
	total := len(l.waits)
	for _, n := range l.running {
		total += n
	}
	return total
}

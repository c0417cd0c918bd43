// SPDX-License-Identifier: Apache-2.0

package pool

import "container/heap"

// queue contains planned HealthChecks, as a heap. The one that is due first is the first.
type queue []*check

func (q *queue) add(c *check) {
	c.in = q
	heap.Push(q, c)
}

func (q *queue) remove(c *check) {
	heap.Remove(q, c.at)
	c.in = nil
}

// isBefore reports whether a HealthCheck is due before another one.
func (c *check) isBefore(other *check) bool {
	if c.due.Equal(other.due) {
		return c.order < other.order
	}
	return c.due.Before(other.due)
}

// Len is part of heap.Interface.
func (q *queue) Len() int { return len(*q) }

// Less is part of heap.Interface.
func (q *queue) Less(i, j int) bool { return (*q)[i].isBefore((*q)[j]) }

// Swap is part of heap.Interface.
func (q *queue) Swap(i, j int) {
	(*q)[i], (*q)[j] = (*q)[j], (*q)[i]
	(*q)[i].at, (*q)[j].at = i, j
}

// Push is part of heap.Interface.
func (q *queue) Push(c any) {
	c.(*check).at = len(*q)
	*q = append(*q, c.(*check))
}

// Pop is part of heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return c
}

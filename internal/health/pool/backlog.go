// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"iter"
	"slices"
)

// mostOfDestination is how many measurements of one destination are under way at a time.
// One that does not answer must not occupy all workers.
const mostOfDestination = 4

// busy counts the measurements that are under way.
type busy struct {
	most, total                int
	ofNamespace, ofDestination map[string]int
	ofBoth                     map[both]int
}

// both is a namespace that asks a destination.
type both struct{ namespace, destination string }

// newBusy returns the counts of so many workers, of which none measures.
func newBusy(workers int) busy {
	return busy{most: workers, ofNamespace: map[string]int{}, ofDestination: map[string]int{}, ofBoth: map[both]int{}}
}

// allows reports whether another measurement may begin. A namespace may have any number of
// destinations that do not answer, and slow queries for the Prometheus of all. So it gets
// another worker, and another place at a destination, only while more of them are free than
// it has: alone it has half of them, the next namespace a quarter, and so on. A tenant needs
// several namespaces to occupy all.
func (b *busy) allows(namespace, destination string) bool {
	free, places := b.most-b.total, mostOfDestination-b.ofDestination[destination]
	return b.ofNamespace[namespace] < free && b.ofBoth[both{namespace, destination}] < places
}

func (b *busy) add(namespace, destination string, n int) {
	b.total += n
	count(b.ofNamespace, namespace, n)
	count(b.ofDestination, destination, n)
	count(b.ofBoth, both{namespace, destination}, n)
}

func count[K comparable](counts map[K]int, of K, n int) {
	if counts[of] += n; counts[of] == 0 {
		delete(counts, of)
	}
}

// backlog contains the HealthChecks that are due. The namespaces take turns, no matter how
// many HealthChecks one of them has. Of its HealthChecks whose destination is not busy,
// the one that has been due for longest begins.
type backlog struct {
	of    map[string]map[string]*queue // by namespace and destination
	turns []string                     // namespaces, the next first
}

func (b *backlog) add(c *check) {
	namespace := c.key.Namespace
	if b.of[namespace] == nil {
		b.of[namespace] = map[string]*queue{}
		b.turns = append(b.turns, namespace)
	}
	if b.of[namespace][c.destination] == nil {
		b.of[namespace][c.destination] = &queue{}
	}
	b.of[namespace][c.destination].add(c)
}

func (b *backlog) remove(c *check) {
	namespace, in := c.key.Namespace, c.in
	if in.remove(c); len(*in) > 0 {
		return
	}
	if delete(b.of[namespace], c.destination); len(b.of[namespace]) > 0 {
		return
	}
	delete(b.of, namespace)
	i := slices.Index(b.turns, namespace)
	b.turns = slices.Delete(b.turns, i, i+1)
}

// next removes and returns the HealthCheck that begins next; nil if none may begin.
func (b *backlog) next(allows func(namespace, destination string) bool) *check {
	for i, namespace := range b.turns {
		c := earliest(b.of[namespace], func(destination string) bool { return allows(namespace, destination) })
		if c != nil {
			b.turns = append(slices.Delete(b.turns, i, i+1), namespace)
			b.remove(c)
			return c
		}
	}
	return nil
}

// earliest returns the first HealthCheck of some queues; nil if none is allowed.
func earliest(queues map[string]*queue, allows func(destination string) bool) *check {
	var found *check
	for destination, q := range queues {
		if c := (*q)[0]; (found == nil || c.isBefore(found)) && allows(destination) {
			found = c
		}
	}
	return found
}

// first returns the first HealthCheck of each queue.
func (b *backlog) first() iter.Seq[*check] {
	return func(yield func(*check) bool) {
		for _, queues := range b.of {
			for _, q := range queues {
				if !yield((*q)[0]) {
					return
				}
			}
		}
	}
}

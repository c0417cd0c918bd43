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
}

// allows reports whether another measurement may begin. A namespace has at most half of
// the workers: it may have any number of destinations that do not answer.
func (b *busy) allows(namespace, destination string) bool {
	return b.total < b.most && b.ofNamespace[namespace] < (b.most+1)/2 && b.ofDestination[destination] < mostOfDestination
}

func (b *busy) add(namespace, destination string, n int) {
	b.total += n
	count(b.ofNamespace, namespace, n)
	count(b.ofDestination, destination, n)
}

func count(counts map[string]int, of string, n int) {
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

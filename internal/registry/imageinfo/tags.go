// SPDX-License-Identifier: Apache-2.0

package imageinfo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

const (
	// patience is how often an answer is taken for that of a replica which lags
	// behind, if it lacks tags that the scan found. After ten minutes they are gone.
	patience = 7
	// mostTagMemory is how many bytes all tags may take, and mostOfNamespace those of
	// the ImageRepositories of one namespace, so that one tenant cannot take it all.
	mostTagMemory   = 32 << 20
	mostOfNamespace = mostTagMemory / 4
)

// List asks a registry for the tags of an ImageRepository. It returns within a
// bounded time. The Store asks again after any error but [registry.ErrInvalid].
type List func(ctx context.Context, repository types.NamespacedName) (registry.Tags, error)

// Scan is what Flux says of its last scan of an ImageRepository.
type Scan struct {
	// Repository is the ImageRepository.
	Repository types.NamespacedName
	// Revision is another one if the scan found other tags, or was of another image.
	Revision string
	// Count is how many tags it found, and Shown are those that Flux shows.
	Count int
	Shown []string
}

// isIn reports whether the tags can be those that the scan found, or newer ones.
func (s Scan) isIn(tags []string) bool {
	return len(tags) >= s.Count && !slices.ContainsFunc(s.Shown, func(tag string) bool {
		_, found := slices.BinarySearch(tags, tag)
		return !found
	})
}

// Listing is what is known of the tags of an ImageRepository.
type Listing struct {
	// Tags that the registry had when it was listed last, sorted as strings. They are
	// shared by all who asked, and must not be changed.
	Tags []string
	// Complete is true if they are all, and were listed after the scan that was asked
	// about.
	Complete bool
	// Cut is true if there are more of them than are read or kept.
	Cut bool
}

// tagLists keeps the tags of ImageRepositories for as long as Rollouts ask for them.
type tagLists struct {
	list  List
	log   logr.Logger
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu       sync.Mutex
	listings map[types.NamespacedName]*listing
	asked    map[types.NamespacedName]types.NamespacedName // ImageRepositories, by Rollout
	memory   map[string]int                                // of the tags, by namespace; empty is all
	wake     func(types.NamespacedName)
}

// listing is that of one ImageRepository.
type listing struct {
	waiters map[types.NamespacedName]bool // Rollouts
	access  string
	scan    Scan   // that was asked about last
	listed  string // revision of the scan that the tags belong to
	failing bool
	tags    registry.Tags
}

func newTagLists(list List, log logr.Logger, clock clock.WithTicker) *tagLists {
	return &tagLists{
		list: list, log: log, queue: newQueue(clock, func(repository types.NamespacedName) string { return repository.Namespace }),
		listings: map[types.NamespacedName]*listing{},
		asked:    map[types.NamespacedName]types.NamespacedName{},
		memory:   map[string]int{},
		wake:     func(types.NamespacedName) {},
	}
}

func (t *tagLists) wakeBy(wake func(types.NamespacedName)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake = wake
}

// ask returns what is known, and has the tags listed if that was not done since the
// scan.
func (t *tagLists) ask(rollout types.NamespacedName, access string, scan Scan) Listing {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, ok := t.asked[rollout]; ok && before != scan.Repository {
		t.leave(rollout)
	}
	l := t.join(rollout, scan.Repository)
	if l.scan.Revision != scan.Revision || l.failing && l.access != access {
		// A copy, since it stays for longer than the object that it is a part of.
		scan.Revision, scan.Shown = strings.Clone(scan.Revision), cloned(scan.Shown)
		l.scan = scan
		t.queue.Forget(scan.Repository)
		t.queue.Add(scan.Repository)
	}
	l.access = access
	return Listing{Tags: l.tags.Names, Complete: l.listed == scan.Revision && !l.tags.Cut, Cut: l.tags.Cut}
}

func cloned(texts []string) []string {
	copied := make([]string, 0, len(texts))
	for _, text := range texts {
		copied = append(copied, strings.Clone(text))
	}
	return copied
}

func (t *tagLists) join(rollout, repository types.NamespacedName) *listing {
	l := t.listings[repository]
	if l == nil {
		l = &listing{waiters: map[types.NamespacedName]bool{}}
		t.listings[repository] = l
	}
	t.asked[rollout], l.waiters[rollout] = repository, true
	return l
}

func (t *tagLists) forget(rollout types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(rollout)
}

// leave drops the tags with the last Rollout that asks for them.
func (t *tagLists) leave(rollout types.NamespacedName) {
	repository, ok := t.asked[rollout]
	if !ok {
		return
	}
	delete(t.asked, rollout)
	l := t.listings[repository]
	delete(l.waiters, rollout)
	if len(l.waiters) == 0 {
		t.keep(repository, l, registry.Tags{})
		delete(t.listings, repository)
		t.queue.Forget(repository)
	}
}

func (t *tagLists) fetch(ctx context.Context, repository types.NamespacedName) {
	scan, ok := t.due(repository)
	if !ok {
		return
	}
	found, err := t.list(ctx, repository)
	if ctx.Err() == nil {
		t.conclude(repository, scan, found, err)
	}
}

// due returns the scan whose tags are to be listed, if that was not done.
func (t *tagLists) due(repository types.NamespacedName) (Scan, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.listings[repository]
	if l == nil || l.listed == l.scan.Revision {
		return Scan{}, false
	}
	return l.scan, true
}

func (t *tagLists) conclude(repository types.NamespacedName, scan Scan, found registry.Tags, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.listings[repository]
	switch {
	case l == nil: // nobody asks any more
	case err != nil:
		t.fail(repository, l, err)
	case !found.Cut && !scan.isIn(found.Names) && t.queue.NumRequeues(repository) < patience:
		t.queue.AddRateLimited(repository)
		t.replace(repository, l, l.listed, found)
	default:
		t.queue.Forget(repository)
		t.replace(repository, l, scan.Revision, found)
	}
}

// replace notes what was listed, and for which scan, and wakes the Rollouts that ask
// if that is anything new.
func (t *tagLists) replace(repository types.NamespacedName, l *listing, revision string, found registry.Tags) {
	same := l.listed == revision && l.tags.Cut == found.Cut && slices.Equal(l.tags.Names, found.Names)
	l.listed, l.failing = revision, false
	if same {
		return
	}
	t.keep(repository, l, found)
	for rollout := range l.waiters {
		t.wake(rollout)
	}
}

// fail has the tags listed later, if there is any use in that. It is told once until
// they can be listed again.
func (t *tagLists) fail(repository types.NamespacedName, l *listing, err error) {
	log := t.log.WithValues("imageRepository", repository.String())
	if l.failing {
		log = log.V(1)
	}
	l.failing = true
	log.Info("the tags of an image cannot be listed", "reason", truncate.Text(err.Error(), longestReason))
	if errors.Is(err, registry.ErrInvalid) {
		t.queue.Forget(repository)
		return
	}
	t.queue.AddRateLimited(repository)
}

// keep replaces the tags of an ImageRepository. If there is no room for them, none
// are kept.
func (t *tagLists) keep(repository types.NamespacedName, l *listing, next registry.Tags) {
	grow := func(by int) {
		t.memory[""] += by
		if t.memory[repository.Namespace] += by; t.memory[repository.Namespace] == 0 {
			delete(t.memory, repository.Namespace)
		}
	}
	grow(-size(l.tags.Names))
	if more := size(next.Names); t.memory[""]+more > mostTagMemory || t.memory[repository.Namespace]+more > mostOfNamespace {
		next = registry.Tags{Cut: true}
	}
	grow(size(next.Names))
	l.tags = next
}

// size is how many bytes tags take in memory.
func size(tags []string) int {
	const each = 32 // the header of the string, and what rounding takes
	sum := each * len(tags)
	for _, tag := range tags {
		sum += len(tag)
	}
	return sum
}

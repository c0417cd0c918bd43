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
	"k8s.io/utils/clock"

	"github.com/fluxrollouts/rollout-controller/internal/background"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

const (
	// patience is how often an answer without tags that the scan found is ignored,
	// because it may come from a replica that lags behind. After ten minutes, the tags
	// count as deleted.
	patience = 7
	// mostTagMemory is how many bytes all tags may need. mostOfNamespace is the limit for
	// the ImageRepositories of one namespace, so one tenant cannot use all of it.
	mostTagMemory   = 32 << 20
	mostOfNamespace = mostTagMemory / 4
)

// List asks a registry for the tags of an ImageRepository. It returns within a limited
// time. The Store asks again after any error except [registry.ErrInvalid].
type List func(ctx context.Context, repository types.NamespacedName) (registry.Tags, error)

// Scan describes Flux's last scan of an ImageRepository.
type Scan struct {
	// Repository is the ImageRepository.
	Repository types.NamespacedName
	// Revision changes if the scan found other tags, or was of another image.
	Revision string
	// Count is how many tags the scan found. Shown are the tags that Flux shows.
	Count int
	Shown []string
}

// isIn reports whether the tags may be those that the scan found, or newer ones.
func (s Scan) isIn(tags []string) bool {
	return len(tags) >= s.Count && !slices.ContainsFunc(s.Shown, func(tag string) bool {
		_, found := slices.BinarySearch(tags, tag)
		return !found
	})
}

// Listing contains the known tags of an ImageRepository.
type Listing struct {
	// Tags are the tags that the registry had when it was last listed, sorted as strings.
	// All callers share them. Do not modify them.
	Tags []string
	// Complete is true if these are all tags, and they were listed after the requested
	// scan.
	Complete bool
	// Cut is true if there are more tags than the limits allow.
	Cut bool
}

// tagLists stores the tags of ImageRepositories for as long as Rollouts request them.
type tagLists struct {
	list  List
	log   logr.Logger
	queue background.Queue[types.NamespacedName]

	mu       sync.Mutex
	listings map[types.NamespacedName]*listing
	asked    map[types.NamespacedName]types.NamespacedName // ImageRepositories, by Rollout
	memory   map[string]int                                // of the tags, by namespace; the empty key is the total
	wake     func(types.NamespacedName)
}

// listing is the listing of one ImageRepository.
type listing struct {
	waiters map[types.NamespacedName]bool // Rollouts
	access  string
	scan    Scan   // the scan of the last request
	listed  string // revision of the scan that the tags belong to
	failing bool
	tags    registry.Tags
}

func newTagLists(list List, log logr.Logger, clock clock.WithTicker, wake func(types.NamespacedName)) *tagLists {
	namespace := func(repository types.NamespacedName) string { return repository.Namespace }
	return &tagLists{
		list: list, log: log, wake: wake, queue: background.NewQueue(namespace, firstRetry, lastRetry, clock),
		listings: map[types.NamespacedName]*listing{},
		asked:    map[types.NamespacedName]types.NamespacedName{},
		memory:   map[string]int{},
	}
}

// ask returns the known tags, and queues a listing if there was none since the scan.
func (t *tagLists) ask(rollout types.NamespacedName, access string, scan Scan) Listing {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, ok := t.asked[rollout]; ok && before != scan.Repository {
		t.leave(rollout)
	}
	l := t.join(rollout, scan.Repository)
	if l.scan.Revision != scan.Revision || l.failing && l.access != access {
		// A copy, because it is stored for longer than the object that contains it.
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

// leave drops the tags with the last Rollout that requests them.
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

// due returns the scan whose tags must be listed, and false if they are already listed.
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
	case l == nil: // no longer requested
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

// replace stores the listed tags and the scan that they belong to. If anything changed,
// it wakes the Rollouts that request them.
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

// fail queues another listing for later, if that may succeed. It logs the failure once,
// until the tags can be listed again.
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

// keep replaces the tags of an ImageRepository. If they exceed the memory limits, it
// stores none.
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

// size returns how many bytes tags need in memory.
func size(tags []string) int {
	const each = 32 // the header of the string, and the rounding of allocations
	sum := each * len(tags)
	for _, tag := range tags {
		sum += len(tag)
	}
	return sum
}

// SPDX-License-Identifier: Apache-2.0

// Package imageinfo caches the metadata of releases in registries, and the tags of images
// where Flux does not show all of them. It fetches what is missing independently of the
// reconcilers: none of them ever waits for a registry.
//
// The reconciler of a Rollout calls [Store.Ask] with the releases whose metadata is
// missing in the Rollout's status. Ask returns the known metadata. The Store fetches the
// rest, and the Rollout is reconciled again when all of it has been tried once. Thus one
// write stores all of it. The Store stops fetching images that no Rollout requests any
// more. A Rollout with a complete status requests nothing.
//
// [Store.Tags] returns the tags of an ImageRepository. They are listed once for each scan
// that found other tags than the one before.
package imageinfo

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxrollouts/rollout-controller/internal/background"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
)

const (
	// mostAnswers is how many answers are stored: those that were used last.
	mostAnswers = 10_000
	// mostLookups is how many images may be requested before others must wait. Above it,
	// namespaces that request few images may use as much again.
	mostLookups = 10_000
	// mostLookupsOf is how many lookups count as few for the ImageRepositories of one
	// namespace.
	mostLookupsOf = 2_000
	// After a failed attempt, an image is tried again after these pauses.
	firstRetry = 5 * time.Second
	lastRetry  = 10 * time.Minute
	// slowdown is the factor between one pause and the next if the registry answered that
	// it does not have the image.
	slowdown = 3
	// longestReason is how many characters of the reason for a failed request are logged.
	longestReason = 1024
)

// Read asks a registry for the metadata of an image. It returns within a limited time.
// The Store asks again after any error except [registry.ErrInvalid].
type Read func(context.Context, registry.Image) (releases.Metadata, error)

// Store stores answers and fetches the missing ones. Add it to the manager, and add its
// Source to the controller whose reconciler calls Ask.
type Store struct {
	read  Read
	log   logr.Logger
	queue background.Queue[registry.Image]
	woken background.Waker

	mu      sync.Mutex
	answers *lru.Cache
	lookups map[registry.Image]*lookup
	waiters map[types.NamespacedName]*waiter
	// rejected contains the Rollouts that called Ask when there were too many lookups,
	// each with the namespace of an ImageRepository whose image it requested.
	rejected map[types.NamespacedName]string
	// repositories are the ImageRepositories of the lookups.
	repositories map[types.NamespacedName]*repository
	// ofNamespace counts the lookups by the namespaces of their ImageRepositories.
	ofNamespace map[string]int
	wake        func(types.NamespacedName)

	tags *tagLists
}

// repository is an ImageRepository whose images Rollouts request.
type repository struct {
	lookups int
	failing bool // the failure to read its images is logged
}

// lookup is an image that Rollouts request.
type lookup struct {
	by    map[types.NamespacedName]bool
	state state
	// absent is how often in a row the registry answered that it does not have the image.
	absent int
}

// state is the progress of a lookup.
type state int

const (
	open   state = iota // will be tried as soon as possible
	failed              // was tried, and may be tried again later
	known               // the answer is stored
)

// waiter is a Rollout that needs metadata.
type waiter struct {
	access  string
	images  []registry.Image
	changed bool // answers arrived since its last Ask
}

// New returns a Store that fetches nothing before it is started.
func New(read Read, list List, log logr.Logger) *Store {
	return newStore(read, list, log, clock.RealClock{})
}

func newStore(read Read, list List, log logr.Logger, clock clock.WithTicker) *Store {
	s := &Store{
		read:         read,
		log:          log,
		queue:        background.NewQueue(func(image registry.Image) string { return image.Repository.Namespace }, firstRetry, lastRetry, clock),
		answers:      lru.New(mostAnswers),
		lookups:      map[registry.Image]*lookup{},
		waiters:      map[types.NamespacedName]*waiter{},
		rejected:     map[types.NamespacedName]string{},
		repositories: map[types.NamespacedName]*repository{},
		ofNamespace:  map[string]int{},
	}
	s.wake = s.woken.Wake
	s.tags = newTagLists(list, log, clock, s.wake)
	return s
}

// Ask returns what is known of the images, and queues the others to be fetched for the
// Rollout, in this order. They replace the images of its last call. Images that could not
// be fetched are tried at once if access has changed. access is a value that changes when
// a problem with the registry may be fixed.
func (s *Store) Ask(rollout types.NamespacedName, access string, images []registry.Image) []releases.Metadata {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.waiters[rollout]
	delete(s.rejected, rollout)
	delete(s.waiters, rollout)
	var answers []releases.Metadata
	if len(images) > 0 {
		accessChanged := before != nil && before.access != access
		next := &waiter{access: access}
		s.waiters[rollout] = next
		for _, image := range images {
			if answer, ok := s.answers.Get(image); ok {
				answers = append(answers, answer.(releases.Metadata))
			}
			if s.request(rollout, image, accessChanged) {
				next.images = append(next.images, image)
			}
		}
	}
	if before != nil {
		s.drop(rollout, before.images)
	}
	return answers
}

// Forget drops all requests of a Rollout.
func (s *Store) Forget(rollout types.NamespacedName) {
	s.Ask(rollout, "", nil)
	s.tags.forget(rollout)
}

// Tags returns the tags in the registry that were listed for a scan, or for an earlier
// one. If they were not listed for this scan, it queues a listing for the Rollout. It
// replaces the last request of the Rollout; a scan without a revision requests nothing. A
// failed listing is tried at once if access has changed.
func (s *Store) Tags(rollout types.NamespacedName, access string, scan Scan) Listing {
	if scan.Revision == "" {
		s.tags.forget(rollout)
		return Listing{}
	}
	return s.tags.ask(rollout, access, scan)
}

// Source returns a source that wakes the Rollouts for which answers have arrived.
func (s *Store) Source() source.Source { return s.woken.Source() }

// NeedLeaderElection returns true: only a reconciler calls Ask.
func (s *Store) NeedLeaderElection() bool { return true }

// Start fetches until ctx ends. It returns when the last request has ended.
func (s *Store) Start(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { background.Serve(ctx, s.queue, s.fetch) })
	running.Go(func() { background.Serve(ctx, s.tags.queue, s.tags.fetch) })
	running.Wait()
	return nil
}

func (s *Store) fetch(ctx context.Context, image registry.Image) {
	if s.pending(image) {
		metadata, err := s.read(ctx, image)
		s.conclude(ctx, image, metadata, err)
	}
}

func (s *Store) conclude(ctx context.Context, image registry.Image, metadata releases.Metadata, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.answer(image, metadata)
	case ctx.Err() == nil:
		s.fail(image, err)
		s.retry(image, err)
	}
}

// retry queues the image for a later attempt, if that may succeed.
func (s *Store) retry(image registry.Image, err error) {
	switch {
	case errors.Is(err, registry.ErrInvalid):
		s.queue.Forget(image)
	case errors.Is(err, registry.ErrNotFound):
		s.queue.Forget(image)
		s.retryAbsent(image)
	default:
		s.queue.AddRateLimited(image)
	}
}

// retryAbsent queues an image that the registry does not have for another attempt.
// Registries replicate: an image that one copy knows may arrive in another within some
// seconds. An image that stays away was probably deleted, and is requested rarely.
func (s *Store) retryAbsent(image registry.Image) {
	w := s.lookups[image]
	if w == nil {
		return // no longer requested
	}
	pause := firstRetry
	for i := 0; i < w.absent && pause < lastRetry; i++ {
		pause *= slowdown
	}
	w.absent++
	s.queue.AddAfter(image, min(pause, lastRetry))
}

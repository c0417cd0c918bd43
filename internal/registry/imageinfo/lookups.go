// SPDX-License-Identifier: Apache-2.0

package imageinfo

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// request records that a Rollout needs an image, and queues the image unless the answer
// is known. It returns false if no lookup was recorded: the answer is permanent, or there
// are too many lookups already.
func (s *Store) request(rollout types.NamespacedName, image registry.Image, accessChanged bool) bool {
	_, answered := s.answers.Get(image)
	w := s.lookups[image]
	switch {
	case w == nil && answered && image.Digest != "":
		return false
	case w == nil && s.isFull(image.Repository.Namespace):
		s.rejected[rollout] = image.Repository.Namespace
		return false
	case w == nil:
		w = s.newLookup(image)
		s.try(image, w)
	case !answered && w.state == known, w.state == failed && accessChanged:
		s.try(image, w)
	}
	w.by[rollout] = true
	return true
}

// isFull reports whether no more images of a namespace may be requested now.
func (s *Store) isFull(namespace string) bool { return s.exceeds(namespace, 1) }

// exceeds reports whether the current number of lookups, multiplied by times, would
// exceed the size limit. One namespace may use the whole limit while no other needs it.
// Others may then use as much again.
func (s *Store) exceeds(namespace string, times int) bool {
	all, its := times*len(s.lookups), times*s.ofNamespace[namespace]
	return all >= 2*mostLookups || all >= mostLookups && its >= mostLookupsOf
}

func (s *Store) newLookup(image registry.Image) *lookup {
	w := &lookup{by: map[types.NamespacedName]bool{}}
	s.lookups[image] = w
	if s.repositories[image.Repository] == nil {
		s.repositories[image.Repository] = &repository{}
	}
	s.repositories[image.Repository].lookups++
	s.ofNamespace[image.Repository.Namespace]++
	return w
}

// dropLookup removes an image that no Rollout requests any more. With the last one of an
// ImageRepository, it also removes the state of that ImageRepository, which may have been
// deleted. An answer about a tag is dropped with the last lookup for it, because the tag
// may move.
func (s *Store) dropLookup(image registry.Image) {
	delete(s.lookups, image)
	s.queue.Forget(image)
	if image.Digest == "" {
		s.answers.Remove(image)
	}
	of := s.repositories[image.Repository]
	if of.lookups--; of.lookups == 0 {
		delete(s.repositories, image.Repository)
	}
	namespace := image.Repository.Namespace
	if s.ofNamespace[namespace]--; s.ofNamespace[namespace] == 0 {
		delete(s.ofNamespace, namespace)
	}
}

// try queues an image to be fetched as soon as possible.
func (s *Store) try(image registry.Image, w *lookup) {
	w.state, w.absent = open, 0
	s.queue.Forget(image)
	s.queue.Add(image)
}

// drop removes the images that a Rollout no longer requests.
func (s *Store) drop(rollout types.NamespacedName, images []registry.Image) {
	waiter := s.waiters[rollout]
	for _, image := range images {
		w := s.lookups[image]
		if w == nil || waiter != nil && slices.Contains(waiter.images, image) {
			continue
		}
		delete(w.by, rollout)
		if len(w.by) == 0 {
			s.dropLookup(image)
		}
	}
	if len(s.lookups) >= mostLookups {
		return
	}
	for rollout, namespace := range s.rejected {
		if !s.exceeds(namespace, 2) {
			s.wake(rollout)
		}
	}
}

// pending reports whether the image must be fetched.
func (s *Store) pending(image registry.Image) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.lookups[image]
	return w != nil && w.state != known
}

// answer stores an answer. If the image could not be read before, it also tries all other
// failed images of the ImageRepository, so they become known together.
func (s *Store) answer(image registry.Image, metadata releases.Metadata) {
	s.queue.Forget(image)
	w := s.lookups[image]
	if w == nil {
		return // no longer requested
	}
	s.answers.Add(image, metadata)
	byDigest := image
	byDigest.Digest = metadata.Digest
	s.answers.Add(byDigest, metadata)
	if w.state == failed {
		s.tryOthers(image)
	}
	w.state = known
	s.repositories[image.Repository].failing = false
	for rollout := range w.by {
		s.waiters[rollout].changed = true
	}
	s.notify(w)
}

func (s *Store) tryOthers(image registry.Image) {
	for other, w := range s.lookups {
		if other != image && other.Repository == image.Repository && w.state == failed {
			s.try(other, w)
		}
	}
}

// fail records that an image cannot be read for the time being. It logs this once per
// ImageRepository, until one of its images can be read.
func (s *Store) fail(image registry.Image, err error) {
	w := s.lookups[image]
	if w == nil {
		return // no longer requested
	}
	log, of := s.log.WithValues("imageRepository", image.Repository.String()), s.repositories[image.Repository]
	if of.failing {
		log = log.V(1)
	}
	of.failing = true
	log.Info("metadata of a release cannot be read", "reason", truncate.Text(err.Error(), longestReason))
	w.state = failed
	s.notify(w)
}

// notify wakes the Rollouts that request the image, if they have new answers and all
// their images have been tried.
func (s *Store) notify(w *lookup) {
	for _, rollout := range slices.Collect(maps.Keys(w.by)) {
		waiter := s.waiters[rollout]
		if !waiter.changed || slices.ContainsFunc(waiter.images, s.isOpen) {
			continue
		}
		waiter.changed = false
		s.wake(rollout)
	}
}

func (s *Store) isOpen(image registry.Image) bool {
	w := s.lookups[image]
	return w != nil && w.state == open
}

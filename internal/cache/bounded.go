// SPDX-License-Identifier: Apache-2.0

package cache

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounded returns a transform for kinds of which a cache keeps what the given one keeps.
// It keeps no more of an object than of those of other kinds, and marks it if that is not
// all of it.
func Bounded(keep toolscache.TransformFunc) toolscache.TransformFunc {
	t := new(trimmer)
	return func(o any) (any, error) {
		kept, err := keep(o)
		if err != nil {
			return nil, err
		}
		if kept, ok := kept.(client.Object); ok {
			t.packBounded(kept)
			t.shareMetadata(kept)
		}
		return kept, nil
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mappings remembers the resources of kinds. A client looks up the resource for every
// patch of metadata. The mapper behind it also keeps every kind forever, but composes
// each answer again.
type mappings struct {
	meta.RESTMapper
	known sync.Map // *meta.RESTMapping by schema.GroupVersionKind
}

// RESTMapping returns the resource of a kind. It remembers the answers for a single
// version.
func (m *mappings) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	of := kind.WithVersion(versions[0])
	if known, ok := m.known.Load(of); ok {
		return known.(*meta.RESTMapping), nil
	}
	found, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.known.Store(of, found)
	}
	return found, err
}

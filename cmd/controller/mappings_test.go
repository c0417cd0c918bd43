// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// countedMapper fails until serves is set.
type countedMapper struct {
	meta.RESTMapper
	serves bool
	asked  int
}

func (m *countedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.asked++
	if !m.serves {
		return nil, errors.New("nobody serves it")
	}
	return &meta.RESTMapping{GroupVersionKind: kind.WithVersion(versions[0])}, nil
}

func TestMappingsRememberOnlyAnswers(t *testing.T) {
	inner := &countedMapper{}
	m := &mappings{RESTMapper: inner}
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for range 2 {
		if _, err := m.RESTMapping(kind, "v1"); err == nil {
			t.Error("a kind that nobody serves has a resource")
		}
	}
	inner.serves = true
	for _, version := range []string{"v1", "v1", "v2", "v2", "v1"} {
		found, err := m.RESTMapping(kind, version)
		if err != nil || found.GroupVersionKind != kind.WithVersion(version) {
			t.Errorf("%s is %v, %v", version, found, err)
		}
	}
	if inner.asked != 4 {
		t.Errorf("the mapper was asked %d times, want twice in vain and once for each version", inner.asked)
	}
}

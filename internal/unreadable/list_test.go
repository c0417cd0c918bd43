// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestItemsOfAListComeInTheirOrder(t *testing.T) {
	for name, list := range map[string]string{
		"metadata first": `{"kind":"JobList","metadata":{"continue":"more","resourceVersion":"7"},"items":[{"a":[1,{}]},{"b":"]"}]}`,
		"metadata last":  `{"items":[{"a":[1,{}]},{"b":"]"}],"other":[{}],"metadata":{"resourceVersion":"7","continue":"more"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var items []string
			metadata, err := EachItem(strings.NewReader(list), func(item json.RawMessage) error {
				items = append(items, string(item))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{`{"a":[1,{}]}`, `{"b":"]"}`}, items); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, metadata); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

// TestListMayHaveNoItems: the API server writes null for an empty list of metadata.
func TestListMayHaveNoItems(t *testing.T) {
	for _, items := range []string{"null", "[]"} {
		metadata, err := EachItem(strings.NewReader(`{"items":`+items+`,"metadata":{"resourceVersion":"7"}}`), func(json.RawMessage) error {
			t.Errorf("%s has an item", items)
			return nil
		})
		if err != nil || metadata.ResourceVersion != "7" {
			t.Errorf("%s: %v, %v", items, metadata, err)
		}
	}
}

func TestInvalidListIsAnError(t *testing.T) {
	for name, list := range map[string]string{
		"nothing": "", "another type": `[]`, "items that are no list": `{"items":{}}`, "no JSON": "<html>",
		"breaks off in an item": `{"items":[{"metadata":`, "breaks off after one": `{"items":[{}`, "breaks off after all": `{"items":[{}]`,
		"metadata of another type": `{"metadata":[],"items":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := EachItem(strings.NewReader(list), func(json.RawMessage) error { return nil }); err == nil {
				t.Error("it is taken for a list")
			}
		})
	}
}

func TestErrorEndsTheList(t *testing.T) {
	enough, seen := errors.New("enough"), 0
	_, err := EachItem(strings.NewReader(`{"items":[{},{},{}]}`), func(json.RawMessage) error {
		seen++
		return enough
	})
	if !errors.Is(err, enough) || seen != 1 {
		t.Errorf("%v, after %d items", err, seen)
	}
}

// TestOneItemIsInMemory: a tenant can create some hundred objects of a megabyte each, and
// a page of a list would contain all of them.
func TestOneItemIsInMemory(t *testing.T) {
	const items, size, most = 200, 1 << 20, 16 << 20
	item := `{"spec":"` + strings.Repeat("x", size) + `"}`
	parts := []io.Reader{strings.NewReader(`{"items":[` + item)}
	for range items - 1 {
		parts = append(parts, strings.NewReader(","), strings.NewReader(item))
	}
	parts = append(parts, strings.NewReader(`]}`))
	before, seen := inUse(), 0
	_, err := EachItem(io.MultiReader(parts...), func(raw json.RawMessage) error {
		if seen++; seen%50 != 0 {
			return nil
		}
		if now := inUse(); now > before+most {
			t.Errorf("%d MiB are in use after %d items of %d KiB, %d before", now>>20, seen, len(raw)>>10, before>>20)
		}
		return nil
	})
	if err != nil || seen != items {
		t.Errorf("%d items: %v", seen, err)
	}
}

// TestMemoryOfALargeItemIsNotKept: many lists are read at the same time, each of which may
// have had one large item.
func TestMemoryOfALargeItemIsNotKept(t *testing.T) {
	const size, most = 8 << 20, 1 << 20
	list := io.MultiReader(strings.NewReader(`{"items":[{"spec":"`+strings.Repeat("x", size)+`"}`),
		strings.NewReader(`, {"a":[1,{}]},{"b":"]"}],"metadata":{"continue":"more"}}`))
	var small []string
	before, after := inUse(), uint64(0)
	metadata, err := EachItem(list, func(item json.RawMessage) error {
		if len(item) < size {
			small = append(small, string(item))
			after = inUse()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`{"a":[1,{}]}`, `{"b":"]"}`}, small); diff != "" || metadata.Continue != "more" {
		t.Errorf("metadata %v, small items (-want +got):\n%s", metadata, diff)
	}
	if after > before+most {
		t.Errorf("%d KiB are in use after the large item, %d before", after>>10, before>>10)
	}
}

func inUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

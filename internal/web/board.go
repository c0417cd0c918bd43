// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// keptFrames is how many frames a tab may have missed and still go on without reading all.
const keptFrames = 4096

// Frame is a change of the rows.
type Frame struct {
	Number int                    `json:"-"`
	Set    []Row                  `json:"set,omitempty"`
	Gone   []types.NamespacedName `json:"gone,omitempty"`
}

// Board has the rows, and the newest changes of them. Rollouts themselves are not kept.
type Board struct {
	epoch   string
	mu      sync.Mutex
	rows    map[types.NamespacedName]Row
	frames  []Frame
	number  int
	changed chan struct{}
}

// NewBoard returns a board without rows. Epoch tells it from those of other processes.
func NewBoard(epoch string) *Board {
	return &Board{epoch: epoch, rows: map[types.NamespacedName]Row{}, changed: make(chan struct{})}
}

// Put sets a row.
func (b *Board) Put(row Row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := types.NamespacedName{Namespace: row.Namespace, Name: row.Name}
	if old, known := b.rows[key]; known && reflect.DeepEqual(old, row) {
		return
	}
	b.rows[key] = row
	b.add(Frame{Set: []Row{row}})
}

// Remove removes a row.
func (b *Board) Remove(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.rows[key]; known {
		delete(b.rows, key)
		b.add(Frame{Gone: []types.NamespacedName{key}})
	}
}

// Replace sets all rows, as a list has them.
func (b *Board) Replace(rows []Row) {
	listed := map[types.NamespacedName]bool{}
	for _, row := range rows {
		listed[types.NamespacedName{Namespace: row.Namespace, Name: row.Name}] = true
		b.Put(row)
	}
	all, _ := b.All()
	for _, row := range all {
		if key := (types.NamespacedName{Namespace: row.Namespace, Name: row.Name}); !listed[key] {
			b.Remove(key)
		}
	}
}

func (b *Board) add(f Frame) {
	b.number++
	f.Number = b.number
	b.frames = append(b.frames, f)
	if len(b.frames) > keptFrames {
		b.frames = slices.Clone(b.frames[len(b.frames)-keptFrames:])
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// All returns the rows by namespace and name, and the revision after which changes follow.
func (b *Board) All() ([]Row, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := slices.SortedFunc(maps.Values(b.rows), func(x, y Row) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	return rows, b.revision(b.number)
}

func (b *Board) revision(number int) string { return fmt.Sprintf("%s:%d", b.epoch, number) }

// After returns what changed after a revision as one frame, its revision, and what is closed
// at the next change. ok is false if the changes are not known any more.
func (b *Board) After(revision string) (f Frame, now string, next <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	epoch, text, _ := strings.Cut(revision, ":")
	number, err := strconv.Atoi(text)
	if err != nil || epoch != b.epoch || number > b.number || number < b.number-len(b.frames) {
		return Frame{}, b.revision(b.number), b.changed, false
	}
	return b.joined(b.frames[len(b.frames)-(b.number-number):]), b.revision(b.number), b.changed, true
}

// joined returns the last state of each row that some frames are about.
func (b *Board) joined(frames []Frame) Frame {
	all, seen := Frame{Number: b.number}, map[types.NamespacedName]bool{}
	touch := func(key types.NamespacedName) {
		row, is := b.rows[key]
		switch {
		case seen[key]:
		case is:
			all.Set = append(all.Set, row)
		default:
			all.Gone = append(all.Gone, key)
		}
		seen[key] = true
	}
	for _, f := range frames {
		for _, row := range f.Set {
			touch(types.NamespacedName{Namespace: row.Namespace, Name: row.Name})
		}
		for _, key := range f.Gone {
			touch(key)
		}
	}
	return all
}

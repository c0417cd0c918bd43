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
	Reading
	Set  []Row                  `json:"set,omitempty"`
	Gone []types.NamespacedName `json:"gone,omitempty"`
}

// Reading says how the rows are read.
type Reading struct {
	// Complete is true once all Rollouts were read.
	Complete bool `json:"complete"`
	// Away is true while the API server does not answer.
	Away bool `json:"away"`
}

// Board has the rows, and the newest changes of them. Rollouts themselves are not kept.
type Board struct {
	epoch   string
	mu      sync.Mutex
	rows    map[types.NamespacedName]Row
	reading Reading
	frames  []Frame
	number  int
	changed chan struct{}
}

// NewBoard returns a board without rows. Its revisions are unlike those of other processes.
func NewBoard() *Board {
	return &Board{epoch: random(), rows: map[types.NamespacedName]Row{}, changed: make(chan struct{})}
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

// Reading returns how the rows are read.
func (b *Board) Reading() Reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reading
}

// Complete notes that all Rollouts were read.
func (b *Board) Complete() { b.note(func(r *Reading) { r.Complete = true }) }

// Away notes whether the API server does not answer.
func (b *Board) Away(away bool) { b.note(func(r *Reading) { r.Away = away }) }

func (b *Board) note(change func(*Reading)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.reading
	if change(&b.reading); b.reading != before {
		b.add(Frame{})
	}
}

func (b *Board) add(f Frame) {
	b.number++
	b.frames = append(b.frames, f)
	if len(b.frames) > keptFrames {
		b.frames = slices.Clone(b.frames[len(b.frames)-keptFrames:])
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// Namespaces returns those that have rows.
func (b *Board) Namespaces() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]bool{}
	for key := range b.rows {
		all[key.Namespace] = true
	}
	return all
}

// All returns the rows that are seen by namespace and name, and the revision after which
// changes follow.
func (b *Board) All(seen Sight) ([]Row, Reading, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := slices.AppendSeq([]Row{}, maps.Values(b.rows))
	rows = slices.DeleteFunc(rows, func(row Row) bool { return !seen.Sees(row.Namespace) })
	slices.SortFunc(rows, func(x, y Row) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	return rows, b.reading, b.revision(seen)
}

// revision names what somebody has who has read all that is seen now. It names what is seen,
// too: whose rights have changed since then reads all again.
func (b *Board) revision(seen Sight) string {
	return fmt.Sprintf("%s:%d%s", b.epoch, b.number, seen.suffix())
}

// After returns what changed after a revision of what is seen as one frame, its revision, and
// what is closed at the next change. ok is false if the changes are not known any more.
func (b *Board) After(revision string, seen Sight) (f Frame, now string, next <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, next = b.revision(seen), b.changed
	revision, same := strings.CutSuffix(revision, seen.suffix())
	epoch, text, _ := strings.Cut(revision, ":")
	number, err := strconv.Atoi(text)
	if err != nil || !same || epoch != b.epoch || number > b.number || number < b.number-len(b.frames) {
		return Frame{}, now, next, false
	}
	return b.joined(b.frames[len(b.frames)-(b.number-number):], seen), now, next, true
}

// joined returns the last state of each row that some frames are about.
func (b *Board) joined(frames []Frame, seen Sight) Frame {
	all, known := Frame{Reading: b.reading}, map[types.NamespacedName]bool{}
	touch := func(key types.NamespacedName) {
		row, is := b.rows[key]
		switch {
		case known[key] || !seen.Sees(key.Namespace):
		case is:
			all.Set = append(all.Set, row)
		default:
			all.Gone = append(all.Gone, key)
		}
		known[key] = true
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

// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// roles are rights that a test changes, and how often they were asked for.
type roles struct {
	mu    sync.Mutex
	may   map[string]bool
	asked atomic.Int32
	err   error
}

func (r *roles) review(_ context.Context, namespace string) (bool, error) {
	r.asked.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.may[namespace], r.err
}

// change changes the rights.
func (r *roles) change(to func(*roles)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to(r)
}

// Proposition 1: whatever changes, rows and rights, whoever follows has the rows that he may
// list, and was told of no others.
func TestWhoFollowsHasTheRowsThatHeMayList(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	b, tab := NewBoard(), map[types.NamespacedName]Row{}
	now := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	granted := &roles{may: map[string]bool{}}
	rights := &Rights{May: granted.review, Board: b, Now: func() time.Time { return now }}
	at := ""
	for range 1000 {
		for range random.IntN(9) {
			row := Row{Namespace: fmt.Sprint("n", random.IntN(5)), Name: fmt.Sprint(random.IntN(4)), Version: fmt.Sprint(random.IntN(9))}
			if random.IntN(3) == 0 {
				b.Remove(types.NamespacedName{Namespace: row.Namespace, Name: row.Name})
			} else {
				b.Put(row)
			}
		}
		if random.IntN(3) == 0 {
			granted.may = map[string]bool{"": random.IntN(4) == 0, fmt.Sprint("n", random.IntN(5)): true, fmt.Sprint("n", random.IntN(5)): true}
			now = now.Add(rightsLast)
		}
		seen, err := rights.Sight(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f, revision, _, ok := b.After(at, seen)
		if at = revision; !ok {
			f, tab = Frame{}, map[types.NamespacedName]Row{}
			f.Set, _, at = b.All(seen)
		}
		may := func(namespace string) bool { return granted.may[""] || granted.may[namespace] }
		for _, row := range f.Set {
			tab[types.NamespacedName{Namespace: row.Namespace, Name: row.Name}] = row
		}
		for _, key := range f.Gone {
			if delete(tab, key); !may(key.Namespace) {
				t.Fatalf("it is said that %s is gone", key)
			}
		}
		want := maps.Clone(b.rows)
		maps.DeleteFunc(want, func(key types.NamespacedName, _ Row) bool { return !may(key.Namespace) })
		if diff := cmp.Diff(want, tab); diff != "" {
			t.Fatalf("(-may list +tab):\n%s", diff)
		}
	}
}

func TestRightsAreAskedForOnceInAWhile(t *testing.T) {
	b, now := NewBoard(), time.Now()
	for i := range 40 {
		b.Put(Row{Namespace: fmt.Sprint("n", i), Name: "shop"})
	}
	granted := &roles{may: map[string]bool{"n1": true, "n7": true}}
	rights := &Rights{May: granted.review, Board: b, Now: func() time.Time { return now }}
	see := func(want string, asked int32) {
		t.Helper()
		before := granted.asked.Load()
		seen, err := rights.Sight(t.Context())
		if got := strings.Join(seen.Namespaces(), " "); err != nil || got != want || granted.asked.Load()-before != asked {
			t.Errorf("sees %q after %d questions, %v; want %q after %d", got, granted.asked.Load()-before, err, want, asked)
		}
	}
	see("n1 n7", 41)
	see("n1 n7", 0)
	granted.may["new"] = true
	now = now.Add(rightsLast - 1)
	b.Put(Row{Namespace: "new", Name: "shop"})
	see("n1 n7 new", 1)
	delete(granted.may, "n7")
	now = now.Add(1)
	see("n1 new", 42)
	granted.may[""] = true
	now = now.Add(rightsLast)
	see("", 1)
	if seen, err := rights.Sight(t.Context()); err != nil || !seen.Sees("any") {
		t.Errorf("%+v %v", seen, err)
	}
	now = now.Add(rightsLast)
	granted.err = errors.New("the API server is away")
	if seen, err := rights.Sight(t.Context()); err == nil || seen.Sees("n1") {
		t.Errorf("whoever cannot be asked for sees %+v", seen)
	}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

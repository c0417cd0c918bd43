// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// Who follows the changes, or reads anew where they are not known, has the rows that
// everybody has.
func TestWhoFollowsHasAllRows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	b, tab := NewBoard(), map[types.NamespacedName]Row{}
	at := b.epoch + ":0"
	resets := 0
	for range 300 {
		for range random.IntN(60) {
			row := Row{Namespace: "n", Name: fmt.Sprint(random.IntN(20)), Version: fmt.Sprint(random.IntN(9))}
			if random.IntN(3) == 0 {
				b.Remove(types.NamespacedName{Namespace: "n", Name: row.Name})
			} else {
				b.Put(row)
			}
		}
		if random.IntN(50) == 0 {
			at = "another:1"
		}
		f, now, _, ok := b.After(at, Everything())
		if at = now; !ok {
			resets++
			var rows []Row
			rows, _, at = b.All(Everything())
			f, tab = Frame{Set: rows}, map[types.NamespacedName]Row{}
		}
		for _, row := range f.Set {
			tab[types.NamespacedName{Namespace: row.Namespace, Name: row.Name}] = row
		}
		for _, key := range f.Gone {
			delete(tab, key)
		}
		if diff := cmp.Diff(b.rows, tab); diff != "" {
			t.Fatalf("(-rows +tab):\n%s", diff)
		}
	}
	if resets == 0 {
		t.Error("nothing was read anew")
	}
}

func TestOldAndForeignRevisionsAreReset(t *testing.T) {
	b := NewBoard()
	b.epoch = "e"
	for i := range keptFrames + 2 {
		b.Put(Row{Name: "a", Version: fmt.Sprint(i)})
	}
	for revision, want := range map[string]bool{
		"": false, "e": false, "e:x": false, "e:-1": false, "f:4000": false, "e:1": false, "e:2": true, "e:4098": true, "e:4099": false,
	} {
		if _, _, _, ok := b.After(revision, Everything()); ok != want {
			t.Errorf("%q: %t, want %t", revision, ok, want)
		}
	}
}

// A tab hears of it when the API server does not answer, and when all was read, once each.
func TestHowTheRowsAreReadIsSaid(t *testing.T) {
	b := NewBoard()
	b.epoch = "e"
	b.Away(false)
	b.Complete()
	b.Away(true)
	b.Away(true)
	f, now, _, ok := b.After("e:0", Everything())
	if want := (Reading{Complete: true, Away: true}); !ok || f.Reading != want || now != "e:2" {
		t.Errorf("%+v at %s, %t", f, now, ok)
	}
}

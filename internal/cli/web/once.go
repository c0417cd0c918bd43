// SPDX-License-Identifier: Apache-2.0

package web

import (
	"maps"
	"net/http"
	"sync"
	"time"
)

// answers are those to changes, by their key.
type answers struct {
	mu    sync.Mutex
	known map[string]*kept
}

// kept is the answer to a change. It is there once done is closed.
type kept struct {
	content string
	until   time.Time
	done    chan struct{}
	code    int
	object  any
}

// once makes a change, or returns the answer that it had: also while it is made. A change
// that may not have reached the API server is made again: what it has done already is
// nothing to do then.
func (a *answers) once(key, content string, now func() time.Time, do func() (int, any)) (int, any) {
	k, mine := a.enter(key, content, now())
	switch {
	case mine:
		a.make(key, k, do)
	case k.content != content:
		return http.StatusUnprocessableEntity, failure(http.StatusUnprocessableEntity, "this %s was used for another change", keyHeader)
	}
	<-k.done
	return k.code, k.object
}

// enter returns the answer of a key, and whether it is new and its caller must give it.
func (a *answers) enter(key, content string, now time.Time) (k *kept, mine bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.known, func(_ string, k *kept) bool { return now.After(k.until) })
	if k, known := a.known[key]; known {
		return k, false
	}
	if a.known == nil {
		a.known = map[string]*kept{}
	}
	k = &kept{content: content, until: now.Add(keptAnswers), done: make(chan struct{})}
	a.known[key] = k
	return k, true
}

func (a *answers) make(key string, k *kept, do func() (int, any)) {
	defer close(k.done)
	if k.code, k.object = do(); k.code >= http.StatusInternalServerError {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.known, key)
	}
}

// perMinute counts requests.
type perMinute struct {
	mu    sync.Mutex
	since time.Time
	count int
}

// admits reports whether one more may come.
func (p *perMinute) admits(now time.Time, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.since) >= time.Minute {
		p.since, p.count = now, 0
	}
	p.count++
	return p.count <= most
}

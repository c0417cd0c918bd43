// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"sync"
	"time"
)

// keyLasts is how long the key in the address can be exchanged.
const keyLasts = time.Minute

// Keys are the key in the address that is opened, and the session that it is exchanged for.
// The address may be seen by others: in the list of processes, in the history of the
// browser. So the key is good for one exchange, soon.
type Keys struct {
	viewer  *Viewer
	mu      sync.Mutex
	key     string
	until   time.Time
	session string
}

// sessionHeader has the session on the machine of a user.
const sessionHeader = "Rollouts-Session"

// NewKeys makes a key at a time. Whoever exchanges it sees all rows.
func NewKeys(now time.Time, source Source) *Keys {
	all := func(context.Context) (Sight, error) { return Everything(), nil }
	return &Keys{viewer: &Viewer{Source: source, Sight: all}, key: random(), until: now.Add(keyLasts)}
}

// Acting returns the keys for a viewer who can make changes.
func (k *Keys) Acting(by Actions) *Keys {
	k.viewer.Actions = by
	return k
}

// random returns 256 bits.
func random() string {
	bits := make([]byte, 32)
	_, _ = rand.Read(bits) // it never fails: the process would end
	return base64.RawURLEncoding.EncodeToString(bits)
}

// Fragment is what the address ends with. Browsers do not send it.
func (k *Keys) Fragment() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return "#k=" + k.key
}

// Why a key is refused.
var (
	errWrongKey = errors.New("this is not the key of this server")
	errKeyUsed  = errors.New("the key was used before: if that was not you, press Ctrl-C")
	errKeyLate  = errors.New("the key is too old: start again")
)

// Exchange returns a session for the key.
func (k *Keys) Exchange(key string, now time.Time) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !equal(key, k.key):
		return "", errWrongKey
	case k.session != "":
		return "", errKeyUsed
	case now.After(k.until):
		return "", errKeyLate
	}
	k.session = random()
	return k.session, nil
}

// Login implements Authenticator. The session is kept by the page: a cookie would be sent to
// every port of this machine.
func (k *Keys) Login(_ http.ResponseWriter, _ *http.Request, given Credentials, now time.Time) (any, error) {
	session, err := k.Exchange(given.Key, now)
	return map[string]string{"session": session}, err
}

// Viewer implements Authenticator.
func (k *Keys) Viewer(r *http.Request, _ time.Time) (*Viewer, error) {
	if !k.Admits(r.Header.Get(sessionHeader)) {
		return nil, errors.New("open the address that the terminal shows")
	}
	return k.viewer, nil
}

// Admits reports whether a session is the one that was given out.
func (k *Keys) Admits(session string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.session != "" && equal(session, k.session)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

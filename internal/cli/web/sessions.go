// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// sessionCookie is sent by browsers to this host alone, under TLS, and by no request that
// another site causes. No script can read it.
const sessionCookie = "__Host-rollouts"

// Limits of sessions.
const (
	sessionLasts   = 8 * time.Hour
	mostSessions   = 1000
	mostSessionsOf = 10 // of one user
)

// Sessions are of users who have logged in with a token for the API server. They are in
// memory alone: the end of the program ends them all.
type Sessions struct {
	// Open returns whom a token belongs to. The error is that of the API server.
	Open func(ctx context.Context, token string) (*Viewer, error)

	mu  sync.Mutex
	all map[[sha256.Size]byte]session // by the sum of what the cookie has
}

type session struct {
	viewer       *Viewer
	since, until time.Time
}

// Why a token is not taken. Whatever is wrong with it, the answer is the same.
var (
	errWrongToken = errors.New("the API server does not accept this token")
	errLoggedOut  = errors.New("log in with a token for the API server")
	errFull       = noAnswer{errors.New("too many users are logged in: try again later")}
)

// noAnswer says that a login was neither taken nor refused.
type noAnswer struct{ error }

// plainToken can be sent in a header.
var plainToken = regexp.MustCompile(`^[A-Za-z0-9._~+/=:-]+$`)

// Login implements Authenticator. Each login has a session of its own, whatever cookie came
// with it.
func (s *Sessions) Login(w http.ResponseWriter, r *http.Request, given Credentials, now time.Time) (any, error) {
	token := strings.TrimSpace(given.Token)
	if !plainToken.MatchString(token) {
		return nil, errWrongToken
	}
	viewer, err := s.Open(r.Context(), token)
	switch {
	case apierrors.IsUnauthorized(err):
		return nil, errWrongToken
	case err != nil:
		return nil, noAnswer{err}
	}
	secret := random()
	if err := s.add(secret, session{viewer, now, endOf(token, now)}, now); err != nil {
		return nil, err
	}
	s.forget(r)
	http.SetCookie(w, cookie(secret, int(sessionLasts/time.Second)))
	return struct{}{}, nil
}

func cookie(value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: sessionCookie, Value: value, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// Viewer implements Authenticator.
func (s *Sessions) Viewer(r *http.Request, now time.Time) (*Viewer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, known := s.all[sumOf(r)]
	if !known || !now.Before(found.until) {
		return nil, errLoggedOut
	}
	return found.viewer, nil
}

// logout ends the session of a request, for all its tabs.
func (s *Sessions) logout(w http.ResponseWriter, r *http.Request) {
	s.forget(r)
	http.SetCookie(w, cookie("", -1))
	answer(w, http.StatusOK, struct{}{})
}

func (s *Sessions) forget(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sumOf(r))
}

// sumOf returns what a session is found by: without a cookie, that of no session.
func sumOf(r *http.Request) [sha256.Size]byte {
	if c, err := r.Cookie(sessionCookie); err == nil {
		return sha256.Sum256([]byte(c.Value))
	}
	return [sha256.Size]byte{}
}

// add adds a session. The oldest one of a user who has too many ends.
func (s *Sessions) add(secret string, added session, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest [sha256.Size]byte
	own := 0
	for sum, other := range s.all {
		switch {
		case !now.Before(other.until):
			delete(s.all, sum)
		case other.viewer.Name == added.viewer.Name:
			if own++; own == 1 || other.since.Before(s.all[oldest].since) {
				oldest = sum
			}
		}
	}
	if own >= mostSessionsOf {
		delete(s.all, oldest)
	}
	if len(s.all) >= mostSessions {
		return errFull
	}
	if s.all == nil {
		s.all = map[[sha256.Size]byte]session{}
	}
	s.all[sha256.Sum256([]byte(secret))] = added
	return nil
}

// endOf returns when a session ends: no later than its token, if that says when it does. The
// API server has accepted it, so what it says is true.
func endOf(token string, now time.Time) time.Time {
	end := now.Add(sessionLasts)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return end
	}
	var claims struct {
		Expires float64 `json:"exp"`
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires <= 0 {
		return end
	}
	if expires := time.Unix(int64(claims.Expires), 0); expires.Before(end) {
		return expires
	}
	return end
}

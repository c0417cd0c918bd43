// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// mostSessions is how many sessions are kept. There is one for each repository and login.
const mostSessions = 256

// sessions are the logins to registries that still hold. While a release waits, its
// reports are looked at again and again: without a session, each look would need one or
// two requests more, to find out how to log in. The zero value is ready for use.
type sessions struct {
	mu   sync.Mutex
	kept map[session]http.RoundTripper
}

// session is what a login is good for. Those who have the same login have the same rights.
type session struct {
	repository, scheme, scope string
	login                     [sha256.Size]byte
}

func (s *sessions) get(key session) http.RoundTripper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[key]
}

func (s *sessions) keep(key session, transport http.RoundTripper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[session]http.RoundTripper{}
	}
	for other := range s.kept {
		if len(s.kept) < mostSessions {
			break
		}
		delete(s.kept, other)
	}
	s.kept[key] = transport
}

func (s *sessions) drop(key session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, key)
}

// request is what is asked of a registry, with options that contain the login.
type request func(ctx context.Context, tag name.Tag, options []remote.Option) error

// endpoint is a place, and how it is reached.
type endpoint struct {
	access  access
	login   authn.Authenticator
	tag     name.Tag
	session session
}

// ask logs in to the registry of a place, unless a session is left, and asks.
func (r *Reports) ask(ctx context.Context, place Place, scope string, do request) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e, err := r.endpoint(ctx, place, scope)
	if err != nil {
		return err
	}
	defer r.reader.hangUp(e.access)
	return classifyReport(r.askAs(ctx, e, do))
}

// askAs logs in anew if the registry does not accept the session any longer. Sessions
// with connections of their own are not kept: the connections end with each request.
func (r *Reports) askAs(ctx context.Context, e endpoint, do request) error {
	shared := e.access.connections == r.reader.connections
	if kept := r.sessions.get(e.session); shared && kept != nil {
		err := do(ctx, e.tag, within(ctx, kept))
		if answered(err) {
			return err
		}
		r.sessions.drop(e.session)
		if !errors.Is(err, errLoggedOut) {
			return err
		}
	}
	opened, err := e.logInAndAsk(ctx, &r.limits, do)
	if shared && opened != nil {
		r.sessions.keep(e.session, opened)
	}
	return err
}

// logInAndAsk returns the session, if it is good for further requests.
func (e endpoint) logInAndAsk(ctx context.Context, limits *limits, do request) (http.RoundTripper, error) {
	answers := &reportAnswers{RoundTripper: e.access.sender, limits: limits}
	named := transport.NewUserAgent(answers, userAgent)
	opened, err := transport.NewWithContext(ctx, e.tag.Registry, e.login, named, []string{e.tag.Scope(e.session.scope)})
	if err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	answers.refused.Store(false) // that was how to log in
	err = do(ctx, e.tag, within(ctx, opened))
	if !answered(err) || answers.refused.Load() {
		return nil, err
	}
	answers.kept.Store(true)
	return opened, err
}

// within returns the options for requests in a session, without retries: the caller tries
// again later.
func within(ctx context.Context, session http.RoundTripper) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(session), remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
	}
}

// endpoint finds how a place is reached.
func (r *Reports) endpoint(ctx context.Context, place Place, scope string) (endpoint, error) {
	tag, err := place.reference()
	if err != nil {
		return endpoint{}, err
	}
	access, err := r.access(ctx, place, tag.Repository)
	if err != nil {
		return endpoint{}, err
	}
	login, err := authn.Resolve(ctx, access.keychain, tag.Repository)
	if err != nil {
		return endpoint{}, fmt.Errorf("find the login: %w", err)
	}
	sum, err := fingerprint(ctx, login)
	if err != nil {
		return endpoint{}, fmt.Errorf("find the login: %w", err)
	}
	return endpoint{access: access, login: login, tag: tag, session: session{
		repository: tag.Repository.Name(), scheme: tag.Scheme(), scope: scope, login: sum,
	}}, nil
}

// fingerprint returns a hash of a login.
func fingerprint(ctx context.Context, login authn.Authenticator) ([sha256.Size]byte, error) {
	config, err := authn.Authorization(ctx, login)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	text, err := json.Marshal(config)
	return sha256.Sum256(text), err
}

// missing reports whether the registry does not have what was asked for.
func missing(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// answered reports whether the session is good for the next request. Otherwise the reason
// may be that the registry has changed how to reach it or how to log in.
func answered(err error) bool {
	var busy *Busy
	return err == nil || missing(err) || errors.As(err, &busy) || errors.Is(err, ErrNotReport) || errors.Is(err, errTooLarge) ||
		errors.Is(err, ErrLimit)
}

// unclear reports whether another request may have a better answer: some registries do
// not answer HEAD as they should, and such an answer has no text.
func unclear(err error) bool {
	var busy *Busy
	switch {
	case missing(err), errors.As(err, &busy), errors.Is(err, errLoggedOut), errors.Is(err, ErrLimit):
		return false
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

func classifyReport(err error) error {
	var busy *Busy
	switch {
	case errors.As(err, &busy):
		return busy
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("%w: %w", ErrNotReport, err)
	}
	return classify(err)
}

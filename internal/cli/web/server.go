// SPDX-License-Identifier: Apache-2.0

// Package web is the page that shows to many what the command line shows to one. It
// decides nothing: rows are from the status of Rollouts, and everything else is an answer of
// the command line.
//
//	server.go    the routes
//	guard.go     what each request must be, and the headers of each answer
//	viewer.go    who asks, and with which client requests for him are sent
//	attempts.go  how often a login may fail
//	key.go       on the machine of a user: the key in the address, and the session
//	sessions.go  in a cluster: the token of a user, and the session
//	sight.go     in a cluster: whose rows a user sees
//	page.go      the files of the page
//	row.go       a Rollout in the list
//	board.go     all rows, and what changed
//	stream.go    changes as they happen
//	action.go    what a change would do, and the change
//	once.go      that a change is made once, and that there are not too many
package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Server serves the page.
type Server struct {
	Authenticator Authenticator
	Board         *Board
	// Acts is true if viewers can make changes: else there is no handler for that.
	Acts bool
	// Now is the clock, and Say tells the terminal.
	Now func() time.Time
	Say func(text string)

	attempts attempts
	// following is how many streams are open.
	following atomic.Int32
}

const (
	// slow is how long a client may take to send a request, or to read a part of a stream.
	slow = 10 * time.Second
	// longest is how long an answer may take, the reads of the API server included.
	longest = time.Minute
)

// HTTP returns the server for an address of this machine alone.
func (s *Server) HTTP(at *net.TCPAddr) (*http.Server, error) {
	if !at.IP.IsLoopback() {
		return nil, errors.New("the page is for this machine alone: it does not listen on " + at.String())
	}
	return serverOf(guarded(hostsOf(at), "http://"+at.String()+" alone", s.routes())), nil
}

// HTTPS returns the server for an address that browsers reach under TLS, and under no other
// name. Whether this program or one before it ends TLS is up to the caller.
func (s *Server) HTTPS(public *url.URL) (*http.Server, error) {
	if public.Scheme != "https" || public.Hostname() == "" || strings.Trim(public.Path, "/") != "" || public.RawQuery != "" || public.User != nil {
		return nil, fmt.Errorf("the public address is https://HOST or https://HOST:PORT, not %q", public.Redacted())
	}
	inner := guarded([]string{public.Host}, "https://"+public.Host+" alone; on your own machine, the verb ui shows the same", s.routes())
	return serverOf(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		inner.ServeHTTP(w, r)
	})), nil
}

func serverOf(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: slow, ReadTimeout: slow, WriteTimeout: longest, IdleTimeout: longest, MaxHeaderBytes: largestHeaders,
	}
}

// hostsOf returns the names under which a browser may ask.
func hostsOf(at *net.TCPAddr) []string {
	_, port, _ := net.SplitHostPort(at.String()) // it is one
	return []string{at.String(), net.JoinHostPort("localhost", port)}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/session", s.login)
	if sessions, is := s.Authenticator.(*Sessions); is {
		mux.HandleFunc("POST /api/v1/logout", sessions.logout)
	}
	for _, address := range addresses {
		mux.HandleFunc("GET "+address, compressed(page("index.html")))
	}
	for name := range files {
		mux.HandleFunc("GET /"+name, compressed(page(name)))
	}
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /api/v1/me":                          compressed(s.known(me)),
		"GET /api/v1/fleet":                       compressed(s.known(s.fleet)),
		"GET /api/v1/fleet/stream":                s.known(s.stream),
		"GET /api/v1/rollouts/{namespace}/{name}": compressed(s.known(rollout)),
		"GET /api/v1/pipelines":                   compressed(s.known(pipelines)),
		"GET /api/v1/incidents":                   compressed(s.known(incidents)),
		"GET /api/v1/calendar":                    compressed(s.known(calendar)),
		"/": s.known(func(w http.ResponseWriter, _ *http.Request, _ *Viewer) {
			refuse(w, http.StatusNotFound, "there is no such page")
		}),
	} {
		mux.Handle(pattern, handle)
	}
	if s.Acts {
		mux.Handle("POST /api/v1/rollouts/{namespace}/{name}/predict", s.known(s.predict))
		mux.Handle("POST /api/v1/rollouts/{namespace}/{name}/requests", s.known(s.change))
	}
	return mux
}

// known answers only to viewers.
func (s *Server) known(next func(http.ResponseWriter, *http.Request, *Viewer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		viewer, err := s.Authenticator.Viewer(r, s.Now())
		if err != nil {
			refuse(w, http.StatusUnauthorized, "%s", err)
			return
		}
		next(w, r, viewer)
	}
}

// login gives a session to who has a key or a token.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be JSON")
		return
	}
	if !s.attempts.begin(r.RemoteAddr, s.Now()) {
		refuse(w, http.StatusTooManyRequests, "too many logins have failed: try again in a minute")
		return
	}
	var given Credentials
	_ = json.NewDecoder(r.Body).Decode(&given) // what cannot be read is no key
	object, err := s.Authenticator.Login(w, r, given, s.Now())
	if _, unknown := errors.AsType[noAnswer](err); unknown {
		s.attempts.succeeded(r.RemoteAddr)
		s.Say("a login could not be checked: " + err.Error())
		refuse(w, http.StatusBadGateway, "the login could not be checked: try again later")
		return
	}
	if err != nil {
		s.Say("a login was refused: " + err.Error())
		refuse(w, http.StatusUnauthorized, "%s", err)
		return
	}
	s.attempts.succeeded(r.RemoteAddr)
	answer(w, http.StatusOK, object)
}

// decode reads the body of a request, or says why that is not possible.
func decode(w http.ResponseWriter, r *http.Request, body any) bool {
	if r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be JSON")
		return false
	}
	from := json.NewDecoder(r.Body)
	from.DisallowUnknownFields()
	err := from.Decode(body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, "the body is too large")
	case err != nil:
		refuse(w, http.StatusBadRequest, "the body cannot be read")
	}
	return err == nil
}

func me(w http.ResponseWriter, r *http.Request, v *Viewer) {
	object, err := v.Source.Me(r.Context())
	reply(w, object, err)
}

// fleet is the answer with all rows.
type fleet struct {
	Revision string    `json:"rev"`
	Now      time.Time `json:"now"`
	Reading
	Rows []Row `json:"rows"`
}

func (s *Server) fleet(w http.ResponseWriter, r *http.Request, v *Viewer) {
	seen, err := v.Sight(r.Context())
	if err != nil {
		reply(w, nil, err)
		return
	}
	rows, reading, revision := s.Board.All(seen)
	answer(w, http.StatusOK, fleet{revision, s.Now().UTC(), reading, rows})
}

func rollout(w http.ResponseWriter, r *http.Request, v *Viewer) {
	key, is := rolloutOf(r)
	if !is {
		refuse(w, http.StatusNotFound, "there is no such page")
		return
	}
	object, err := v.Source.Rollout(r.Context(), key)
	reply(w, object, err)
}

// rolloutOf returns the Rollout that an address names, and whether one can have this name.
func rolloutOf(r *http.Request) (types.NamespacedName, bool) {
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	return key, len(validation.IsDNS1123Label(key.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(key.Name)) == 0
}

func pipelines(w http.ResponseWriter, r *http.Request, v *Viewer) {
	object, err := v.Source.Pipelines(r.Context())
	reply(w, object, err)
}

// reply answers with an object, or with what the API server has said instead.
func reply(w http.ResponseWriter, object any, err error) {
	switch code, is := codeOf(err); {
	case err == nil:
		answer(w, http.StatusOK, object)
	case is:
		refuse(w, code, "%s", err)
	default:
		refuse(w, http.StatusBadGateway, "%s", err)
	}
}

// codeOf returns the code of an error of the API server.
func codeOf(err error) (code int, is bool) {
	var said apierrors.APIStatus
	if !errors.As(err, &said) {
		return 0, false
	}
	code = int(said.Status().Code)
	return code, code >= http.StatusBadRequest
}

// SPDX-License-Identifier: Apache-2.0

// Package web is the page that shows to many what the command line shows to one. It
// decides nothing: rows are from the status of Rollouts, and everything else is an answer of
// the command line.
//
//	server.go  the routes, and who may ask
//	guard.go   what each request must be, and the headers of each answer
//	key.go     the key in the address, and the session
//	page.go    the files of the page
//	row.go     a Rollout in the list
//	board.go   all rows, and what changed
//	stream.go  changes as they happen
package web

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Source reads with the identity of the user. Answers are those of the command line.
type Source interface {
	// Me says who the user is, and which cluster this is.
	Me(ctx context.Context) (any, error)
	// Rollout explains a Rollout, with all that its release reaches.
	Rollout(ctx context.Context, key types.NamespacedName) (any, error)
	// Pipelines returns the environments of all applications.
	Pipelines(ctx context.Context) (any, error)
}

// Server serves the page on this machine.
type Server struct {
	Keys   *Keys
	Board  *Board
	Source Source
	// Now is the clock, and Say tells the terminal.
	Now func() time.Time
	Say func(text string)

	streams streams
}

// sessionHeader has the session. A cookie would be sent to every port of this machine.
const sessionHeader = "Rollouts-Session"

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
	return &http.Server{
		Handler:           guarded(hostsOf(at), s.routes()),
		ReadHeaderTimeout: slow, ReadTimeout: slow, WriteTimeout: longest, IdleTimeout: longest, MaxHeaderBytes: largestHeaders,
	}, nil
}

// hostsOf returns the names under which a browser may ask.
func hostsOf(at *net.TCPAddr) []string {
	_, port, _ := net.SplitHostPort(at.String()) // it is one
	return []string{at.String(), net.JoinHostPort("localhost", port)}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/session", s.login)
	for _, address := range addresses {
		mux.HandleFunc("GET "+address, compressed(page("index.html")))
	}
	for name := range files {
		mux.HandleFunc("GET /"+name, compressed(page(name)))
	}
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /api/v1/me":                          compressed(s.me),
		"GET /api/v1/fleet":                       compressed(s.fleet),
		"GET /api/v1/fleet/stream":                s.stream,
		"GET /api/v1/rollouts/{namespace}/{name}": compressed(s.rollout),
		"GET /api/v1/pipelines":                   compressed(s.pipelines),
		"/":                                       func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "there is no such page") },
	} {
		mux.Handle(pattern, s.known(handle))
	}
	return mux
}

// known answers only to who has the session.
func (s *Server) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Keys.Admits(r.Header.Get(sessionHeader)) {
			refuse(w, http.StatusUnauthorized, "open the address that the terminal shows")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// login exchanges the key for the session.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var body struct{ Key string }
	if r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be JSON")
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		var large *http.MaxBytesError
		code := http.StatusBadRequest
		if errors.As(err, &large) {
			code = http.StatusRequestEntityTooLarge
		}
		refuse(w, code, "the body cannot be read")
		return
	}
	session, err := s.Keys.Exchange(body.Key, s.Now())
	if err != nil {
		s.Say("a login was refused: " + err.Error())
		refuse(w, http.StatusUnauthorized, "%s", err)
		return
	}
	answer(w, http.StatusOK, map[string]string{"session": session})
}

func (s *Server) me(w http.ResponseWriter, r *http.Request) {
	object, err := s.Source.Me(r.Context())
	reply(w, object, err)
}

// fleet is the answer with all rows.
type fleet struct {
	Revision string    `json:"rev"`
	Now      time.Time `json:"now"`
	Reading
	Rows []Row `json:"rows"`
}

func (s *Server) fleet(w http.ResponseWriter, _ *http.Request) {
	rows, reading, revision := s.Board.All()
	answer(w, http.StatusOK, fleet{revision, s.Now().UTC(), reading, rows})
}

func (s *Server) rollout(w http.ResponseWriter, r *http.Request) {
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if len(validation.IsDNS1123Label(key.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(key.Name)) > 0 {
		refuse(w, http.StatusNotFound, "there is no such page")
		return
	}
	object, err := s.Source.Rollout(r.Context(), key)
	reply(w, object, err)
}

func (s *Server) pipelines(w http.ResponseWriter, r *http.Request) {
	object, err := s.Source.Pipelines(r.Context())
	reply(w, object, err)
}

// reply answers with an object, or with what the API server has said instead.
func reply(w http.ResponseWriter, object any, err error) {
	var said apierrors.APIStatus
	switch {
	case err == nil:
		answer(w, http.StatusOK, object)
	case errors.As(err, &said) && said.Status().Code >= http.StatusBadRequest:
		refuse(w, int(said.Status().Code), "%s", err)
	default:
		refuse(w, http.StatusBadGateway, "%s", err)
	}
}

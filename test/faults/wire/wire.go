// SPDX-License-Identifier: Apache-2.0

// Package wire is a faulty connection between one client and the API server: an
// HTTP proxy that counts the client's requests, and lets any of them fail. What
// others ask of the API server does not pass here.
package wire

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Wire is a faulty connection. Its methods may be called from several goroutines.
type Wire struct {
	server  *httptest.Server
	onwards *httputil.ReverseProxy

	mu      sync.Mutex
	judge   func(Request) Fault
	writes  int
	log     []Entry
	watches map[*watch]bool
	noWatch bool
	held    chan struct{} // closed when watches go on; nil unless they are held
}

// Entry is a request that came, and what became of it.
type Entry struct {
	Request
	// Fault that was injected.
	Fault Fault
	// Code that the API server answered with; 0 if it was not asked, or has not
	// answered yet.
	Code int
}

// Open opens a wire to the API server, on which the owner of a kubeconfig is who
// asks.
func Open(kubeconfig string) (*Wire, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	w := &Wire{watches: map[*watch]bool{}}
	w.onwards = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(host) },
		Transport:     transport,
		FlushInterval: -1, // an event of a watch is passed on when it comes
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.server.EnableHTTP2 = true // as the API server does
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.server.StartTLS()
	return w, nil
}

// Close breaks all connections, and ends the wire.
func (w *Wire) Close() {
	w.server.CloseClientConnections()
	w.server.Close()
}

// WriteKubeconfig writes a kubeconfig with which a client asks through the wire.
// It needs no credentials of its own.
func (w *Wire) WriteKubeconfig(path string) error {
	const name = "wire"
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: w.server.URL, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}

// Inject has each request judged from now on; nil lets all of them through. Judges
// may be asked about several requests at once.
func (w *Wire) Inject(judge func(Request) Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge = judge
}

// Log is every request so far, in the order in which they came.
func (w *Wire) Log() []Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// Writes are those requests so far that change something, in their order.
func (w *Wire) Writes() []Entry {
	return slices.DeleteFunc(w.Log(), func(e Entry) bool { return e.Write == 0 })
}

// Faults counts the requests so far to which something happened.
func (w *Wire) Faults() int {
	n := 0
	for _, entry := range w.Log() {
		if !entry.Fault.None() {
			n++
		}
	}
	return n
}

func (w *Wire) serve(out http.ResponseWriter, in *http.Request) {
	// Heard out: whoever is frozen, or dies, while it is judged has said it all.
	body, err := io.ReadAll(in.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	in.Body = io.NopCloser(bytes.NewReader(body))
	request, number := w.count(read(in))
	fault := w.judged(request, number)
	switch fault.kind {
	case none:
		w.pass(out, in, request, number)
		return
	case refuse:
		answer(out, fault.code, fault.wait)
		return
	case hold:
		pause(in.Context(), fault.wait)
		answer(out, fault.code, 0)
		return
	case drop:
	case lose:
		answered := httptest.NewRecorder()
		w.onwards.ServeHTTP(answered, in.WithContext(context.WithoutCancel(in.Context())))
		w.answered(number, answered.Code)
	}
	if fault.then != nil {
		fault.then()
	}
	panic(http.ErrAbortHandler)
}

// pass is what happens to a request without a fault.
func (w *Wire) pass(out http.ResponseWriter, in *http.Request, request Request, number int) {
	noted := &noting{ResponseWriter: out, note: func(code int) { w.answered(number, code) }}
	if request.Verb != "watch" {
		w.onwards.ServeHTTP(noted, in)
		return
	}
	ctx, cut := context.WithCancelCause(in.Context())
	defer cut(nil)
	open := &watch{Request: request, cut: cut, out: noted}
	if !w.open(ctx, open) {
		panic(http.ErrAbortHandler)
	}
	defer w.closed(open)
	w.onwards.ServeHTTP(open, in.WithContext(ctx))
	if errors.Is(context.Cause(ctx), errCut) {
		panic(http.ErrAbortHandler)
	}
}

// count numbers a request, and if it is a write, that one among the writes.
func (w *Wire) count(request Request) (Request, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if request.isWrite() {
		w.writes++
		request.Write = w.writes
	}
	w.log = append(w.log, Entry{Request: request})
	return request, len(w.log) - 1
}

func (w *Wire) judged(request Request, number int) Fault {
	w.mu.Lock()
	judge := w.judge
	w.mu.Unlock()
	if judge == nil {
		return Fault{}
	}
	fault := judge(request)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log[number].Fault = fault
	return fault
}

func (w *Wire) answered(number, code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log[number].Code = code
}

// noting notes with which code a request is answered.
type noting struct {
	http.ResponseWriter
	note func(code int)
}

// WriteHeader implements http.ResponseWriter.
func (n *noting) WriteHeader(code int) {
	n.note(code)
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap lets what is written be flushed.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

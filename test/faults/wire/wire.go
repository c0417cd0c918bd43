// SPDX-License-Identifier: Apache-2.0

// Package wire is a faulty connection between one client and the API server: an HTTP
// proxy that counts the client's requests, and can make any of them fail. Requests of
// other clients do not pass through it.
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
	held    chan struct{} // closed when watches continue; nil unless HoldWatches was called
}

// Entry is a request that came, and its result.
type Entry struct {
	Request
	// Fault is the fault that was injected.
	Fault Fault
	// Code is the status code of the API server's response. It is 0 if the API server did
	// not receive the request, or has not answered yet.
	Code int
}

// Open opens a wire to the API server. Requests are made with the credentials of a
// kubeconfig.
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
		FlushInterval: -1, // an event of a watch is forwarded at once
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.server.EnableHTTP2 = true // as on the API server
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.server.StartTLS()
	return w, nil
}

// Close breaks all connections, and closes the wire.
func (w *Wire) Close() {
	w.server.CloseClientConnections()
	w.server.Close()
}

// WriteKubeconfig writes a kubeconfig with which a client connects through the wire. It
// needs no credentials of its own.
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

// Inject sets the function that decides about each request from now on. If it is nil, all
// requests pass. Several goroutines may call it at once.
func (w *Wire) Inject(judge func(Request) Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge = judge
}

// Log returns every request so far, in the order in which they came.
func (w *Wire) Log() []Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// Writes returns the requests so far that change something, in their order.
func (w *Wire) Writes() []Entry {
	return slices.DeleteFunc(w.Log(), func(e Entry) bool { return e.Write == 0 })
}

// Faults counts the requests so far that had a fault.
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
	// The wire reads the whole body first: a client that is frozen, or is killed, during
	// the decision has then sent all of its request.
	body, err := io.ReadAll(in.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	in.Body = io.NopCloser(bytes.NewReader(body))
	request, number := w.count(read(in))
	fault := w.judged(request, number)
	fault.happen(out, in,
		func() { w.pass(out, in, request, number) },
		func() { w.lose(in, request, number) })
}

// lose makes the API server process a request, and drops its response. That of a watch
// ends after minutes, in which the client would hear nothing: its connection only breaks.
func (w *Wire) lose(in *http.Request, request Request, number int) {
	if request.Verb == "watch" {
		return
	}
	answered := httptest.NewRecorder()
	w.onwards.ServeHTTP(answered, in.WithContext(context.WithoutCancel(in.Context())))
	w.answered(number, answered.Code)
}

// pass forwards a request without a fault.
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

// count numbers a request, and if it is a write, also among the writes.
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

// noting notes the status code of a response.
type noting struct {
	http.ResponseWriter
	note func(code int)
}

// WriteHeader implements http.ResponseWriter.
func (n *noting) WriteHeader(code int) {
	n.note(code)
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap returns the original writer, so the data can be flushed.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

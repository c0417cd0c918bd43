// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry is an OCI registry in this process, over plain HTTP on loopback. Its content
// is in memory and survives the time when the registry is unreachable.
type Registry struct {
	host    string
	content http.Handler

	requests atomic.Uint64
	login    atomic.Pointer[authn.Basic]

	mu     sync.Mutex
	server *http.Server

	counting sync.Mutex
	counts   map[string]map[string]int // by repository, and by what was requested of it
}

// registry returns the registry of the options, or opens one.
func (c *ControlPlane) registry() (*Registry, error) {
	if c.options.Registry != nil {
		return c.options.Registry, nil
	}
	return openRegistry(c.ports.take)
}

// OpenRegistry returns a registry without a control plane. GoAway ends it.
func OpenRegistry() (*Registry, error) { return openRegistry(FreePort) }

// openRegistry opens a registry at a port that take returns. A program that does not
// reserve its ports may have taken it since it was free, and then the next one is tried.
func openRegistry(take func() (int, error)) (*Registry, error) {
	r := &Registry{
		content: registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)),
		counts:  map[string]map[string]int{},
	}
	for try := 1; ; try++ {
		port, err := take()
		if err != nil {
			return nil, err
		}
		r.host = address(port)
		if err = r.ComeBack(); try == mostPorts || !errors.Is(err, syscall.EADDRINUSE) {
			return r, err
		}
	}
}

// mostPorts is how many ports a registry tries.
const mostPorts = 5

// Host returns the registry's host and port.
func (r *Registry) Host() string { return r.host }

// Requests returns the number of requests to the registry so far.
func (r *Registry) Requests() uint64 { return r.requests.Load() }

// RequestsTo returns the number of requests to a repository so far, by what was requested:
// the method, and the part of the repository, such as "HEAD manifests" or "POST blobs".
func (r *Registry) RequestsTo(repository string) map[string]int {
	r.counting.Lock()
	defer r.counting.Unlock()
	return maps.Clone(r.counts[repository])
}

// repositoryParts are what the path of a request names after the repository.
var repositoryParts = []string{"manifests", "blobs", "tags", "referrers"}

func (r *Registry) count(request *http.Request) {
	r.requests.Add(1)
	elements := strings.Split(strings.TrimPrefix(request.URL.Path, "/v2/"), "/")
	for i := len(elements) - 1; i > 0; i-- {
		if slices.Contains(repositoryParts, elements[i]) {
			r.add(strings.Join(elements[:i], "/"), request.Method+" "+elements[i])
			return
		}
	}
}

func (r *Registry) add(repository, requested string) {
	r.counting.Lock()
	defer r.counting.Unlock()
	if r.counts[repository] == nil {
		r.counts[repository] = map[string]int{}
	}
	r.counts[repository][requested]++
}

// RequireLogin makes the registry refuse requests without these credentials. An empty
// user name allows all requests again. Push and the other methods here use the
// credentials.
func (r *Registry) RequireLogin(user, password string) {
	if user == "" {
		r.login.Store(nil)
		return
	}
	r.login.Store(&authn.Basic{Username: user, Password: password})
}

// GoAway makes the registry unreachable: it closes connections and refuses new ones.
func (r *Registry) GoAway() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return nil
	}
	err := r.server.Close()
	r.server = nil
	if err != nil {
		return fmt.Errorf("close the registry: %w", err)
	}
	return nil
}

// ComeBack makes the registry reachable again at its old address.
func (r *Registry) ComeBack() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp", r.host)
	if err != nil {
		return fmt.Errorf("open the registry: %w", err)
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func(s *http.Server) { _ = s.Serve(listener) }(r.server)
	return nil
}

// ServeHTTP counts a request, checks the login and answers.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.count(request)
	if !r.mayEnter(request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
		return
	}
	r.content.ServeHTTP(w, request)
}

func (r *Registry) mayEnter(request *http.Request) bool {
	login := r.login.Load()
	if login == nil {
		return true
	}
	user, password, _ := request.BasicAuth()
	return subtle.ConstantTimeCompare([]byte(user+"\n"+password), []byte(login.Username+"\n"+login.Password)) == 1
}

// Delete removes one tag. The artifact stays under its digest.
func (r *Registry) Delete(ctx context.Context, repository, tag string) error {
	ref, err := r.reference(repository, tag)
	if err != nil {
		return err
	}
	if err := remote.Delete(ref, r.options(ctx)...); err != nil {
		return fmt.Errorf("delete %s: %w", ref, err)
	}
	return nil
}

// Restore makes the tags of a repository those of an earlier answer of Digests, as a registry
// that is restored from an old copy does.
func (r *Registry) Restore(ctx context.Context, repository string, digests map[string]string) error {
	now, err := r.Digests(ctx, repository)
	if err != nil {
		return err
	}
	for tag := range now {
		if _, kept := digests[tag]; !kept {
			err = errors.Join(err, r.Delete(ctx, repository, tag))
		}
	}
	for tag, digest := range digests {
		err = errors.Join(err, r.retag(ctx, repository, tag, digest))
	}
	return err
}

// retag makes a tag name an artifact that the registry has.
func (r *Registry) retag(ctx context.Context, repository, tag, digest string) error {
	ref, err := r.reference(repository, tag)
	if err != nil {
		return err
	}
	found, err := remote.Get(ref.Context().Digest(digest), r.options(ctx)...)
	if err == nil {
		err = remote.Tag(ref, found, r.options(ctx)...)
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", ref, err)
	}
	return nil
}

// Digests returns the digest of each tag of a repository.
func (r *Registry) Digests(ctx context.Context, repository string) (map[string]string, error) {
	repo, err := name.NewRepository(r.host+"/"+repository, name.Insecure)
	if err != nil {
		return nil, fmt.Errorf("name a repository: %w", err)
	}
	tags, err := remote.List(repo, r.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("list the tags of %s: %w", repo, err)
	}
	digests := make(map[string]string, len(tags))
	for _, tag := range tags {
		head, err := remote.Head(repo.Tag(tag), r.options(ctx)...)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", repo.Tag(tag), err)
		}
		digests[tag] = head.Digest.String()
	}
	return digests, nil
}

func (r *Registry) reference(repository, tag string) (name.Tag, error) {
	ref, err := name.NewTag(r.host+"/"+repository+":"+tag, name.Insecure)
	if err != nil {
		return name.Tag{}, fmt.Errorf("name a tag: %w", err)
	}
	return ref, nil
}

func (r *Registry) options(ctx context.Context) []remote.Option {
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(unpooled)}
	if login := r.login.Load(); login != nil {
		options = append(options, remote.WithAuth(login))
	}
	return options
}

// unpooled keeps no idle connections, which would remain after a test.
var unpooled = &http.Transport{DisableKeepAlives: true}

func (r *Registry) close() error {
	if err := r.GoAway(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

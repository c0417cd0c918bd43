// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

// release is a version that every image of the benchmark has.
type release struct {
	tag, digest string
	manifest    []byte
}

func newRelease(tag string) release {
	empty := map[string]any{"mediaType": "application/vnd.oci.empty.v1+json", "digest": digestOf("{}"), "size": 2}
	manifest, _ := json.Marshal(map[string]any{ // it cannot fail: there are only texts and numbers
		"schemaVersion": 2, "mediaType": types.OCIManifestSchema1, "artifactType": "application/vnd.cncf.flux.config.v1+json",
		"config": empty, "layers": []any{empty},
		"annotations": map[string]string{
			"org.opencontainers.image.version":     tag,
			"org.opencontainers.image.revision":    "main@sha1:" + digestOf(tag)[len("sha256:"):][:40],
			"org.opencontainers.image.created":     "2026-03-02T12:00:00Z",
			"org.opencontainers.image.source":      "https://git.example.com/team/application",
			"org.opencontainers.image.title":       "application",
			"org.opencontainers.image.description": "The manifests of an application of the benchmark.",
		},
	})
	return release{tag: tag, digest: digestOf(string(manifest)), manifest: manifest}
}

func digestOf(content string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))) }

// registry serves the same releases for every image: there are too many images to push
// each.
type registry struct {
	server *httptest.Server
	host   string
	// certificate is the path of the registry's certificate.
	certificate string

	mu       sync.Mutex
	served   func(image, tag string)
	releases map[string]release // by tag and by digest
}

// startRegistry starts a registry with TLS and HTTP/2, like other registries. It writes
// its certificate to the file.
func startRegistry(certificate string) (*registry, error) {
	r := &registry{certificate: certificate, releases: map[string]release{}, served: func(string, string) {}}
	r.server = httptest.NewUnstartedServer(r)
	r.server.EnableHTTP2 = true
	r.server.StartTLS()
	r.host = r.server.Listener.Addr().String()
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	if err := os.WriteFile(certificate, encoded, 0o600); err != nil {
		r.server.Close()
		return nil, fmt.Errorf("write the certificate of the registry: %w", err)
	}
	return r, nil
}

// publish publishes a release of every image.
func (r *registry) publish(tag string) release {
	made := newRelease(tag)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releases[made.tag], r.releases[made.digest] = made, made
	return made
}

// ServeHTTP serves only manifests.
func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	image, name, isManifest := strings.Cut(request.URL.Path, "/manifests/")
	if !isManifest {
		w.WriteHeader(http.StatusOK) // the check whether this is a registry
		return
	}
	r.mu.Lock()
	found, ok := r.releases[name]
	served := r.served
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
	w.Header().Set("Docker-Content-Digest", found.digest)
	w.Header().Set("Content-Length", strconv.Itoa(len(found.manifest)))
	_, _ = w.Write(found.manifest)
	_ = http.NewResponseController(w).Flush() // before others act on it
	served(path.Base(image), found.tag)
}

// follow sets the function that is called, from now on, when a release of an image is
// read.
func (r *registry) follow(served func(image, tag string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served = served
}

func (r *registry) close() { r.server.Close() }

// digest returns the digest of a release. It is empty if there is no release with that
// tag.
func (r *registry) digest(tag string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.releases[tag].digest
}

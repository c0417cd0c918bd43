// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// hostile is a registry that has one tag of each repository that a client asks for.
type hostile struct {
	manifest http.HandlerFunc
	asked    atomic.Int64 // for manifests
}

// ServeHTTP implements http.Handler.
func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, isList := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v2/"), "/tags/list")
	switch {
	case isList:
		_, _ = fmt.Fprintf(w, `{"name":%q,"tags":["1.0.0"]}`, name)
	case strings.Contains(r.URL.Path, "/manifests/"):
		h.asked.Add(1)
		h.manifest(w, r)
	}
}

// open serves the registry until the test is over.
func (h *hostile) open(t *testing.T, end func()) (host string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		end()
		server.Close()
	})
	return strings.TrimPrefix(server.URL, "http://")
}

// asksFor creates Rollouts that ask for the metadata of images.
func (a abuser) asksFor(h *hostile, host string, images, atLeast int) {
	a.T.Helper()
	for i := range images {
		other := a.Another(fmt.Sprint("image-", i))
		policy := other.ImagePolicy(">=1.0.0")
		policy.Spec.DigestReflectionPolicy = "" // Flux itself asks only for tags
		a.makes(other.ImageRepository(host), policy, other.Rollout())
	}
	env.Eventually(a.T, fmt.Sprintf("%d manifests being asked for", atLeast), func() (bool, string) {
		return h.asked.Load() >= int64(atLeast), fmt.Sprint(h.asked.Load())
	})
}

func TestManifestsOfMegabytes(t *testing.T) {
	x, a := begin(t, "has a registry answer with manifests of 4 MiB, of a million layers or images each"), newAbuser(t)
	var answers atomic.Int64
	h := &hostile{manifest: func(w http.ResponseWriter, _ *http.Request) {
		kind, list := types.OCIManifestSchema1, "layers"
		if answers.Add(1)%2 == 0 {
			kind, list = types.OCIImageIndex, "manifests"
		}
		w.Header().Set("Content-Type", string(kind))
		_, _ = fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":%q,%q:[{}`, kind, list)
		for range 1_400 {
			_, _ = io.WriteString(w, strings.Repeat(",{}", 1_000))
		}
		_, _ = io.WriteString(w, "]}")
	}}
	const images = 16
	a.asksFor(h, h.open(t, func() {}), images, images)
	x.passes(images, "none of them was kept")
}

func TestRegistryThatHangs(t *testing.T) {
	x, a := begin(t, "has a registry take requests for 60 images, and never answer"), newAbuser(t)
	over := make(chan struct{})
	h := &hostile{manifest: func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}}
	const images = 60
	a.asksFor(h, h.open(t, func() { close(over) }), images, 4)
	x.passes(images, "namespaces take turns at the look-ups")
}

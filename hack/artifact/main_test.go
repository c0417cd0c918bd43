// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestSameManifestsHaveTheSameDigest(t *testing.T) {
	host := serve(t)
	args := []string{"-path=../../config", "-tag=v1.2.0", "-source=https://example.com/it", "-revision=v1.2.0@sha1:abc", "-created=2026-01-02T15:04:05Z"}
	first := push(t, append(args, "-repository="+host+"/first")...)
	second := push(t, append(args, "-repository="+host+"/second")...)
	if got, want := digestOf(second), digestOf(first); got != want {
		t.Errorf("pushed again it is %s, was %s", got, want)
	}
	if later := push(t, append(args, "-repository="+host+"/first", "-revision=v1.2.1@sha1:abc")...); digestOf(later) == digestOf(first) {
		t.Errorf("another revision has the same digest %s", digestOf(later))
	}
}

func TestArtifactIsOneThatFluxTakes(t *testing.T) {
	printed := push(t, "-path=../../config", "-repository="+serve(t)+"/manifests", "-tag=v1.2.0",
		"-source=https://example.com/it", "-revision=v1.2.0@sha1:abc", "-created=2026-01-02T15:04:05Z")
	image := pull(t, printed)
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{
		"org.opencontainers.image.source":   "https://example.com/it",
		"org.opencontainers.image.revision": "v1.2.0@sha1:abc",
		"org.opencontainers.image.created":  "2026-01-02T15:04:05Z",
	}, manifest.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	var types []string
	for _, layer := range manifest.Layers {
		types = append(types, string(layer.MediaType))
	}
	if want := []string{"application/vnd.cncf.flux.content.v1.tar+gzip"}; !slices.Equal(types, want) ||
		manifest.Config.MediaType != "application/vnd.cncf.flux.config.v1+json" {
		t.Errorf("config %s with layers %v, want a Flux artifact", manifest.Config.MediaType, types)
	}
}

func TestInvalidArgumentsAreExplained(t *testing.T) {
	for name, wrong := range map[string]struct {
		args []string
		want string
	}{
		"no repository":   {[]string{"-tag=v1"}, "-repository"},
		"no tag":          {[]string{"-repository=registry.example.com/x"}, "-tag"},
		"no tag at all":   {[]string{"-repository=registry.example.com/x", "-tag=a b"}, "a b"},
		"no such folder":  {[]string{"-repository=registry.example.com/x", "-tag=v1", "-path=nowhere"}, "nowhere"},
		"an empty folder": {[]string{"-repository=registry.example.com/x", "-tag=v1", "-path=."}, "no manifests"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), wrong.args, io.Discard); err == nil || !strings.Contains(err.Error(), wrong.want) {
				t.Errorf("error %v, want one about %s", err, wrong.want)
			}
		})
	}
}

// serve starts a registry and returns its host.
func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// push runs the command and returns its output.
func push(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func digestOf(printed string) string {
	_, digest, _ := strings.Cut(printed, "@")
	return digest
}

// pull reads an artifact by the printed digest.
func pull(t *testing.T, printed string) v1.Image {
	t.Helper()
	repository, _, _ := strings.Cut(printed, ":v1.2.0@")
	reference, err := name.NewDigest(repository + "@" + digestOf(printed))
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	ours "github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/test/fixture/loopback"
)

// manifests are possible answers of a registry.
var manifests = []string{
	`{}`, `null`, `[]`, `"text"`, ``, `{"schemaVersion":2`,
	`{"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/example","annotations":{"org.opencontainers.image.version":"1.0.0"}}`,
	`{"annotations":{"org.opencontainers.image.created":"9999-12-31T23:59:59-23:59","org.opencontainers.image.title":"\u0000\ud800<&>"}}`,
	`{"annotations":{"org.opencontainers.image.created":"0000-01-01T00:00:00Z","org.opencontainers.image.revision":""}}`,
	`{"annotations":null,"config":{"annotations":{"org.opencontainers.image.revision":"main@sha1:0"}}}`,
	`{"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:zz","size":-1}}`,
	`{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:00","platform":{"os":"linux","architecture":"amd64"}}]}`,
	`{"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json"},{"platform":null}]}`,
	`{"annotations":{"com.kuberik.rollout.forward-only":"true"}}`,
	`{"annotations":{"com.kuberik.rollout.forward-only":"","org.opencontainers.image.revision":"main"}}`,
	`{"config":{"mediaType":"text/plain","annotations":{"com.kuberik.rollout.forward-only":"false"}},"annotations":{"com.kuberik.rollout.forward-only":"no"}}`,
	`{"manifests":[{"annotations":{"com.kuberik.rollout.forward-only":"1"}}],"annotations":{"com.kuberik.rollout.forward-only":"false"}}`,
}

// marksItself reports whether the annotations of a manifest say that the image is
// forward-only, readable or not.
func marksItself(manifest []byte) bool {
	var says struct {
		Annotations map[string]string `json:"annotations"`
	}
	value, ok := "", false
	if json.Unmarshal(manifest, &says) == nil {
		value, ok = says.Annotations[forwardOnly]
	}
	return ok && value != "false"
}

// FuzzManifest checks that reading any answer of a registry ends, is limited in size, and
// returns values that the API server will store. It also checks that no mark is lost.
func FuzzManifest(f *testing.F) {
	kinds := []string{
		"application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json",
		"application/vnd.docker.distribution.manifest.v2+json", "text/html", "",
	}
	for _, manifest := range manifests {
		for kind := range kinds {
			f.Add([]byte(manifest), byte(kind), "")
		}
	}
	for _, challenge := range []string{`Basic realm="x"`, `Bearer realm="http://127.0.0.1:1/",service="\"`, `Bearer`, `=,"`, "\x00", strings.Repeat("Bearer a=b,", 500)} {
		f.Add([]byte(`{}`), byte(0), challenge)
	}
	var answer struct {
		body            []byte
		kind, challenge string
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer.challenge != "" {
			w.Header()["Www-Authenticate"] = []string{strings.Map(printable, answer.challenge)}
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.Contains(r.URL.Path, "/manifests/") || strings.Contains(r.URL.Path, "/blobs/") {
			w.Header().Set("Content-Type", answer.kind)
			_, _ = w.Write(answer.body)
		}
	}))
	f.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	reader := readerOf(f, host)
	f.Fuzz(func(t *testing.T, body []byte, kind byte, challenge string) {
		answer.body, answer.kind, answer.challenge = body, kinds[int(kind)%len(kinds)], challenge
		metadata, err := reader.Read(t.Context(), imageOf(host))
		if err != nil {
			return
		}
		for _, text := range []string{
			metadata.Version, metadata.Revision, metadata.Source, metadata.Title, metadata.Description, metadata.ArtifactType,
		} {
			if utf8.RuneCountInString(text) > 1024 || !utf8.ValidString(text) {
				t.Errorf("%d bytes are kept of what the registry says, or they are no text", len(text))
			}
		}
		if marksItself(body) && !metadata.ForwardOnly {
			t.Error("the mark of a forward-only image is lost")
		}
		created, err := json.Marshal(metav1.Time{Time: metadata.Created})
		if err != nil || metadata.Created.Year() > 9999 {
			t.Errorf("%s cannot be stored: %v", created, err)
		}
	})
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

func readerOf(f *testing.F, host string) *ours.Reader {
	f.Helper()
	scheme := runtime.NewScheme()
	if err := imagev1.AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}
	repository := &imagev1.ImageRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"},
		Spec:       imagev1.ImageRepositorySpec{Image: host + "/shop", Insecure: true, Timeout: &metav1.Duration{Duration: 2 * time.Second}},
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(repository).Build()
	reader, err := ours.NewReader(cluster, cluster, loopback.Guard())
	if err != nil {
		f.Fatal(err)
	}
	return reader
}

func imageOf(host string) ours.Image {
	return ours.Image{Repository: types.NamespacedName{Namespace: "shop", Name: "shop"}, Name: host + "/shop", Tag: "1.0.0"}
}

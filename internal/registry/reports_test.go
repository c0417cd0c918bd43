// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ours "github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// bus is a registry with reports, and a cluster that reads and writes them.
type bus struct {
	*site
	registry *controlplane.Registry
	reports  *ours.Reports
	place    ours.Place
}

func openBus(t *testing.T) *bus {
	t.Helper()
	b := &bus{site: openSite(t)}
	registry, err := controlplane.OpenRegistry()
	b.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = registry.GoAway() })
	b.registry = registry
	b.spec.Image = registry.Host() + "/shop"
	b.place = ours.Place{
		Repository: registry.Host() + "/promotions/staging-eu", Tag: "shop.shop", Insecure: true,
		Namespace: "registry", ImageRepository: "shop",
	}
	b.open()
	return b
}

// open starts a process, which knows nothing of the requests before.
func (b *bus) open() { b.reports = ours.NewReports(b.reader()) }

// pull returns the envelope and the digest, and how many requests were made for it.
func (b *bus) pull(known string) (envelope, digest string, requests uint64) {
	before := b.registry.Requests()
	stored, err := b.reports.Pull(context.Background(), b.place, known)
	b.Expect(err).NotTo(HaveOccurred())
	return string(stored.Envelope), stored.Digest, b.registry.Requests() - before
}

func (b *bus) push(envelope, known string) (digest string, requests uint64) {
	before := b.registry.Requests()
	digest, err := b.reports.Push(context.Background(), b.place, []byte(envelope), known)
	b.Expect(err).NotTo(HaveOccurred())
	return digest, b.registry.Requests() - before
}

// put stores anything in the place of the report, whether it is a manifest or not.
func (b *bus) put(content remote.Taggable) {
	text, err := content.RawManifest()
	b.Expect(err).NotTo(HaveOccurred())
	url := "http://" + b.registry.Host() + "/v2/promotions/staging-eu/manifests/" + b.place.Tag
	request, err := http.NewRequest(http.MethodPut, url, bytes.NewReader(text))
	b.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", string(types.OCIManifestSchema1))
	response, err := b.server.Client().Do(request)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(response.Body.Close()).To(Succeed())
	b.Expect(response.StatusCode).To(Equal(http.StatusCreated))
}

func TestReportIsStoredAndRead(t *testing.T) {
	b := openBus(t)
	_, err := b.reports.Pull(t.Context(), b.place, "")
	b.Expect(err).To(MatchError(ours.ErrNotFound))
	b.Expect(err).To(MatchError(ContainSubstring("read the report " + b.place.String() + ": the registry does not have it")))

	first, requests := b.push(`{"a":1}`, "")
	b.Expect(requests).To(BeEquivalentTo(10), "log in; config and layer: is it there, three to store it; manifest")
	envelope, digest, requests := b.pull("")
	b.Expect(requests).To(BeEquivalentTo(1))
	b.Expect(envelope).To(Equal(`{"a":1}`))
	b.Expect(digest).To(Equal(first))

	same, requests := b.push(`{"a":1}`, first)
	b.Expect(requests).To(BeZero())
	b.Expect(same).To(Equal(first))

	second, requests := b.push(`{"a":2}`, first)
	b.Expect(requests).To(BeEquivalentTo(5), "the config is there")
	b.Expect(second).NotTo(Equal(first))

	envelope, digest, requests = b.pull(first)
	b.Expect(requests).To(BeEquivalentTo(2))
	b.Expect(envelope).To(Equal(`{"a":2}`))
	b.Expect(digest).To(Equal(second))

	envelope, digest, requests = b.pull(second)
	b.Expect(requests).To(BeEquivalentTo(1), "its digest is asked for")
	b.Expect(envelope).To(BeEmpty())
	b.Expect(digest).To(Equal(second))

	b.open()
	_, _, requests = b.pull(second)
	b.Expect(requests).To(BeEquivalentTo(2), "and the first time, how to log in")
	b.Expect(b.registry.Digests(t.Context(), "promotions/staging-eu")).To(Equal(map[string]string{"shop.shop": second}))
}

// TestConfigOfReportsIsStoredAgain: a registry removes what no manifest names, and then it
// refuses a manifest.
func TestConfigOfReportsIsStoredAgain(t *testing.T) {
	b := openBus(t)
	removed, layers := false, 0
	b.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch manifest := strings.Contains(r.URL.Path, "/manifests/"); {
		case removed && r.Method == http.MethodPut && manifest:
			removed = false
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN"}]}`))
			return
		case r.Method == http.MethodHead && !manifest:
			layers++
		}
		b.registry.ServeHTTP(w, r)
	})
	b.place.Repository = b.host() + "/promotions"
	_, _ = b.push("1", "")
	b.Expect(layers).To(Equal(2))
	_, _ = b.push("2", "")
	b.Expect(layers).To(Equal(3))
	removed = true
	_, err := b.reports.Push(t.Context(), b.place, []byte("3"), "")
	b.Expect(err).To(HaveOccurred())
	b.Expect(layers).To(Equal(4))
	_, _ = b.push("3", "")
	b.Expect(layers).To(Equal(6))
}

func TestReportsOfRolloutsAreApart(t *testing.T) {
	b := openBus(t)
	_, _ = b.push("shop", "")
	b.place.Tag = "shop.mail"
	_, _ = b.push("mail", "")
	envelope, _, _ := b.pull("")
	b.Expect(envelope).To(Equal("mail"))
	b.place.Tag = "shop.shop"
	envelope, _, _ = b.pull("")
	b.Expect(envelope).To(Equal("shop"))
}

// TestReportIsAnOrdinaryArtifact: other tools can fetch the layer of a report.
func TestReportIsAnOrdinaryArtifact(t *testing.T) {
	b := openBus(t)
	digest, _ := b.push("envelope", "")
	ref, err := name.NewDigest(b.place.Repository+"@"+digest, name.Insecure)
	b.Expect(err).NotTo(HaveOccurred())
	image, err := remote.Image(ref)
	b.Expect(err).NotTo(HaveOccurred())
	config, err := image.RawConfigFile()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(string(config)).To(Equal("{}"))
	layers, err := image.Layers()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(layers).To(HaveLen(1))
	content, err := layers[0].Compressed()
	b.Expect(err).NotTo(HaveOccurred())
	var text bytes.Buffer
	_, err = text.ReadFrom(content)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(text.String()).To(Equal("envelope"))
}

// raw is any manifest.
type raw string

func (r raw) RawManifest() ([]byte, error)        { return []byte(r), nil }
func (r raw) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// manifestOf returns the manifest of a report, with a change.
func manifestOf(envelope string, change func(*v1.Manifest)) raw {
	digest, size, err := v1.SHA256(strings.NewReader(envelope))
	if err != nil {
		panic(err)
	}
	m := v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: "application/vnd.fluxrollouts.report.v1+json", Digest: digest},
		Layers: []v1.Descriptor{{MediaType: "application/vnd.dsse.envelope.v1+json", Digest: digest, Size: size, Data: []byte(envelope)}},
	}
	change(&m)
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw(text)
}

func TestWhatIsNoReportIsNotRead(t *testing.T) {
	unchanged := func(*v1.Manifest) {}
	mismatch := "it is not a report: the layer in its manifest is not the one with the digest sha256:"
	for name, test := range map[string]struct {
		content remote.Taggable
		want    string
	}{
		"nothing is wrong":    {manifestOf("x", unchanged), ""},
		"the largest":         {manifestOf(strings.Repeat("x", report.MostBytes), unchanged), ""},
		"an image":            {image(map[string]string{"version": "1.0.0"}), `it is not a report: the type of its config is "application/vnd.docker.container.image.v1+json"`},
		"an index":            {raw(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`), `it is not a report: the type of its config is ""`},
		"no manifest":         {raw(`<html>`), "it is not a report: its manifest cannot be read"},
		"another artifact":    {manifestOf("x", func(m *v1.Manifest) { m.Layers[0].MediaType = "text/plain" }), "it is not a report: its only layer must be of type application/vnd.dsse.envelope.v1+json"},
		"no layer":            {manifestOf("x", func(m *v1.Manifest) { m.Layers = nil }), "it is not a report: its only layer must be of type"},
		"two layers":          {manifestOf("x", func(m *v1.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) }), "it is not a report: its only layer must be of type"},
		"no data":             {manifestOf("x", func(m *v1.Manifest) { m.Layers[0].Data = nil }), mismatch},
		"data of another":     {manifestOf("x", func(m *v1.Manifest) { m.Layers[0].Data = []byte("y") }), mismatch},
		"another size":        {manifestOf("x", func(m *v1.Manifest) { m.Layers[0].Size = 2 }), mismatch},
		"a large envelope":    {manifestOf(strings.Repeat("x", report.MostBytes+1), unchanged), "it is not a report: its layer has 65537 bytes, and only 65536 are read"},
		"a large manifest":    {manifestOf(strings.Repeat("x", 80<<10), unchanged), "it is not a report: the answer is larger than any that is read: it has too many bytes"},
		"a manifest of parts": {raw(`{"layers":[` + strings.Repeat("{},", 30_000) + `{}]}`), "it is not a report: the answer is larger than any that is read: it has too many elements"},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t)
			b.put(test.content)
			for _, known := range []string{"", "sha256:" + strings.Repeat("0", 64)} {
				stored, err := b.reports.Pull(t.Context(), b.place, known)
				if test.want == "" {
					b.Expect(err).NotTo(HaveOccurred())
					b.Expect(stored.Envelope).NotTo(BeEmpty())
					continue
				}
				b.Expect(stored).To(Equal(ours.Stored{}))
				b.Expect(err).To(MatchError(ours.ErrNotReport))
				b.Expect(err).To(MatchError(ContainSubstring(test.want)))
			}
		})
	}
}

func TestReportThatNobodyCouldReadIsNotStored(t *testing.T) {
	b := openBus(t)
	_, err := b.reports.Push(t.Context(), b.place, make([]byte, report.MostBytes+1), "")
	b.Expect(err).To(MatchError(ours.ErrInvalid))
	b.Expect(err).To(MatchError(ContainSubstring("it has 65537 bytes, and others read only 65536")))
	b.Expect(b.registry.Requests()).To(BeZero())
}

func TestPlaceMustHaveAName(t *testing.T) {
	for name, change := range map[string]func(*ours.Place){
		"no repository":         func(p *ours.Place) { p.Repository = "" },
		"a repository with tag": func(p *ours.Place) { p.Repository += ":1.0.0" },
		"no name":               func(p *ours.Place) { p.Repository = "Not a name" },
		"no tag":                func(p *ours.Place) { p.Tag = "" },
		"a tag that is none":    func(p *ours.Place) { p.Tag = "a/b" },
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t)
			change(&b.place)
			_, err := b.reports.Pull(t.Context(), b.place, "")
			b.Expect(err).To(MatchError(ours.ErrInvalid))
			_, err = b.reports.Push(t.Context(), b.place, []byte("x"), "")
			b.Expect(err).To(MatchError(ours.ErrInvalid))
			b.Expect(b.registry.Requests()).To(BeZero())
		})
	}
}

func TestLoginToReports(t *testing.T) {
	for name, test := range map[string]struct {
		objects []string // with the password, by name; another namespace is named before a slash
		secret  string
		spec    string
		fails   string
	}{
		"by the Secret of the backend":         {objects: []string{"promotions"}, secret: "promotions"},
		"by that of the ImageRepository":       {objects: []string{"login"}, spec: "login"},
		"by the former, if there are both":     {objects: []string{"promotions"}, secret: "promotions", spec: "missing"},
		"not by a Secret of another namespace": {objects: []string{"other/promotions"}, secret: "promotions", fails: "read Secret registry/promotions"},
		"not without any":                      {objects: []string{"promotions"}, fails: "401"},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t)
			b.registry.RequireLogin("flux", "secret")
			for _, object := range test.objects {
				namespace, of, elsewhere := strings.Cut(object, "/")
				if !elsewhere {
					namespace, of = "registry", object
				}
				b.objects = append(b.objects, pull(namespace, of, b.registry.Host(), "secret"))
			}
			b.place.Secret = test.secret
			if test.spec != "" {
				b.spec.SecretRef = &meta.LocalObjectReference{Name: test.spec}
			}
			b.open()
			if test.fails != "" {
				_, err := b.reports.Push(t.Context(), b.place, []byte("x"), "")
				b.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				return
			}
			digest, _ := b.push("x", "")
			_, _, requests := b.pull(digest)
			b.Expect(requests).To(BeEquivalentTo(2), "pushing is another right")
			_, _, requests = b.pull(digest)
			b.Expect(requests).To(BeEquivalentTo(1))
		})
	}
}

func TestReportsWithoutAnImageRepository(t *testing.T) {
	b := openBus(t)
	b.place.ImageRepository = ""
	digest, _ := b.push("x", "")
	_, got, _ := b.pull("")
	b.Expect(got).To(Equal(digest))
	b.place.ImageRepository = "missing"
	_, err := b.reports.Pull(t.Context(), b.place, "")
	b.Expect(err).To(MatchError(ContainSubstring("get ImageRepository registry/missing")))
}

// TestTokensOfARegistry: most registries want a token, which ends after some minutes.
func TestTokensOfARegistry(t *testing.T) {
	b := openBus(t)
	var asked []string
	tokens, valid := 0, ""
	b.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			asked = append(asked, "token "+r.URL.Query().Get("scope"))
			tokens++
			valid = fmt.Sprint("token-", tokens)
			_, _ = fmt.Fprintf(w, `{"token":%q}`, valid)
		case r.Header.Get("Authorization") != "Bearer "+valid:
			asked = append(asked, "refused "+r.Method)
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry",scope="scope-%d"`, b.server.URL, tokens))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			asked = append(asked, r.Method)
			b.registry.ServeHTTP(w, r)
		}
	})
	requests := func(do func()) []string {
		asked = nil
		do()
		return asked
	}
	b.place.Repository = b.host() + "/promotions"
	digest, _ := b.push("x", "")
	look := func() { _, _, _ = b.pull(digest) }
	b.Expect(requests(look)).To(Equal([]string{"refused GET", "token repository:promotions:pull", "HEAD"}))
	b.Expect(requests(look)).To(Equal([]string{"HEAD"}))
	valid = "another" // it has expired
	b.Expect(requests(look)).To(Equal([]string{"refused HEAD", "refused GET", "token repository:promotions:pull", "HEAD"}))
	b.Expect(requests(look)).To(Equal([]string{"HEAD"}))
}

func TestLoginIsRepeatedWhenTheRegistryForgetsIt(t *testing.T) {
	b := openBus(t)
	var asked []string
	refuse := false
	b.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		if refuse {
			refuse = false
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		b.registry.ServeHTTP(w, r)
	})
	b.place.Repository = b.host() + "/promotions"
	digest, _ := b.push("x", "")
	_, _, _ = b.pull(digest)
	asked, refuse = nil, true
	_, got, _ := b.pull(digest)
	b.Expect(got).To(Equal(digest))
	manifest := "HEAD /v2/promotions/manifests/shop.shop"
	b.Expect(asked).To(Equal([]string{manifest, "GET /v2/", manifest}))
}

func TestManyLookAtOnceWhileTokensEnd(t *testing.T) {
	b := openBus(t)
	var number atomic.Int64
	b.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			_, _ = fmt.Fprintf(w, `{"token":"token-%d","refresh_token":"again"}`, number.Add(1))
		case r.URL.Path == "/v2/" || number.Load()%10 == 0 && r.Method == http.MethodHead:
			number.Add(1)
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry"`, b.server.URL))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			number.Add(1)
			b.registry.ServeHTTP(w, r)
		}
	})
	b.place.Repository = b.host() + "/promotions"
	digest, _ := b.push("x", "")
	errs := make(chan error)
	for range 8 {
		go func() {
			var all error
			for range 20 {
				_, err := b.reports.Pull(context.Background(), b.place, digest)
				all = errors.Join(all, err)
			}
			errs <- all
		}()
	}
	for range 8 {
		b.Expect(<-errs).NotTo(HaveOccurred())
	}
}

// TestRegistryIsNotAskedAgain: the caller decides when to try again.
func TestRegistryIsNotAskedAgain(t *testing.T) {
	b := openBus(t)
	requests, broken := 0, false
	b.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if broken {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		b.registry.ServeHTTP(w, r)
	})
	b.place.Repository = b.host() + "/promotions"
	_, _ = b.push("x", "")
	_, _, _ = b.pull("")
	requests, broken = 0, true
	_, err := b.reports.Pull(t.Context(), b.place, "")
	b.Expect(err).To(MatchError(ContainSubstring("500")))
	b.Expect(requests).To(Equal(1))
}

func TestPasswordIsChanged(t *testing.T) {
	b := openBus(t)
	digest, _ := b.push("x", "")
	_, _, _ = b.pull(digest)
	b.registry.RequireLogin("flux", "secret")
	_, err := b.reports.Pull(t.Context(), b.place, digest)
	b.Expect(err).To(MatchError(ContainSubstring("authentication required")))

	b.objects = []client.Object{pull("registry", "login", b.registry.Host(), "secret")}
	b.place.Secret = "login"
	b.open()
	_, got, _ := b.pull(digest)
	b.Expect(got).To(Equal(digest))

	b.place.Secret = "" // the session of others is of no use without their login
	_, err = b.reports.Pull(t.Context(), b.place, digest)
	b.Expect(err).To(MatchError(ContainSubstring("authentication required")))
}

func TestReportsThroughACertificateAuthority(t *testing.T) {
	b := openBus(t)
	secure := httptest.NewTLSServer(b.registry)
	t.Cleanup(secure.Close)
	b.objects = []client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "registry", Name: "way"}, Data: map[string][]byte{"ca.crt": pemOf(secure.Certificate())},
	}}
	b.spec.CertSecretRef = &meta.LocalObjectReference{Name: "way"}
	b.place.Repository, b.place.Insecure = strings.TrimPrefix(secure.URL, "https://")+"/promotions", false
	b.open()
	digest, _ := b.push("x", "")
	for range 2 {
		_, got, requests := b.pull(digest)
		b.Expect(got).To(Equal(digest))
		b.Expect(requests).To(BeEquivalentTo(2), "connections of its own are not kept")
	}
}

// TestRegistryWithoutHead: some registries answer HEAD with an error, or without a digest.
func TestRegistryWithoutHead(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an error":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"no digest": func(http.ResponseWriter, *http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t)
			b.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/manifests/") {
					answer(w, r)
					return
				}
				b.registry.ServeHTTP(w, r)
			})
			b.place.Repository = b.host() + "/promotions"
			digest, _ := b.push("x", "")
			envelope, got, _ := b.pull(digest)
			b.Expect(got).To(Equal(digest))
			b.Expect(envelope).To(BeEmpty())
			envelope, _, _ = b.pull("")
			b.Expect(envelope).To(Equal("x"))
		})
	}
}

func TestRegistryAsksToWait(t *testing.T) {
	const date, later = "Mon, 02 Mar 2026 12:00:00 GMT", "Mon, 02 Mar 2026 12:01:30 GMT"
	for name, test := range map[string]struct {
		status int
		after  string
		date   string
		want   ours.Busy
		text   string
	}{
		"for seconds":        {429, "90", "", ours.Busy{Status: 429, After: 90 * time.Second}, "429 Too Many Requests, for 1m30s"},
		"until a time":       {503, later, date, ours.Busy{Status: 503, After: 90 * time.Second}, "503 Service Unavailable, for 1m30s"},
		"until a past time":  {503, date, later, ours.Busy{Status: 503}, "503 Service Unavailable"},
		"until some time":    {503, later, "today", ours.Busy{Status: 503}, "503 Service Unavailable"},
		"without a time":     {429, "", "", ours.Busy{Status: 429}, "429 Too Many Requests"},
		"for no time":        {429, "soon", "", ours.Busy{Status: 429}, "429 Too Many Requests"},
		"for less than none": {429, "-5", "", ours.Busy{Status: 429}, "429 Too Many Requests"},
		"forever":            {429, "9000000000000000000", "", ours.Busy{Status: 429, After: time.Hour}, "429 Too Many Requests, for 1h0m0s"},
	} {
		for _, when := range []string{"/v2/", "/manifests/", "/blobs/"} {
			t.Run(name+" at "+when, func(t *testing.T) {
				b := openBus(t)
				requests := 0
				b.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, when) && (when == "/v2/" || !strings.Contains(r.URL.Path, when)) {
						b.registry.ServeHTTP(w, r)
						return
					}
					requests++
					w.Header().Set("Retry-After", test.after)
					if test.date != "" {
						w.Header().Set("Date", test.date)
					}
					w.WriteHeader(test.status)
				})
				b.place.Repository = b.host() + "/promotions"
				_, err := b.reports.Push(t.Context(), b.place, []byte("x"), "")
				if when != "/blobs/" {
					_, pullErr := b.reports.Pull(t.Context(), b.place, "sha256:"+strings.Repeat("0", 64))
					b.Expect(pullErr).To(MatchError(HaveSuffix(": the registry asks to wait: " + test.text)))
					requests--
				}
				var busy *ours.Busy
				b.Expect(errors.As(err, &busy)).To(BeTrue(), fmt.Sprint(err))
				b.Expect(*busy).To(Equal(test.want))
				b.Expect(requests).To(Equal(1), "it is not asked again")
			})
		}
	}
}

func TestHungRegistryDoesNotHoldAReport(t *testing.T) {
	b := openBus(t)
	asked := make(chan struct{}, 2)
	b.handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	b.place.Repository = b.host() + "/promotions"
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := b.reports.Pull(ctx, b.place, "")
	b.Expect(err).To(MatchError(context.Canceled))
}

func TestReportWhileTheRegistryIsAway(t *testing.T) {
	b := openBus(t)
	digest, _ := b.push("x", "")
	_, _, _ = b.pull(digest)
	b.Expect(b.registry.GoAway()).To(Succeed())
	_, err := b.reports.Pull(t.Context(), b.place, digest)
	b.Expect(err).To(HaveOccurred())
	b.Expect(errors.Is(err, ours.ErrNotFound)).To(BeFalse())
	b.Expect(b.registry.ComeBack()).To(Succeed())
	_, got, _ := b.pull(digest)
	b.Expect(got).To(Equal(digest))
}

// TestRequestsForReportsAreLimited: within the time of a request, none is added to those
// that may be sent at once.
func TestRequestsForReportsAreLimited(t *testing.T) {
	b, other := openBus(t), openBus(t)
	digest, _ := other.push("x", "")
	_, _ = b.push("x", "")
	const perHour = 1. / 3600
	b.open()
	b.reports.Limit(perHour, 5)
	_, _, requests := b.pull("")
	b.Expect(requests).To(BeEquivalentTo(2), "how to log in, and the report; that it does not speak TLS counts, too")
	for range 2 {
		_, _, requests = b.pull(digest)
		b.Expect(requests).To(BeEquivalentTo(1))
	}
	before := b.registry.Requests()
	_, err := b.reports.Pull(t.Context(), b.place, digest)
	b.Expect(err).To(MatchError(ours.ErrLimit))
	_, err = b.reports.Push(t.Context(), b.place, []byte("y"), digest)
	b.Expect(err).To(MatchError(ours.ErrLimit))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.reports.Pull(ctx, b.place, digest)
	b.Expect(err).To(MatchError(context.Canceled))
	b.Expect(b.registry.Requests()).To(Equal(before))

	b.place = other.place
	_, err = b.reports.Pull(t.Context(), b.place, digest)
	b.Expect(err).NotTo(HaveOccurred(), "another host has a limit of its own")
	b.reports.Limit(0, 0)
	_, err = b.reports.Push(t.Context(), b.place, []byte("y"), digest)
	b.Expect(err).NotTo(HaveOccurred())
}

// FuzzReportManifest checks that reading any answer of a registry ends, and that what is
// read is what the manifest says.
func FuzzReportManifest(f *testing.F) {
	for _, manifest := range append(manifests,
		string(manifestOf("x", func(*v1.Manifest) {})), string(manifestOf("x", func(m *v1.Manifest) { m.Layers[0].Data = nil })),
		`{"config":{"mediaType":"application/vnd.fluxrollouts.report.v1+json"},"layers":[{"mediaType":"application/vnd.dsse.envelope.v1+json","data":"eA=="}]}`,
	) {
		f.Add([]byte(manifest))
	}
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			_, _ = w.Write(body)
		}
	}))
	f.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	reports := ours.NewReports(readerOf(f, host))
	place := ours.Place{Repository: host + "/promotions", Tag: "shop.shop", Insecure: true, Namespace: "shop"}
	f.Fuzz(func(t *testing.T, answer []byte) {
		body = answer
		stored, err := reports.Pull(t.Context(), place, "")
		if err != nil {
			return
		}
		if len(stored.Envelope) > report.MostBytes || !bytes.Contains(answer, []byte(base64.StdEncoding.EncodeToString(stored.Envelope))) {
			t.Errorf("%q is not in %s: %s", stored.Envelope, answer, cmp.Diff(nil, err))
		}
	})
}

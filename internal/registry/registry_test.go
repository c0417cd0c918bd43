// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	ours "github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/fixture/loopback"
)

// site is a registry, and the objects of a cluster that define how to reach it.
type site struct {
	*WithT
	server  *httptest.Server
	handler http.Handler
	objects []client.Object
	spec    imagev1.ImageRepositorySpec
}

func openSite(t *testing.T) *site {
	t.Helper()
	s := &site{WithT: NewWithT(t), handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }))
	t.Cleanup(s.server.Close)
	s.spec = imagev1.ImageRepositorySpec{Image: s.host() + "/shop", Insecure: true}
	return s
}

func (s *site) host() string { return strings.TrimPrefix(s.server.URL, "http://") }

// push stores an image or an index under a tag and returns its digest.
func (s *site) push(tag string, content remote.Taggable) string {
	ref, err := name.NewTag(s.host()+"/shop:"+tag, name.Insecure)
	s.Expect(err).NotTo(HaveOccurred())
	if index, ok := content.(v1.ImageIndex); ok {
		s.Expect(remote.WriteIndex(ref, index)).To(Succeed())
	} else {
		s.Expect(remote.Write(ref, content.(v1.Image))).To(Succeed())
	}
	head, err := remote.Head(ref)
	s.Expect(err).NotTo(HaveOccurred())
	return head.Digest.String()
}

// guard only allows requests with the password.
func (s *site) guard(password string) {
	open := s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, shown, _ := r.BasicAuth(); shown != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.ServeHTTP(w, r)
	})
}

// read reads an image of the ImageRepository registry/shop.
func (s *site) read(ctx context.Context, image ours.Image) (releases.Metadata, error) {
	return s.readBy(ctx, s.reader(), image)
}

func (s *site) readBy(ctx context.Context, reader *ours.Reader, image ours.Image) (releases.Metadata, error) {
	image.Repository, image.Name = client.ObjectKeyFromObject(s.repository()), s.spec.Image
	return reader.Read(ctx, image)
}

func (s *site) repository() *imagev1.ImageRepository {
	return &imagev1.ImageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "registry", Name: "shop"}, Spec: s.spec}
}

func (s *site) reader() *ours.Reader {
	scheme := runtime.NewScheme()
	s.Expect(imagev1.AddToScheme(scheme)).To(Succeed())
	s.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(s.objects, s.repository())...).Build()
	reader, err := ours.NewReader(cluster, cluster, loopback.Guard())
	s.Expect(err).NotTo(HaveOccurred())
	return reader
}

func annotated(content partial.WithRawManifest, texts map[string]string) partial.WithRawManifest {
	all := map[string]string{}
	for key, text := range texts {
		all["org.opencontainers.image."+key] = text
	}
	return mutate.Annotations(content, all)
}

// image returns an image without content.
func image(texts map[string]string) v1.Image {
	return annotated(mutate.MediaType(empty.Image, types.OCIManifestSchema1), texts).(v1.Image)
}

// labelled returns a container image with labels in its config.
func labelled(of v1.Image, texts map[string]string) v1.Image {
	labels := map[string]string{}
	for key, text := range texts {
		labels["org.opencontainers.image."+key] = text
	}
	return configured(of, labels)
}

// configured returns a container image with these labels and no others.
func configured(of v1.Image, labels map[string]string) v1.Image {
	config := v1.Config{Labels: labels}
	of, err := mutate.Config(mutate.ConfigMediaType(of, types.OCIConfigJSON), config)
	if err != nil {
		panic(err)
	}
	return of
}

// indexOf returns an index of images for platforms such as linux/amd64.
func indexOf(texts map[string]string, images map[string]v1.Image) v1.ImageIndex {
	index := annotated(empty.Index, texts).(v1.ImageIndex)
	for platform, image := range images {
		os, architecture, _ := strings.Cut(platform, "/")
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: os, Architecture: architecture}},
		})
	}
	return index
}

func TestWhereMetadataIsFound(t *testing.T) {
	const ociImage, ociIndex = "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.index.v1+json"
	flux := mutate.ConfigMediaType(image(map[string]string{"revision": "main@sha1:1"}), "application/vnd.cncf.flux.config.v1+json")
	amd, arm := image(map[string]string{"revision": "amd"}), image(map[string]string{"revision": "arm"})
	for name, tt := range map[string]struct {
		content remote.Taggable
		want    releases.Metadata
	}{
		"in the annotations of the manifest": {
			labelled(image(map[string]string{
				"version": "1.0.0", "revision": "main", "created": "2026-03-02T11:00:00Z",
				"source": "https://example.com", "title": "Shop", "description": "Sells things.",
			}), nil),
			releases.Metadata{
				Version: "1.0.0", Revision: "main", Created: fixture.Noon.Add(-time.Hour), ArtifactType: ociImage,
				Source: "https://example.com", Title: "Shop", Description: "Sells things.",
			},
		},
		"in the artifact that Flux pushes": {
			flux, releases.Metadata{Revision: "main@sha1:1", ArtifactType: "application/vnd.cncf.flux.config.v1+json"},
		},
		"in the labels of the config": {
			labelled(image(nil), map[string]string{"revision": "main"}),
			releases.Metadata{Revision: "main", ArtifactType: ociImage},
		},
		"in the annotations rather than the labels": {
			labelled(image(map[string]string{"revision": "annotation"}), map[string]string{"revision": "label", "title": "label"}),
			releases.Metadata{Revision: "annotation", Title: "label", ArtifactType: ociImage},
		},
		"in an index itself": {
			indexOf(map[string]string{"revision": "index"}, map[string]v1.Image{"linux/amd64": labelled(amd, nil)}),
			releases.Metadata{Revision: "index", ArtifactType: ociIndex},
		},
		"in the image for linux/amd64": {
			indexOf(nil, map[string]v1.Image{"linux/arm64": labelled(arm, nil), "linux/amd64": labelled(amd, nil)}),
			releases.Metadata{Revision: "amd", ArtifactType: ociIndex},
		},
		"in another image, but not in an attestation": {
			indexOf(nil, map[string]v1.Image{"unknown/unknown": amd, "linux/arm64": labelled(arm, nil)}),
			releases.Metadata{Revision: "arm", ArtifactType: ociIndex},
		},
		"in the labels of an image of an index": {
			indexOf(nil, map[string]v1.Image{"linux/amd64": labelled(image(nil), map[string]string{"revision": "label"})}),
			releases.Metadata{Revision: "label", ArtifactType: ociIndex},
		},
		"nowhere": {labelled(image(nil), nil), releases.Metadata{ArtifactType: ociImage}},
		"and a time that is none is left out": {
			labelled(image(map[string]string{"created": "yesterday", "revision": "main"}), nil),
			releases.Metadata{Revision: "main", ArtifactType: ociImage},
		},
		"and a time that cannot be stored is left out": {
			labelled(image(map[string]string{"created": "9999-12-31T23:59:59-01:00", "revision": "main"}), nil),
			releases.Metadata{Revision: "main", ArtifactType: ociImage},
		},
		"and a long text is cut": {
			labelled(image(map[string]string{"title": strings.Repeat("x", 2000)}), nil),
			releases.Metadata{Title: strings.Repeat("x", 681) + " … " + strings.Repeat("x", 340), ArtifactType: ociImage},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t)
			tt.want.Tag, tt.want.Digest = "1.0.0", s.push("1.0.0", tt.content)
			tt.want.Manifests = listed(tt.content)
			for _, digest := range []string{"", tt.want.Digest} {
				got, err := s.read(t.Context(), ours.Image{Tag: "1.0.0", Digest: digest})
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(cmp.Diff(tt.want, got)).To(BeEmpty())
			}
		})
	}
}

// listed returns the digests of the images that an index lists.
func listed(content remote.Taggable) []string {
	index, ok := content.(v1.ImageIndex)
	if !ok {
		return nil
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		panic(err)
	}
	var digests []string
	for _, image := range manifest.Manifests {
		digests = append(digests, image.Digest.String())
	}
	return digests
}

// pull returns a Secret with a login to a registry.
func pull(namespace, name, host, password string) client.Object {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(
			`{"auths":{"` + host + `":{"username":"flux","password":"` + password + `"}}}`)},
	}
}

func TestWhoeverMayReadIsLetIn(t *testing.T) {
	account := &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "registry", Name: "puller"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "login"}},
	}
	crowd, repeats := account.DeepCopy(), account.DeepCopy()
	crowd.Name, repeats.Name = "crowd", "repeats"
	for i := range 17 {
		crowd.ImagePullSecrets = append(crowd.ImagePullSecrets, corev1.LocalObjectReference{Name: fmt.Sprint("login-", i)})
		repeats.ImagePullSecrets = append(repeats.ImagePullSecrets, account.ImagePullSecrets...)
	}
	for name, tt := range map[string]struct {
		objects func(host string) []client.Object
		spec    func(*imagev1.ImageRepositorySpec)
		fails   string
	}{
		"by a pull secret that is named again and again": {
			objects: func(host string) []client.Object {
				return []client.Object{pull("registry", "login", host, "secret"), repeats}
			},
			spec: func(s *imagev1.ImageRepositorySpec) { s.ServiceAccountName = "repeats" },
		},
		"but not with more pull secrets than are read": {
			objects: func(host string) []client.Object {
				return []client.Object{pull("registry", "login", host, "secret"), crowd}
			},
			spec:  func(s *imagev1.ImageRepositorySpec) { s.ServiceAccountName = "crowd" },
			fails: "name 18 pull secrets: at most 16 are read",
		},
		"by the Secret of the ImageRepository": {
			objects: func(host string) []client.Object { return []client.Object{pull("registry", "login", host, "secret")} },
			spec:    func(s *imagev1.ImageRepositorySpec) { s.SecretRef = &meta.LocalObjectReference{Name: "login"} },
		},
		"by the pull secrets of its ServiceAccount": {
			objects: func(host string) []client.Object {
				return []client.Object{pull("registry", "login", "http://"+host, "secret"), account}
			},
			spec: func(s *imagev1.ImageRepositorySpec) { s.ServiceAccountName = "puller" },
		},
		"but not by a Secret of another namespace": {
			objects: func(host string) []client.Object { return []client.Object{pull("shop-prod", "login", host, "secret")} },
			spec:    func(s *imagev1.ImageRepositorySpec) { s.SecretRef = &meta.LocalObjectReference{Name: "login"} },
			fails:   "read Secret registry/login",
		},
		"nor by the password of another registry": {
			objects: func(string) []client.Object {
				return []client.Object{pull("registry", "login", "other.example", "secret")}
			},
			spec:  func(s *imagev1.ImageRepositorySpec) { s.SecretRef = &meta.LocalObjectReference{Name: "login"} },
			fails: "401",
		},
		"nor without any": {fails: "401"},
		"nor by a provider's token for a ServiceAccount": {
			objects: func(string) []client.Object {
				return []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "registry", Name: "cloud"}}}
			},
			spec:  func(s *imagev1.ImageRepositorySpec) { s.Provider, s.ServiceAccountName = "aws", "cloud" },
			fails: "spec.provider aws with spec.serviceAccountName is not supported here",
		},
		"nor by a provider to which the registry does not belong": {
			spec:  func(s *imagev1.ImageRepositorySpec) { s.Provider, s.Insecure = "aws", false },
			fails: "invalid AWS registry",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t)
			s.push("1.0.0", image(map[string]string{"revision": "main"}))
			s.guard("secret")
			if tt.objects != nil {
				s.objects = tt.objects(s.host())
			}
			if tt.spec != nil {
				tt.spec(&s.spec)
			}
			got, err := s.read(t.Context(), ours.Image{Tag: "1.0.0"})
			if tt.fails != "" {
				s.Expect(err).To(MatchError(ContainSubstring(tt.fails)))
				return
			}
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(got.Revision).To(Equal("main"))
		})
	}
}

// TestNobodyIsLetInAsTheControllerItself: if this is disabled, a user who creates an
// ImageRepository must not be able to read what the controller may read.
func TestNobodyIsLetInAsTheControllerItself(t *testing.T) {
	s := openSite(t)
	s.push("1.0.0", image(map[string]string{"revision": "main"}))
	s.guard("secret")
	ownLogin(t, s.host())
	s.spec.Insecure = false // loopback needs no permission for plain HTTP
	got, err := s.read(t.Context(), ours.Image{Tag: "1.0.0"})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(got.Revision).To(Equal("main"), "by its Docker config")

	refusing := s.reader()
	refusing.NoOwnCredentials = true
	_, err = s.readBy(t.Context(), refusing, ours.Image{Tag: "1.0.0"})
	s.Expect(err).To(MatchError(ContainSubstring("401")))

	s.spec.Provider = "aws"
	refusing = s.reader()
	refusing.NoOwnCredentials = true
	_, err = s.readBy(t.Context(), refusing, ours.Image{Tag: "1.0.0"})
	s.Expect(err).To(MatchError(ours.ErrInvalid))
	s.Expect(err).To(MatchError(ContainSubstring("name a Secret in spec.secretRef")))
}

func TestReachingTheRegistry(t *testing.T) {
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "registry", Name: "way"}, Data: data}
	}
	t.Run("through a proxy", func(t *testing.T) {
		s := openSite(t)
		s.push("1.0.0", image(map[string]string{"revision": "main"}))
		s.objects = []client.Object{secret(map[string][]byte{"address": []byte(s.server.URL)})}
		s.spec.ProxySecretRef = &meta.LocalObjectReference{Name: "way"}
		s.spec.Image = "registry.example/shop" // only the proxy knows it
		got, err := s.read(t.Context(), ours.Image{Tag: "1.0.0"})
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(got.Revision).To(Equal("main"))
	})
	t.Run("with a certificate authority of its own", func(t *testing.T) {
		s := openSite(t)
		s.push("1.0.0", image(map[string]string{"revision": "main"}))
		secure := httptest.NewTLSServer(s.handler)
		t.Cleanup(secure.Close)
		s.spec.Image, s.spec.Insecure = strings.TrimPrefix(secure.URL, "https://")+"/shop", false
		_, err := s.read(t.Context(), ours.Image{Tag: "1.0.0"})
		s.Expect(err).To(MatchError(ContainSubstring("certificate")))

		s.objects = []client.Object{secret(map[string][]byte{"ca.crt": pemOf(secure.Certificate())})}
		s.spec.CertSecretRef = &meta.LocalObjectReference{Name: "way"}
		got, err := s.read(t.Context(), ours.Image{Tag: "1.0.0"})
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(got.Revision).To(Equal("main"))
	})
}

func TestConnectionsAreSharedUnlessTheImageRepositoryHasItsOwnWay(t *testing.T) {
	for name, tt := range map[string]struct {
		way  *meta.LocalObjectReference
		want int
	}{
		"none":    {nil, 1},
		"a proxy": {&meta.LocalObjectReference{Name: "way"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t)
			s.push("1.0.0", image(nil))
			var open sync.Map
			handler := s.handler
			s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodConnect { // the client first checks whether there is TLS
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				open.Store(r.RemoteAddr, true)
				handler.ServeHTTP(w, r)
			})
			s.objects = []client.Object{&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "registry", Name: "way"}, Data: map[string][]byte{"address": []byte(s.server.URL)},
			}}
			s.spec.ProxySecretRef = tt.way
			reader := s.reader()
			for range 2 {
				_, err := s.readBy(t.Context(), reader, ours.Image{Tag: "1.0.0"})
				s.Expect(err).NotTo(HaveOccurred())
			}
			var connections int
			open.Range(func(any, any) bool { connections++; return true })
			s.Expect(connections).To(Equal(tt.want))
		})
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	answers := func(code int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/" {
				w.WriteHeader(code)
				_, _ = io.WriteString(w, body)
			}
		})
	}
	for name, tt := range map[string]struct {
		image   string
		handler http.Handler
		is      error
	}{
		"that there is none":              {is: ours.ErrNotFound},
		"that its name is none":           {image: "Not a name", is: ours.ErrInvalid},
		"that its name has a tag":         {image: "example.com/shop:1.0.0", is: ours.ErrInvalid},
		"that the registry is unhealthy":  {handler: answers(http.StatusInternalServerError, "")},
		"that it is no manifest":          {handler: answers(http.StatusOK, "<html>")},
		"that it is larger than any":      {handler: answers(http.StatusOK, strings.Repeat(" ", 5<<20))},
		"that the registry has gone away": {image: "127.0.0.1:1/shop"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t)
			if tt.handler != nil {
				s.handler = tt.handler
			}
			if tt.image != "" {
				s.spec.Image = tt.image
			}
			_, err := s.read(t.Context(), ours.Image{Tag: "1.0.0"})
			s.Expect(err).To(HaveOccurred())
			for _, definite := range []error{ours.ErrNotFound, ours.ErrInvalid} {
				s.Expect(errors.Is(err, definite)).To(Equal(errors.Is(tt.is, definite)), err.Error())
			}
		})
	}
}

func TestHungRegistryIsLeftWhenTheContextEnds(t *testing.T) {
	s := openSite(t)
	asked := make(chan struct{})
	s.handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := s.read(ctx, ours.Image{Tag: "1.0.0"})
	s.Expect(err).To(MatchError(context.Canceled))
}

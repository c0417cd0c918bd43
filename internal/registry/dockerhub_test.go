// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/authn/kubernetes"
	"github.com/google/go-containerregistry/pkg/name"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestDockerHubIsFoundUnderEachOfItsNames(t *testing.T) {
	for _, tt := range []struct {
		key, image string
		found      bool
	}{
		{"https://index.docker.io/v1/", "nginx", true},
		{"index.docker.io", "nginx", true},
		{"docker.io", "nginx", true},
		{"https://docker.io", "docker.io/library/nginx", true},
		{"registry-1.docker.io", "index.docker.io/library/nginx", true},
		{"https://registry.hub.docker.com", "nginx", true},
		{"docker.io", "registry.example.com/example/nginx", false},
		{"registry.example.com", "nginx", false},
		{"registry.example.com", "registry.example.com/example/nginx", true},
		{"registry.example.com/example", "registry.example.com/example/nginx", true},
		{"registry.example.com/other", "registry.example.com/example/nginx", false},
	} {
		t.Run(tt.key+" for "+tt.image, func(t *testing.T) {
			g := NewWithT(t)
			keychain, err := kubernetes.NewFromPullSecrets(t.Context(), []corev1.Secret{{
				Type: corev1.SecretTypeDockerConfigJson,
				Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + tt.key + `":{"username":"flux","password":"secret"}}}`)},
			}})
			g.Expect(err).NotTo(HaveOccurred())
			image, err := name.NewRepository(tt.image)
			g.Expect(err).NotTo(HaveOccurred())
			login, err := dockerHub{keychain}.Resolve(image)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(login != authn.Anonymous).To(Equal(tt.found))
		})
	}
}

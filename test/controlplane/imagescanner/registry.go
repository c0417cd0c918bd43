// SPDX-License-Identifier: Apache-2.0

package imagescanner

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unpooled keeps no connection, so that nothing idles when the scanner stops.
var unpooled = &http.Transport{DisableKeepAlives: true}

// imageName reads spec.image, which must not have a tag.
func imageName(repo *imagev1.ImageRepository) (name.Repository, error) {
	var options []name.Option
	if repo.Spec.Insecure {
		options = append(options, name.Insecure)
	}
	return name.NewRepository(repo.Spec.Image, options...)
}

// access is how the registry of a repository is reached.
func (s *Scanner) access(ctx context.Context, repo *imagev1.ImageRepository, image name.Repository) ([]remote.Option, error) {
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(unpooled)}
	if repo.Spec.SecretRef == nil {
		return options, nil
	}
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: repo.Namespace, Name: repo.Spec.SecretRef.Name}
	if err := s.direct.Get(ctx, key, &secret); err != nil {
		return nil, err
	}
	login, err := loginFor(image.RegistryStr(), secret.Data[corev1.DockerConfigJsonKey])
	if err != nil {
		return nil, fmt.Errorf("read the secret %s: %w", key, err)
	}
	return append(options, remote.WithAuth(login)), nil
}

func loginFor(host string, dockerConfig []byte) (authn.Authenticator, error) {
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(dockerConfig, &config); err != nil {
		return nil, err
	}
	login, known := config.Auths[host]
	if !known {
		return nil, fmt.Errorf("it has no login for %s", host)
	}
	return authn.FromConfig(login), nil
}

// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/auth"
	authutils "github.com/fluxcd/pkg/auth/utils"
	"github.com/fluxcd/pkg/cache"
	"github.com/fluxcd/pkg/runtime/secrets"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/authn/kubernetes"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// access defines how a registry is reached and with which login. All ImageRepositories
// without their own connection settings share connections: the login is part of each
// request.
type access struct {
	sender
	keychain authn.Keychain
}

// options returns the options for requests without retries: the caller tries again later.
func (a access) options(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithTransport(bounded{a.sender}),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithUserAgent(userAgent),
		remote.WithAuthFromKeychain(a.keychain),
	}
}

// hangUp closes the connections, unless others use them, too.
func (r *Reader) hangUp(a access) {
	if a.connections != r.connections {
		a.close()
	}
}

// access follows the ImageRepository in the same way as Flux. It only reads Secrets that
// the ImageRepository names, in its own namespace.
func (r *Reader) access(ctx context.Context, repository *imagev1.ImageRepository, image name.Repository) (access, error) {
	a := access{sender: sender{connections: r.connections, registry: image.Registry}}
	proxy, err := r.proxy(ctx, repository)
	if err != nil {
		return a, err
	}
	certificates, err := r.certificates(ctx, repository)
	if err != nil {
		return a, err
	}
	if proxy != nil || certificates != nil {
		a.connections = r.tenants(proxy, certificates)
	}
	a.keychain, err = r.login(ctx, repository, image)
	return a, err
}

// userAgent is how the controller names itself to registries.
const userAgent = "rollout-controller"

// certificates returns the TLS configuration of the ImageRepository. It is nil if the
// ImageRepository names no certificates.
func (r *Reader) certificates(ctx context.Context, repository *imagev1.ImageRepository) (*tls.Config, error) {
	named := repository.Spec.CertSecretRef
	if named == nil {
		return nil, nil
	}
	secret, err := r.secret(ctx, repository.Namespace, named.Name)
	if err != nil {
		return nil, err
	}
	config, err := secrets.TLSConfigFromSecret(ctx, secret, secrets.WithSystemCertPool())
	if err != nil {
		return nil, fmt.Errorf("use spec.certSecretRef: %w", err)
	}
	return config, nil
}

func (r *Reader) proxy(ctx context.Context, repository *imagev1.ImageRepository) (*url.URL, error) {
	named := repository.Spec.ProxySecretRef
	if named == nil {
		return nil, nil
	}
	secret, err := r.secret(ctx, repository.Namespace, named.Name)
	if err != nil {
		return nil, err
	}
	proxy, err := secrets.ProxyURLFromSecret(ctx, secret)
	if err != nil {
		return nil, fmt.Errorf("use spec.proxySecretRef: %w", err)
	}
	return proxy, nil
}

// login uses the pull secrets if there are any, else what the controller itself has.
func (r *Reader) login(ctx context.Context, repository *imagev1.ImageRepository, image name.Repository) (authn.Keychain, error) {
	pull, err := r.pullSecrets(ctx, repository)
	if err != nil {
		return nil, err
	}
	if len(pull) == 0 {
		return r.ownLogin(ctx, repository, image)
	}
	keychain, err := kubernetes.NewFromPullSecrets(ctx, pull)
	if err != nil {
		return nil, fmt.Errorf("use the pull secrets: %w", err)
	}
	return dockerHub{keychain}, nil
}

// ownLogin uses the cloud provider, else the Docker config of the controller. Neither is
// sent through anything that a tenant chooses, who could read it there.
func (r *Reader) ownLogin(ctx context.Context, repository *imagev1.ImageRepository, image name.Repository) (authn.Keychain, error) {
	switch {
	case cloud(repository) && r.NoOwnCredentials:
		return nil, fmt.Errorf("%w: spec.provider %s would log in as this controller, which --no-own-registry-credentials refuses; %s",
			ErrInvalid, repository.Spec.Provider, remedy)
	case cloud(repository):
		return r.providerLogin(ctx, repository, image)
	case r.NoOwnCredentials:
		return fixed{authn.Anonymous}, nil
	}
	login, err := authn.Resolve(ctx, authn.DefaultKeychain, image)
	if err != nil {
		return nil, fmt.Errorf("use the Docker config of this controller: %w", err)
	}
	if login == authn.Anonymous {
		return fixed{login}, nil
	}
	return fixed{login}, notThroughTenants(repository, image)
}

// remedy is what a tenant can do who may not use the login of the controller.
const remedy = "name a Secret in spec.secretRef of the ImageRepository, or a ServiceAccount with imagePullSecrets, or a Secret in spec.backend.secret of the Environment"

// notThroughTenants returns an error if a tenant chooses how the registry is reached.
func notThroughTenants(repository *imagev1.ImageRepository, image name.Repository) error {
	way := tenantsWay(repository)
	if way == "" {
		return nil
	}
	return fmt.Errorf("%w: this controller's own login to %s is not sent through %s, where others could read it; %s", ErrInvalid, image.RegistryStr(), way, remedy)
}

// tenantsWay returns the field by which a tenant could read what is sent to the registry.
func tenantsWay(repository *imagev1.ImageRepository) string {
	switch spec := repository.Spec; {
	case spec.ProxySecretRef != nil:
		return "spec.proxySecretRef"
	case spec.CertSecretRef != nil:
		return "spec.certSecretRef"
	case spec.Insecure:
		return "plain HTTP (insecure)"
	}
	return ""
}

func cloud(repository *imagev1.ImageRepository) bool {
	return repository.Spec.Provider != "" && repository.Spec.Provider != "generic"
}

// providerLogin requests a token from the cloud provider as the controller. Tokens for a
// ServiceAccount in the ImageRepository's namespace would need the right to create tokens
// for every ServiceAccount of the cluster.
func (r *Reader) providerLogin(ctx context.Context, repository *imagev1.ImageRepository, image name.Repository) (authn.Keychain, error) {
	if repository.Spec.ServiceAccountName != "" {
		return nil, fmt.Errorf("%w: spec.provider %s with spec.serviceAccountName is not supported here; "+
			"give that ServiceAccount imagePullSecrets, or let the controller itself log in",
			ErrInvalid, repository.Spec.Provider)
	}
	if err := notThroughTenants(repository, image); err != nil {
		return nil, err
	}
	login, err := authutils.GetArtifactRegistryCredentials(ctx, repository.Spec.Provider, image.Name(), auth.WithCache(*r.tokens, cache.InvolvedObject{
		Kind: imagev1.ImageRepositoryKind, Name: repository.Name, Namespace: repository.Namespace, Operation: "metadata",
	}))
	if err != nil {
		return nil, fmt.Errorf("log in by spec.provider %s: %w", repository.Spec.Provider, err)
	}
	return fixed{login}, nil
}

// pullSecrets returns the Secrets of spec.secretRef and of the ServiceAccount, in this
// order.
func (r *Reader) pullSecrets(ctx context.Context, repository *imagev1.ImageRepository) ([]corev1.Secret, error) {
	var names []string
	if repository.Spec.SecretRef != nil {
		names = append(names, repository.Spec.SecretRef.Name)
	}
	if account := repository.Spec.ServiceAccountName; account != "" {
		of := &corev1.ServiceAccount{}
		if err := r.secrets.Get(ctx, client.ObjectKey{Namespace: repository.Namespace, Name: account}, of); err != nil {
			return nil, unread("ServiceAccount", repository.Namespace, account, err)
		}
		for _, named := range of.ImagePullSecrets {
			names = append(names, named.Name)
		}
	}
	names = unique(names)
	if len(names) > mostPullSecrets {
		return nil, fmt.Errorf("%w: the ImageRepository and its ServiceAccount name %d pull secrets: at most %d are read", ErrInvalid, len(names), mostPullSecrets)
	}
	var pull []corev1.Secret
	for _, name := range names {
		secret, err := r.secret(ctx, repository.Namespace, name)
		if err != nil {
			return nil, err
		}
		pull = append(pull, *secret)
	}
	return pull, nil
}

// mostPullSecrets is how many pull secrets are in memory together. Each may have a megabyte,
// and a ServiceAccount may name thousands.
const mostPullSecrets = 16

// unique returns names in their order, each once.
func unique(names []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

func (r *Reader) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := r.secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, unread("Secret", namespace, name, err)
	}
	return secret, nil
}

// unread returns an error that explains what to do if the role is missing, which may be
// on purpose.
func unread(kind, namespace, name string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("read %s %s/%s: this controller may not; bind the ClusterRole "+
			"rollout-controller-registry-credentials-role to it in that namespace, "+
			"or run it without what needs it, with --feature-gates=ReleaseMetadata=false,EnvironmentReports=false: %w", kind, namespace, name, err)
	}
	return fmt.Errorf("read %s %s/%s: %w", kind, namespace, name, err)
}

// fixed is one login for everything.
type fixed struct{ authn.Authenticator }

// Resolve returns the login.
func (f fixed) Resolve(authn.Resource) (authn.Authenticator, error) { return f.Authenticator, nil }

// dockerHub finds logins for Docker Hub by each of its names.
type dockerHub struct{ authn.Keychain }

// aliases are the other names that users write for Docker Hub in pull secrets.
var aliases = []string{"docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// Resolve looks up the resource itself, then the other names.
func (k dockerHub) Resolve(target authn.Resource) (authn.Authenticator, error) {
	login, err := k.Keychain.Resolve(target)
	if err != nil || login != authn.Anonymous || target.RegistryStr() != name.DefaultRegistry {
		return login, err
	}
	for _, alias := range aliases {
		login, err = k.Keychain.Resolve(renamed{target, alias})
		if err != nil || login != authn.Anonymous {
			break
		}
	}
	return login, err
}

// renamed is a resource with another name of its registry.
type renamed struct {
	authn.Resource
	registry string
}

func (r renamed) RegistryStr() string { return r.registry }

func (r renamed) String() string {
	return r.registry + r.Resource.String()[len(r.Resource.RegistryStr()):]
}

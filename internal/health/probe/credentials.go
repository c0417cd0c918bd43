// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"

	"github.com/fluxcd/pkg/runtime/secrets"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// Credentials are what a request proves its identity with, and the certificates that it
// trusts. Read them for each measurement, and keep them no longer. The zero value sends
// nothing, and trusts the certificates of the system.
type Credentials struct {
	token, username, password string
	certificates              *tls.Config
}

// String hides the credentials, so that no log shows them.
func (Credentials) String() string { return "[credentials]" }

// GoString hides the credentials, too.
func (c Credentials) GoString() string { return c.String() }

// ReadCredentials reads the Secrets that a HealthCheck of the namespace names. The field
// is the one that contains secretRef and certSecretRef. Only Secrets with the label
// v1alpha1.HealthCredentialsLabel are used: otherwise everybody who may create
// HealthChecks could send any Secret of the namespace to a server of their own.
//
// A Secret that does not exist, may not be read or has other keys is a Problem that says
// what to do.
func ReadCredentials(ctx context.Context, reader client.Reader, field, namespace string, spec v1alpha1.RequestSpec) (Credentials, error) {
	var credentials Credentials
	from := secretReader{reader, namespace}
	if spec.SecretRef != nil {
		secret, err := from.read(ctx, field+".secretRef", spec.SecretRef.Name)
		if err != nil {
			return Credentials{}, err
		}
		if err := credentials.login(ctx, field+".secretRef: Secret "+secret.Name, secret); err != nil {
			return Credentials{}, err
		}
	}
	if spec.CertSecretRef == nil {
		return credentials, nil
	}
	secret, err := from.read(ctx, field+".certSecretRef", spec.CertSecretRef.Name)
	if err != nil {
		return Credentials{}, err
	}
	return credentials, credentials.trust(ctx, field+".certSecretRef: Secret "+secret.Name, secret)
}

// trust takes certificates.
func (c *Credentials) trust(ctx context.Context, where string, secret *corev1.Secret) (err error) {
	if c.certificates, err = secrets.TLSConfigFromSecret(ctx, secret, secrets.WithSystemCertPool()); err != nil {
		return health.Problemf("%s needs ca.crt, or tls.crt with tls.key, with valid PEM", where)
	}
	return nil
}

// login takes a token, or a user with a password.
func (c *Credentials) login(ctx context.Context, where string, secret *corev1.Secret) error {
	token, tokenErr := secrets.TokenAuthFromSecret(ctx, secret)
	basic, basicErr := secrets.BasicAuthFromSecret(ctx, secret)
	if (tokenErr == nil) == (basicErr == nil) {
		return health.Problemf("%s needs either the key token, or the keys username and password", where)
	}
	if tokenErr == nil {
		c.token = strings.TrimSpace(string(token)) // files often end in a new line
		if c.token == "" || !isPrintable(c.token) {
			return health.Problemf("%s has a token that is not one line of printable ASCII", where)
		}
		return nil
	}
	c.username, c.password = basic.Username, basic.Password
	return nil
}

// sign adds the login to a request.
func (c Credentials) sign(request *http.Request) {
	switch {
	case c.token != "":
		request.Header.Set("Authorization", "Bearer "+c.token)
	case c.username != "" || c.password != "":
		request.SetBasicAuth(c.username, c.password)
	}
}

// secretReader reads Secrets of one namespace, live and by name.
type secretReader struct {
	client.Reader
	namespace string
}

func (r secretReader) read(ctx context.Context, field, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, health.Problemf("%s: Secret %s does not exist in this namespace", field, name)
	case apierrors.IsForbidden(err):
		return nil, health.Problemf("%s: this controller may not read Secrets here; bind the ClusterRole "+
			"rollout-controller-health-credentials-role to it in this namespace", field)
	case err != nil:
		return nil, destination.NewReadError("get Secret "+r.namespace+"/"+name, err)
	case secret.Labels[v1alpha1.HealthCredentialsLabel] != "true":
		return nil, health.Problemf("%s: Secret %s may not be sent; if it should be, give it the label %s: \"true\"",
			field, name, v1alpha1.HealthCredentialsLabel)
	}
	return secret, nil
}

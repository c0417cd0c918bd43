// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/secrets"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// headersKey is the key of headers in a Secret of the operator: lines of Name: value.
const headersKey = "headers"

// ReadOwn reads a Secret of the operator, which a flag names: credentials, certificates and
// headers, each of them optional. They must be sent only to what the operator has named as
// well. What is wrong with the Secret is a Problem that does not name it.
func ReadOwn(ctx context.Context, reader client.Reader, flag string, key client.ObjectKey) (Credentials, http.Header, error) {
	secret := &corev1.Secret{}
	switch err := reader.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		return Credentials{}, nil, health.Problemf("%s: the Secret does not exist in the controller's namespace: the operator has to create it", flag)
	case apierrors.IsForbidden(err):
		return Credentials{}, nil, health.Problemf("%s: this controller may not read the Secret: the operator has to permit it", flag)
	case err != nil:
		return Credentials{}, nil, destination.NewReadError("get the Secret of "+flag, err)
	}
	credentials, err := ownCredentials(ctx, flag+": the Secret", secret)
	if err != nil {
		return Credentials{}, nil, err
	}
	headers, err := ownHeaders(flag+": the key headers of the Secret", string(secret.Data[headersKey]))
	return credentials, headers, err
}

func ownCredentials(ctx context.Context, where string, secret *corev1.Secret) (c Credentials, err error) {
	if hasAny(secret, secrets.KeyToken, secrets.KeyUsername, secrets.KeyPassword) {
		if err := c.login(ctx, where, secret); err != nil {
			return Credentials{}, err
		}
	}
	if hasAny(secret, secrets.KeyCACert, secrets.KeyTLSCert, secrets.KeyTLSPrivateKey) {
		return c, c.trust(ctx, where, secret)
	}
	return c, nil
}

func hasAny(secret *corev1.Secret, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return secret.Data[key] != nil })
}

// ownHeaders reads lines of Name: value.
func ownHeaders(where, text string) (http.Header, error) {
	var all []v1alpha1.Header
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "" && !found:
		case !found:
			return nil, health.Problemf("%s has a line that is not Name: value", where)
		default:
			all = append(all, v1alpha1.Header{Name: name, Value: strings.TrimSpace(value)})
		}
	}
	return headers(where, all)
}

// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// NewKeys returns the keys of the Secret that an Environment names, or else of the Secret
// that the controller trusts by default. Its name is empty if there is no such Secret. The
// reader must not have a cache.
func NewKeys(secrets client.Reader, trusted types.NamespacedName) Keys {
	return func(ctx context.Context, e *environmentsv1.Environment) (report.TrustedKeys, *verdict.Problem, error) {
		from := keySecret{NamespacedName: trusted, field: "--trusted-keys-secret"}
		if verify := e.Spec.Backend.Verify; verify != nil {
			from = keySecret{types.NamespacedName{Namespace: e.Namespace, Name: verify.SecretRef.Name}, "spec.backend.verify"}
		}
		return from.read(ctx, secrets)
	}
}

// keySecret is a Secret with trusted keys.
type keySecret struct {
	types.NamespacedName
	field string // that names it
}

func (s keySecret) read(ctx context.Context, secrets client.Reader) (report.TrustedKeys, *verdict.Problem, error) {
	if s.Name == "" {
		return report.TrustedKeys{}, noKeys("no keys are trusted: name a Secret with public keys in spec.backend.verify, " +
			"or start the controller with --trusted-keys-secret"), nil
	}
	secret := &corev1.Secret{}
	err := secrets.Get(ctx, s.NamespacedName, secret)
	switch {
	case apierrors.IsNotFound(err):
		return report.TrustedKeys{}, noKeys("Secret %s of %s does not exist: create it, with the public keys of other clusters in PEM as CLUSTER.pub",
			s.NamespacedName, s.field), nil
	case apierrors.IsForbidden(err):
		return report.TrustedKeys{}, noKeys("Secret %s of %s cannot be read: bind the ClusterRole rollout-controller-registry-credentials-role "+
			"to the controller in that namespace", s.NamespacedName, s.field), nil
	case err != nil:
		return report.TrustedKeys{}, nil, fmt.Errorf("get Secret %s: %w", s.NamespacedName, err)
	}
	keys, err := report.ParseTrustedKeys("Secret "+s.String(), secret.Data)
	if err != nil {
		return report.TrustedKeys{}, noKeys("there are no trusted keys: %s", err), nil
	}
	return keys, nil, nil
}

func noKeys(format string, arguments ...any) *verdict.Problem {
	return problemFor(environmentsv1.NoTrustedKeysReason, format, arguments...)
}

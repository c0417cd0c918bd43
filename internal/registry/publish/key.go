// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// entry is the key in the Secret under which the private key is, as in the Secrets that
// Flux takes identities from.
const entry = "identity.key"

// NewKey returns a Key that reads the private key of this cluster from a Secret, each time
// anew: so a key that was replaced is used from the next report on. The reader must have
// no cache. A Secret without a name means that the controller was given none.
func NewKey(secrets client.Reader, secret types.NamespacedName) Key {
	return func(ctx context.Context) (report.SigningKey, *verdict.Problem, error) {
		if secret.Name == "" {
			return report.SigningKey{}, unsigned("the controller has no key to sign with: start it with --signing-key-secret"), nil
		}
		stored := &corev1.Secret{}
		err := secrets.Get(ctx, secret, stored)
		switch {
		case apierrors.IsNotFound(err):
			return report.SigningKey{}, unsigned(
				fmt.Sprintf("Secret %s does not exist: create it with the private key of this cluster as %s", secret, entry)), nil
		case err != nil:
			return report.SigningKey{}, nil, fmt.Errorf("read Secret %s: %w", secret, err)
		}
		return parse(stored)
	}
}

func parse(secret *corev1.Secret) (report.SigningKey, *verdict.Problem, error) {
	name, text := client.ObjectKeyFromObject(secret), secret.Data[entry]
	if len(text) == 0 {
		return report.SigningKey{}, unsigned(fmt.Sprintf("Secret %s has no %s: add the private key of this cluster", name, entry)), nil
	}
	key, err := report.ParseSigningKey(text)
	if err != nil {
		return report.SigningKey{}, unsigned(fmt.Sprintf("%s of Secret %s cannot be used: %s", entry, name, err)), nil
	}
	return key, nil, nil
}

func unsigned(because string) *verdict.Problem {
	return &verdict.Problem{Reason: environmentsv1.SigningKeyMissingReason, Message: "the report is not published: " + because}
}

// ClusterUID returns a function for Identity.UID.
func ClusterUID(namespaces client.Reader) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		namespace := &corev1.Namespace{}
		err := namespaces.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace)
		switch {
		case apierrors.IsForbidden(err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("read Namespace %s: %w", metav1.NamespaceSystem, err)
		}
		return string(namespace.UID), nil
	}
}

// once is a value that is read until that succeeds.
type once struct {
	read  func(context.Context) (string, error)
	mu    sync.Mutex
	value atomic.Pointer[string]
}

// known returns the value, if it was read.
func (o *once) known() (string, bool) {
	if value := o.value.Load(); value != nil {
		return *value, true
	}
	return "", false
}

func (o *once) get(ctx context.Context) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if value, known := o.known(); known {
		return value, nil
	}
	value, err := o.read(ctx)
	if err == nil {
		o.value.Store(&value)
	}
	return value, err
}

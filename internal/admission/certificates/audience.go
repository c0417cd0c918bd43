// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// audience is the clients that receive the certificate and have to trust it.
type audience interface {
	// look returns the name under which they look for the server, and whom they trust.
	look(ctx context.Context) (target, error)
	// trust makes them trust the authorities. It fails if the state differs from seen.
	trust(ctx context.Context, seen target, authorities []byte) error
}

// apiServer trusts the authorities in the configuration of the webhook.
type apiServer struct {
	configurations admissionclient.MutatingWebhookConfigurationInterface
	name           string // name of the configuration
}

func (a apiServer) look(ctx context.Context) (target, error) {
	configuration, err := a.configurations.Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return target{}, fmt.Errorf("read the webhook's configuration: %w", err)
	}
	return targetOf(configuration)
}

func (a apiServer) trust(ctx context.Context, seen target, authorities []byte) error {
	patch, err := seen.patch(authorities)
	if err != nil {
		return err
	}
	if _, err := a.configurations.Patch(ctx, a.name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: write.FieldManager}); err != nil {
		return fmt.Errorf("let the API server trust the webhook's certificate: %w", err)
	}
	return nil
}

// readers trust the authorities in the Secret, under the key AuthoritiesKey.
type readers struct{ host string }

func (r readers) look(context.Context) (target, error) { return target{host: r.host}, nil }

func (readers) trust(context.Context, target, []byte) error { return nil }

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

// audience is who meets the certificate, and has to trust it.
type audience interface {
	// look returns under which name they look for the server, and whom they trust.
	look(ctx context.Context) (target, error)
	// trust has them trust the authorities, in just the state that was looked at.
	trust(ctx context.Context, seen target, authorities []byte) error
}

// apiServer trusts whom the configuration of the webhook says.
type apiServer struct {
	configurations admissionclient.MutatingWebhookConfigurationInterface
	name           string // of the configuration
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

// readers trust whom the Secret says, under the key AuthoritiesKey.
type readers struct{ host string }

func (r readers) look(context.Context) (target, error) { return target{host: r.host}, nil }

func (readers) trust(context.Context, target, []byte) error { return nil }

// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Rollout reads one Rollout, and nothing else.
func (p *Program) Rollout(ctx context.Context, name string) (*v1alpha1.Rollout, error) {
	namespace, err := p.Namespace()
	if err != nil {
		return nil, err
	}
	var from client.Reader
	if len(p.Files) > 0 {
		from, _, err = p.Facts(ctx, namespace)
	} else {
		var c Cluster
		c, err = p.Connect(ctx)
		from = c.Client
	}
	if err != nil {
		return nil, err
	}
	rollout := &v1alpha1.Rollout{}
	switch err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, rollout); {
	case apierrors.IsNotFound(err):
		return nil, p.NoSuchRollout(ctx, from, namespace, name)
	case err != nil:
		return nil, fmt.Errorf("read Rollout %s/%s: %w", namespace, name, err)
	}
	return rollout, nil
}

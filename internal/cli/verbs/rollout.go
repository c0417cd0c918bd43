// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// rollout reads one Rollout, and nothing else.
func (p *program) rollout(ctx context.Context, name string) (*v1alpha1.Rollout, error) {
	namespace, err := p.namespace()
	if err != nil {
		return nil, err
	}
	var from client.Reader
	if len(p.files) > 0 {
		from, _, err = p.facts(ctx, namespace)
	} else {
		var c cluster
		c, err = p.connect(ctx)
		from = c.client
	}
	if err != nil {
		return nil, err
	}
	rollout := &v1alpha1.Rollout{}
	switch err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, rollout); {
	case apierrors.IsNotFound(err):
		return nil, p.noSuchRollout(namespace, name)
	case err != nil:
		return nil, fmt.Errorf("read Rollout %s/%s: %w", namespace, name, err)
	}
	return rollout, nil
}

func (p *program) noSuchRollout(namespace, name string) error {
	return fmt.Errorf("there is no Rollout %s in namespace %s; see: %s get -A", name, namespace, p.called)
}

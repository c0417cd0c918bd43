// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	"context"
	"fmt"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
)

// RepositoryIndex finds ImagePolicies by the ImageRepository whose tags they rank, as
// "namespace/name".
const RepositoryIndex = fieldindex.Everywhere + ".spec.imageRepositoryRef"

// Index adds the field index.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &imagev1.ImagePolicy{}, RepositoryIndex, func(object client.Object) []string {
		return []string{RepositoryOf(object.(*imagev1.ImagePolicy)).String()}
	})
	if err != nil {
		return fmt.Errorf("index ImagePolicies by ImageRepository: %w", err)
	}
	return nil
}

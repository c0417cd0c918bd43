// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/internal/pattern"
)

// bounded returns an error if a field is so long that it takes long to prepare or to
// compare tags with. Tenants write these fields, and they are prepared in each
// reconciliation.
func (s OrderSpec) bounded() error {
	for _, part := range []struct{ field, text string }{{"semver range", s.Range}, {"filterTags.extract", s.Extract}} {
		if len(part.text) > pattern.Longest {
			return fmt.Errorf("%s: it has %d characters, and may have %d", part.field, len(part.text), pattern.Longest)
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestNothingIsRememberedOfAGroupThatIsGone(t *testing.T) {
	g := NewWithT(t)
	key := types.NamespacedName{Namespace: "preview-1", Name: "ingester"}
	r := &Reconciler{rights: rights{mayEmit: map[string]bool{key.Namespace: true}}}
	r.memories.of(key)
	r.refusals.wait(key)
	r.forget(key)
	g.Expect(r.memories.all).To(BeEmpty())
	g.Expect(r.refusals.first(key)).To(BeTrue())
	g.Expect(r.rights.mayEmit).To(BeEmpty(), "the namespace may be gone, too")
}

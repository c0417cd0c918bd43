// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestLabelMoreIsNoLookUpMore: only the size of an object limits its labels.
func TestLabelMoreIsNoLookUpMore(t *testing.T) {
	g := NewWithT(t)
	check := fixture.MakeHealthCheck("laden").Obj()
	check.Labels = map[string]string{}
	for i := range 50_000 {
		check.Labels[fmt.Sprintf("label-%d", i)] = "yes"
	}
	g.Expect(indexedLabels(check)).To(Equal([]string{manyLabels}))
	lists := 0
	counted := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(g)).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			lists++
			return nil
		},
	})
	_, err := RolloutsOfCheck(t.Context(), counted, check)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lists).To(Equal(2))
}

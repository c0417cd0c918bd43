// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhyItCannotBeReadIsSaid(t *testing.T) {
	g := NewWithT(t)
	gates := schema.GroupResource{Group: "kuberik.com", Resource: "rolloutgates"}
	g.Expect(because(apierrors.NewForbidden(gates, "", nil))).To(Equal(": Forbidden"))
	g.Expect(because(apierrors.NewTimeoutError("it took 3.4s", 1))).To(Equal(": Timeout"))
	g.Expect(because(context.DeadlineExceeded)).To(BeEmpty(), "what varies is in the log")
}

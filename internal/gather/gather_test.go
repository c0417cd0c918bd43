// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestWhyItCannotBeReadIsSaid(t *testing.T) {
	g := NewWithT(t)
	gates := schema.GroupResource{Group: "kuberik.com", Resource: "rolloutgates"}
	g.Expect(unreadable.Why(apierrors.NewForbidden(gates, "", nil))).To(Equal(": Forbidden"))
	g.Expect(unreadable.Why(apierrors.NewTimeoutError("it took 3.4s", 1))).To(Equal(": Timeout"))
	g.Expect(unreadable.Why(context.DeadlineExceeded)).To(BeEmpty(), "what varies is in the log")
}

func TestWhoLooksFromOutsideKnowsFromTheStatusThatMetadataIsOff(t *testing.T) {
	g := NewWithT(t)
	reader := readerOf(t, shop()...)
	for metadata, off := range map[v1alpha1.RegistryMetadata]bool{"": false, v1alpha1.RegistryMetadataDisabled: true} {
		rollout := running()
		rollout.Status.RegistryMetadata = metadata
		rollout.Status.Conditions = []metav1.Condition{{ // conditions are only shown
			Type: v1alpha1.RolledBackCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.MetadataDisabledReason,
		}}
		s := Gatherer{Client: reader, Live: reader}.Gather(t.Context(), rollout, fixture.Noon)
		g.Expect(s.MetadataOff).To(Equal(off), string(metadata))
	}
}

// An Environment of a newer version of the API holds: nobody here knows what it asks for.
func TestEnvironmentOfAnUnknownTypeCannotBeUsed(t *testing.T) {
	g := NewWithT(t)
	e := &environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	e.Spec.Backend.Type = "gitlab"
	read, err := Gatherer{}.Environment(t.Context(), e)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Problem).To(Equal(&verdict.Problem{Reason: environmentsv1.UpstreamUnreadableReason,
		Message: "Environment prod has backend.type gitlab, which this version of the controller does not know: upgrade it"}))
}

// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWebhookHoldsWhatTheRuleHolds(t *testing.T) {
	startWebhook(t, nil)
	for name := range Cases(Elsewhere) {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, webhookForm)
			c := Cases(s.namespace)[name]
			s.play(c)
			s.expectPaused(c.New, c.PausedBy)
		})
	}
}

func TestCertificateNamesTheServiceThatIsCalled(t *testing.T) {
	g := NewWithT(t)
	r := startWebhook(t, nil)
	served, err := r.served()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(served.Leaf.DNSNames).To(Equal([]string{"rollout-controller-webhook.kuberik-system.svc"}))
}

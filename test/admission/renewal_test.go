// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/admission/certificates"
	"github.com/fluxrollouts/rollout-controller/internal/admission/webhook"
)

// certificatePEM is the beginning of each certificate in a bundle.
var certificatePEM = []byte("-----BEGIN CERTIFICATE-----")

func TestEveryCallSucceedsWhileTheCertificateIsRenewed(t *testing.T) {
	g := NewWithT(t)
	// The API server uses its own clock, and all certificates that it meets must be valid
	// by it. Therefore the renewal is now, and the time before it is in the past.
	clock := clocktesting.NewFakeClock(time.Now().Add(-certificates.RenewAfter))
	first := startWebhook(t, clock)
	second := startReplica(t, webhook.Options{Clock: clock})
	second.await(t)
	replicas := []*replica{first, second}
	expectServed := func(trusted int, same ...*replica) string {
		var serial string
		for _, r := range same {
			served, err := r.served()
			g.Expect(err).NotTo(HaveOccurred())
			if serial == "" {
				serial = served.Leaf.SerialNumber.String()
			}
			g.Expect(served.Leaf.SerialNumber.String()).To(Equal(serial), "both serve the same certificate")
			g.Expect(r.ready()).To(Succeed())
		}
		g.Expect(authorities(t)).To(Equal(trusted))
		return serial
	}
	old := expectServed(1, replicas...)
	callsGoOn := callAllTheTime(t)

	clock.Step(certificates.RenewAfter)
	eventually(t, func() int { return authorities(t) }).Should(Equal(2), "the new authority is trusted before it is met")
	eventually(t, clock.Waiters).Should(Equal(2), "both sleep until something is due")
	g.Expect(expectServed(2, replicas...)).To(Equal(old))
	callsGoOn()

	clock.Step(certificates.Overlap)
	eventually(t, func() string {
		served, err := second.served()
		g.Expect(err).NotTo(HaveOccurred())
		return served.Leaf.SerialNumber.String()
	}).ShouldNot(Equal(old))
	eventually(t, clock.Waiters).Should(Equal(2), "both sleep until something is due")
	renewed := expectServed(2, replicas...)
	callsGoOn()

	clock.Step(certificates.Life - certificates.RenewAfter - certificates.Overlap)
	eventually(t, func() int { return authorities(t) }).Should(Equal(1), "an authority that nobody needs is not trusted for ever")
	g.Expect(expectServed(1, replicas...)).To(Equal(renewed))
	callsGoOn()
}

// authorities returns the number of authorities that the API server trusts.
func authorities(t *testing.T) int {
	t.Helper()
	return bytes.Count(configuration(t).Webhooks[0].ClientConfig.CABundle, certificatePEM)
}

// callAllTheTime makes the API server call the webhook about waiting Deployments, one
// after the other, until the test ends. Each of them must be paused. The returned
// function waits for a call that begins and ends meanwhile.
func callAllTheTime(t *testing.T) (goOn func()) {
	t.Helper()
	s := newEnv(t, webhookForm)
	s.coordinate(a())
	done, ctx := make(chan struct{}), context.WithoutCancel(s.ctx) // the last call completes as well
	var calls atomic.Int64
	var calling sync.WaitGroup
	calling.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			d := web()
			d.Namespace = s.namespace
			if err := testClient.Create(ctx, d, client.DryRunAll); err != nil || !d.Spec.Paused {
				t.Errorf("call %d: the Deployment was not paused: %v", calls.Load(), err)
				return
			}
			calls.Add(1)
		}
	})
	t.Cleanup(func() { close(done); calling.Wait() })
	return func() {
		t.Helper()
		before := calls.Load() // a call may be in progress
		eventually(t, calls.Load).Should(BeNumerically(">=", before+2), "calls go on")
	}
}

func TestSecretThatIsSpoiltOrDeletedIsMadeAgain(t *testing.T) {
	g := NewWithT(t)
	r := startWebhook(t, nil)
	secret := func() *corev1.Secret {
		found := &corev1.Secret{}
		g.Expect(client.IgnoreNotFound(testClient.Get(t.Context(), names.Certificate, found))).To(Succeed())
		return found
	}
	first := secret()
	for name, spoil := range map[string]func(*corev1.Secret) error{
		"a certificate that is cut off": func(s *corev1.Secret) error {
			s.Data["tls.crt"] = s.Data["tls.crt"][:100]
			return testClient.Update(t.Context(), s)
		},
		"no key": func(s *corev1.Secret) error {
			delete(s.Data, "tls.key")
			return testClient.Update(t.Context(), s)
		},
		"no data": func(s *corev1.Secret) error {
			s.Data = nil
			return testClient.Update(t.Context(), s)
		},
		"no Secret": func(s *corev1.Secret) error { return testClient.Delete(t.Context(), s) },
	} {
		t.Run(name, func(t *testing.T) {
			before := secret()
			g.Expect(spoil(before.DeepCopy())).To(Succeed())
			eventually(t, func() []byte { return secret().Data["tls.crt"] }).Should(And(
				ContainSubstring("END CERTIFICATE"), Not(Equal(before.Data["tls.crt"])), Not(Equal(first.Data["tls.crt"]))))
			eventually(t, r.ready).Should(Succeed())
			s := newEnv(t, webhookForm)
			s.coordinate(a())
			s.create(testClient, web())
			s.expectPaused(web(), []string{"a"})
		})
	}
}

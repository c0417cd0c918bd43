// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	host = "webhook.shop.svc"
	hour = time.Hour
)

var noon = time.Date(2026, time.January, 5, 12, 0, 0, 0, time.UTC)

// renewed returns the store a while after noon, when one pair was made.
func renewed(t *testing.T, after time.Duration) (Store, *Pair) {
	t.Helper()
	g := NewWithT(t)
	first, err := Store{}.Renewed(host, noon)
	g.Expect(err).NotTo(HaveOccurred())
	store, err := first.Renewed(host, noon.Add(after))
	g.Expect(err).NotTo(HaveOccurred())
	return store, first.Newest
}

func TestCertificateIsRenewedAfterTwoThirdsOfItsLife(t *testing.T) {
	g := NewWithT(t)
	before, first := renewed(t, RenewAfter-time.Second)
	g.Expect(before).To(Equal(Store{Newest: first}))
	g.Expect(before.RecheckAt(noon)).To(BeTemporally("==", noon.Add(RenewAfter)))

	after, first := renewed(t, RenewAfter)
	g.Expect(after.Previous).To(Equal(first))
	g.Expect(after.Newest).NotTo(Equal(first))
}

func TestNewestIsServedOnceItIsKnownEverywhere(t *testing.T) {
	g := NewWithT(t)
	store, first := renewed(t, RenewAfter)
	made := noon.Add(RenewAfter)
	both := store.Authorities()

	g.Expect(store.Serving(both, made)).To(Equal(first))
	g.Expect(store.RecheckAt(made)).To(BeTemporally("==", made.Add(Overlap)))
	g.Expect(store.Serving(both, made.Add(Overlap))).To(Equal(store.Newest))
	g.Expect(store.Serving(first.Authority, made.Add(2*Overlap))).To(Equal(first), "the API server does not trust the newest")
	g.Expect(store.Serving(store.Newest.Authority, made)).To(Equal(store.Newest), "it trusts nothing else")
	g.Expect(store.Serving(nil, made)).To(Equal(store.Newest), "it trusts nothing yet")
}

func TestPreviousAuthorityIsTrustedForAsLongAsItIsValid(t *testing.T) {
	g := NewWithT(t)
	store, first := renewed(t, RenewAfter)
	end := noon.Add(Life)
	g.Expect(store.RecheckAt(noon.Add(RenewAfter + Overlap))).To(BeTemporally("==", end))

	just, err := store.Renewed(host, end.Add(-time.Second))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(just.Authorities()).To(ContainSubstring(string(first.Authority)))
	after, err := store.Renewed(host, end)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).To(Equal(Store{Newest: store.Newest}))
	g.Expect(after.Authorities()).To(Equal(store.Newest.Authority))
}

func TestPairThatCannotBeUsedIsReplacedAtOnce(t *testing.T) {
	store, _ := renewed(t, hour)
	for name, c := range map[string]struct {
		host string
		at   time.Time
	}{
		"the Service has another name":         {host: "other.shop.svc", at: noon.Add(hour)},
		"nobody has renewed it in time":        {host: host, at: noon.Add(Life)},
		"it was made by a clock that was fast": {host: host, at: noon.Add(-2 * hour)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			again, err := store.Renewed(c.host, c.at)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again.Previous).To(BeNil())
			served, err := again.Serving(nil, c.at).TLS()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(Trusted(served, again.Authorities(), c.host, c.at)).To(Succeed())
			g.Expect(Trusted(served, store.Authorities(), c.host, c.at)).NotTo(Succeed(), "it was signed by an authority of its own")
		})
	}
}

func TestSecretIsReadAsItWasWritten(t *testing.T) {
	store, first := renewed(t, RenewAfter)
	for name, c := range map[string]struct {
		spoil func(map[string][]byte)
		want  Store
	}{
		"whole":                                {func(map[string][]byte) {}, store},
		"the previous pair is spoilt":          {func(d map[string][]byte) { d["previous-tls.key"] = nil }, Store{Newest: store.Newest}},
		"the newest is spoilt":                 {func(d map[string][]byte) { d["tls.crt"] = d["tls.crt"][:50] }, Store{Newest: first}},
		"a key that is not its own":            {func(d map[string][]byte) { d["tls.key"] = d["previous-tls.key"] }, Store{Newest: first}},
		"an authority that did not sign it":    {func(d map[string][]byte) { d["ca.crt"] = d["previous-ca.crt"] }, Store{Newest: first}},
		"nothing in it":                        {func(d map[string][]byte) { clear(d) }, Store{}},
		"keys that nobody knows":               {func(d map[string][]byte) { d["other"] = []byte("text") }, store},
		"neither of two is what it should be":  {func(d map[string][]byte) { d["tls.key"], d["previous-tls.key"] = nil, nil }, Store{}},
		"the newest is missing, not forgotten": {func(d map[string][]byte) { delete(d, "tls.crt") }, Store{Newest: first}},
	} {
		t.Run(name, func(t *testing.T) {
			data := store.Data()
			c.spoil(data)
			NewWithT(t).Expect(Read(data)).To(Equal(c.want))
		})
	}
}

func TestAddressCanBeInACertificate(t *testing.T) {
	g := NewWithT(t)
	pair, err := Make("127.0.0.1", noon)
	g.Expect(err).NotTo(HaveOccurred())
	served, err := pair.TLS()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Trusted(served, pair.Authority, "127.0.0.1", noon)).To(Succeed())
	g.Expect(Trusted(served, pair.Authority, "127.0.0.2", noon)).NotTo(Succeed())
}

// SPDX-License-Identifier: Apache-2.0

package destination_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// protecting protects some addresses.
func protecting(texts ...string) destination.Protected {
	return func(context.Context) ([]netip.Addr, error) {
		var addresses []netip.Addr
		for _, text := range texts {
			addresses = append(addresses, netip.MustParseAddr(text))
		}
		return addresses, nil
	}
}

// dial opens a connection to a URL, whose host is listed.
func dial(t *testing.T, guard destination.Guard, address string) error {
	t.Helper()
	g := NewWithT(t)
	allowed, err := destination.List{}.With(address)
	g.Expect(err).NotTo(HaveOccurred())
	target, err := allowed.Allowed("spec.http.url", address)
	g.Expect(err).NotTo(HaveOccurred())
	dialer, err := guard.Dialer(t.Context(), target)
	if err != nil {
		return err
	}
	connection, err := dialer.DialContext(t.Context(), "tcp", "ignored:1")
	if err == nil {
		_ = connection.Close()
	}
	return err
}

func TestDialRefusesAddressesAlthoughTheyAreListed(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:80":             "a loopback address",
		"http://127.9.9.9":                "a loopback address",
		"http://[::1]":                    "a loopback address",
		"http://localhost":                "a loopback address", // resolved
		"http://0.0.0.0":                  "an unspecified address",
		"http://0.1.2.3":                  "an unspecified address",
		"http://[::]":                     "an unspecified address",
		"http://169.254.169.254":          "a link-local address",
		"http://169.254.170.2":            "a link-local address",
		"http://[fe80::1]":                "a link-local address",
		"http://224.0.0.1":                "a multicast address",
		"http://[ff02::1]":                "a multicast address",
		"http://255.255.255.255":          "a broadcast address",
		"http://100.100.100.200":          "a metadata service",
		"http://168.63.129.16":            "a metadata service",
		"http://192.0.0.192":              "a metadata service",
		"http://[fd00:ec2::254]":          "a metadata service",
		"http://[fd00:ec2::23]":           "a metadata service",
		"http://[fd20:ce::254]":           "a metadata service",
		"http://[64:ff9b::7f00:1]":        "a loopback address",
		"http://[64:ff9b::a9fe:a9fe]":     "a link-local address",
		"http://[64:ff9b::c000:20a]":      "it belongs to the API server or to this controller",
		"http://[64:ff9b:1::a9fe:a9fe]":   "a translated address",
		"http://[::a9fe:a9fe]":            "an embedded IPv4 address",
		"http://[2002:a9fe:a9fe::1]":      "a tunnel's address",
		"http://[2001:0:53aa:64c::5601]":  "a tunnel's address",
		"http://[::ffff:0:a9fe:a9fe]":     "a translated address",
		"http://192.0.2.10":               "it belongs to the API server or to this controller",
		"http://[2001:db8::10]:6443/path": "it belongs to the API server or to this controller",
	} {
		t.Run(address, func(t *testing.T) {
			g := NewWithT(t)
			err := dial(t, destination.Guard{Protected: protecting("192.0.2.10", "2001:db8::10")}, address)
			var refused *destination.Refused
			g.Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
			g.Expect(refused.Error()).To(Equal("the destination has an address that may never be used: " + want))
		})
	}
}

func TestDialSendsNothingToARefusedAddress(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	var accepted atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := listener.Accept(); err != nil {
				return
			}
			accepted.Add(1)
		}
	}()
	address := "http://" + listener.Addr().String()
	g.Expect(dial(t, destination.Guard{Protected: protecting()}, address)).NotTo(Succeed())
	g.Expect(dial(t, destination.Guard{Protected: protecting(), AllowLoopback: true}, address)).To(Succeed())
	g.Eventually(accepted.Load).Should(Equal(int32(1)))
	g.Expect(listener.Close()).To(Succeed())
	<-done
	g.Expect(accepted.Load()).To(Equal(int32(1)))
}

func TestDialNeedsToKnowWhatIsProtected(t *testing.T) {
	g := NewWithT(t)
	guard := destination.Guard{AllowLoopback: true, Protected: func(context.Context) ([]netip.Addr, error) { return nil, errors.New("away") }}
	g.Expect(dial(t, guard, "http://192.0.2.1")).To(MatchError("away"))
}

func TestProtectedAddressesAreReadAgainAfterAnInterval(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	reads, fail := 0, error(nil)
	protected := destination.Protected(func(context.Context) ([]netip.Addr, error) {
		reads++
		return []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(reads)})}, fail
	}).Every(time.Minute, clock)
	ask := func() string {
		addresses, err := protected(t.Context())
		if err != nil {
			return err.Error()
		}
		return addresses[0].String()
	}
	g.Expect(ask()).To(Equal("192.0.2.1"))
	g.Expect(ask()).To(Equal("192.0.2.1"))
	clock.SetTime(clock.Now().Add(time.Minute))
	g.Expect(ask()).To(Equal("192.0.2.2"))
	clock.SetTime(clock.Now().Add(time.Minute))
	fail = errors.New("away")
	g.Expect(ask()).To(Equal("away"), "old addresses protect nothing")
	fail = nil
	g.Expect(ask()).To(Equal("192.0.2.4"))
}

func TestProtectedAddressesAreWaitedForWithinTheTimeout(t *testing.T) {
	g := NewWithT(t)
	reading, release := make(chan struct{}), make(chan struct{})
	protected := destination.Protected(func(context.Context) ([]netip.Addr, error) {
		close(reading)
		<-release
		return nil, nil
	}).Every(time.Minute, testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
	first := make(chan error)
	go func() {
		_, err := protected(t.Context())
		first <- err
	}()
	<-reading
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := protected(ended)
	g.Expect(err).To(MatchError(context.Canceled))
	close(release)
	g.Expect(<-first).To(Succeed())
	g.Expect(protected(t.Context())).To(BeEmpty(), "nothing is read again")
}

// SPDX-License-Identifier: Apache-2.0

package destination_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
)

// listed is what the operator of these tests allows.
var listed = []string{
	"https://status.example.com", "http://prometheus.monitoring.svc:9090", "https://*.internal.example.com:8443",
	"http://192.0.2.10:9090", "https://[2001:db8::10]", "https://xn--bcher-kva.example",
}

func list(tb testing.TB, entries ...string) destination.List {
	tb.Helper()
	parsed, err := destination.ParseList(entries)
	if err != nil {
		tb.Fatal(err)
	}
	return parsed
}

func TestListAllowsExactlyWhatItContains(t *testing.T) {
	for name, test := range map[string]struct{ address, want string }{
		"a host":                            {"https://status.example.com/shop?x=1", "https://status.example.com/shop?x=1"},
		"its port, written out":             {"https://status.example.com:443/", "https://status.example.com:443/"},
		"in other letters":                  {"https://STATUS.Example.com/Shop", "https://status.example.com/Shop"},
		"a scheme in other letters":         {"HTTPS://status.example.com", "https://status.example.com"},
		"a port":                            {"http://prometheus.monitoring.svc:9090/prometheus", "http://prometheus.monitoring.svc:9090/prometheus"},
		"a host below a wildcard":           {"https://a.internal.example.com:8443", "https://a.internal.example.com:8443"},
		"a host far below a wildcard":       {"https://b.a.internal.example.com:8443", "https://b.a.internal.example.com:8443"},
		"an IPv4 address that is listed":    {"http://192.0.2.10:9090", "http://192.0.2.10:9090"},
		"an IPv6 address that is listed":    {"https://[2001:db8::10]/", "https://[2001:db8::10]/"},
		"the same address in other letters": {"https://[2001:DB8:0::10]/", "https://[2001:db8::10]/"},
		"an international name":             {"https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"},
		"an encoded path":                   {"https://status.example.com/a%2f..%2fb", "https://status.example.com/a%2f..%2fb"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target, err := list(t, listed...).Allowed("spec.http.url", test.address)
			g.Expect(err).NotTo(HaveOccurred())
			of := target.URL()
			g.Expect(of.String()).To(Equal(test.want))
		})
	}
}

func TestListRefusesEverythingElse(t *testing.T) {
	const (
		unlisted = "is not a destination that HealthChecks may use; ask the operator to add it to --health-destinations, or use a Service of this namespace"
		number   = "its host is a number"
		name     = "its host is not a DNS name"
		user     = "it contains a user or password"
		chars    = "a space, a backslash or a control character"
	)
	for address, want := range map[string]string{
		"https://other.example.com":                               "spec.http.url: https://other.example.com:443 " + unlisted,
		"http://status.example.com":                               unlisted, // another scheme
		"https://status.example.com:8443":                         unlisted, // another port
		"https://internal.example.com:8443":                       unlisted, // the wildcard's own name
		"https://xinternal.example.com:8443":                      unlisted, // no label ends there
		"https://status.example.com.evil.test":                    unlisted,
		"http://127.0.0.1":                                        unlisted,
		"http://169.254.169.254/latest":                           unlisted,
		"http://192.0.2.11:9090":                                  unlisted,
		"http://[::1]/":                                           unlisted,
		"https://[2001:db8::11]":                                  unlisted,
		"https://kubernetes.default":                              unlisted,
		"http://2130706433":                                       number, // 127.0.0.1
		"http://0x7f000001":                                       number,
		"http://0x7f.1":                                           number,
		"http://0177.0.0.1":                                       number,
		"http://127.1":                                            number,
		"http://127.0.0.01":                                       number,
		"http://192.0.2.10.:9090":                                 name,
		"http://1.2.3.4.5":                                        number,
		"https://status.example.com.":                             name,
		"https://status..example.com":                             name,
		"https://-status.example.com":                             name,
		"https://*.internal.example.com:8443":                     name,
		"https://status_example.com":                              name,
		"https://status%2eexample.com":                            "it is not a URL with a host",
		"https://status.example.com%00.evil.test":                 "it is not a URL with a host",
		"https://ｓtatus.example.com":                              "not ASCII",
		"https://status。example.com":                              "not ASCII",
		"https://bücher.example":                                  "not ASCII",
		"https://ⓢtatus.example.com":                              "not ASCII",
		"https://user@status.example.com":                         user,
		"https://user:password@status.example.com":                user,
		"https://@status.example.com":                             user,
		"https://status.example.com@evil.test":                    user,
		"https://evil.test#@status.example.com":                   "it contains a #",
		"https://status.example.com/#":                            "it contains a #",
		"https://evil.test\\@status.example.com":                  chars,
		"https://status.example.com\\.evil.test":                  chars,
		"https://status.example.com /":                            chars,
		"https://status.example.com/\r\nHost: evil":               chars,
		" https://status.example.com":                             chars,
		"https://status.example.com:":                             "its port is not a number",
		"https://[2001:db8::10]:":                                 "its port is not a number",
		"https://status.example.com:0443":                         "its port is not a number",
		"https://status.example.com:0":                            "its port is not a number",
		"https://status.example.com:65979":                        "its port is not a number", // 443 in 16 bits
		"https://status.example.com:+443":                         "it is not a URL with a host",
		"https://[fe80::1%25eth0]":                                "its IPv6 address has a zone",
		"https://[2001:db8::10%25]":                               "it is not a URL with a host",
		"http://[::ffff:127.0.0.1]":                               "contains an IPv4 address",
		"http://[::ffff:c000:20a]:9090":                           "contains an IPv4 address",
		"http://[192.0.2.10]:9090":                                "it is not a URL with a host",
		"https://[status.example.com]":                            "it is not a URL with a host",
		"https://[2001:db8::10].evil.test":                        "it is not a URL with a host",
		"ftp://status.example.com":                                "its scheme is neither http nor https",
		"file:///etc/passwd":                                      "it is not a URL with a host",
		"https:status.example.com":                                "it is not a URL with a host",
		"https:/status.example.com":                               "it is not a URL with a host",
		"//status.example.com":                                    "its scheme is neither http nor https",
		"https:///status.example.com":                             "it is not a URL with a host",
		"":                                                        "it is not a URL with a host",
		"https://status.example.com/" + strings.Repeat("a", 2048): "it is longer than 2048 bytes",
		"https://" + strings.Repeat("a.", 130) + "example.com":    name,
	} {
		t.Run(address, func(t *testing.T) {
			g := NewWithT(t)
			_, err := list(t, listed...).Allowed("spec.http.url", address)
			problem, ok := health.IsProblem(err)
			g.Expect(ok).To(BeTrue(), "%v", err)
			g.Expect(problem.Text).To(HavePrefix("spec.http.url: "))
			g.Expect(problem.Text).To(ContainSubstring(want))
		})
	}
}

func TestListIsEmptyByDefault(t *testing.T) {
	g := NewWithT(t)
	_, err := destination.List{}.Allowed("spec.http.url", "https://status.example.com")
	g.Expect(err).To(HaveOccurred())
}

func TestListIsParsedStrictly(t *testing.T) {
	for entry, want := range map[string]string{
		"":                            "it is not a URL with a host",
		"*":                           "it is not a URL with a host",
		"status.example.com":          "it is not a URL with a host",
		"https://":                    "it is not a URL with a host",
		"https://*":                   "its host is not a DNS name",
		"https://*.":                  "it is not a URL with a host",
		"https://*.*.example.com":     "its host is not a DNS name",
		"https://a.*.example.com":     "its host is not a DNS name",
		"https://*.192.0.2.10":        "*. is before an IP address",
		"https://status.example.com/": "it has a path",
		"https://example.com?a":       "it has a path",
		"https://example.com:*":       "it is not a URL with a host",
		"*.example.com":               "it is not a URL with a host",
		"tcp://example.com":           "its scheme is neither http nor https",
		"https://a@example.com":       "it contains a user or password",
	} {
		t.Run(entry, func(t *testing.T) {
			_, err := destination.ParseList([]string{"https://fine.example.com", entry})
			NewWithT(t).Expect(err).To(MatchError(And(
				HavePrefix("%q is not a destination: ", entry), ContainSubstring(want), HaveSuffix("for example https://*.example.com"))))
		})
	}
}

func TestListIncludesThePrometheusAddress(t *testing.T) {
	g := NewWithT(t)
	before := list(t, "https://status.example.com")
	with, err := before.With("http://prometheus.monitoring.svc:9090/prometheus")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = with.Allowed("spec.prometheus.address", "http://prometheus.monitoring.svc:9090/")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = before.Allowed("spec.prometheus.address", "http://prometheus.monitoring.svc:9090/")
	g.Expect(err).To(HaveOccurred())
	_, err = before.With("prometheus:9090")
	g.Expect(err).To(MatchError(ContainSubstring(`"prometheus:9090" is not an address`)))
}

// FuzzAllowed checks that whatever is allowed has a listed host, as another look at it
// finds, and nothing that makes parsers disagree.
func FuzzAllowed(f *testing.F) {
	for _, entry := range listed {
		f.Add(strings.Replace(entry, "*", "a", 1))
	}
	for _, seed := range []string{
		"https://status.example.com@evil.test/", "https://evil.test#@status.example.com", "http://0x7f.1/", "http://[::ffff:127.0.0.1]/",
		"https://status.example.com:443:80/", "https://status.example.com\t/", "https://[2001:db8::10%25eth0]/", "https://a.internal.example.com:08443/",
	} {
		f.Add(seed)
	}
	hosts := []string{"status.example.com", "prometheus.monitoring.svc", "192.0.2.10", "2001:db8::10", "xn--bcher-kva.example"}
	allowed := list(f, listed...)
	f.Fuzz(func(t *testing.T, address string) {
		target, err := allowed.Allowed("spec.http.url", address)
		if err != nil {
			if _, ok := health.IsProblem(err); !ok {
				t.Errorf("%q: %v is no Problem", address, err)
			}
			return
		}
		again, err := url.Parse(target.URL().String())
		if err != nil || again.User != nil || again.Fragment != "" || strings.ContainsAny(address, "#\\\r\n") {
			t.Fatalf("%q became %v: %v", address, again, err)
		}
		host := again.Hostname()
		if ip, err := netip.ParseAddr(host); err == nil {
			host = ip.String()
		}
		for _, one := range hosts {
			if host == one {
				return
			}
		}
		if !strings.HasSuffix(host, ".internal.example.com") || again.Port() != "8443" {
			t.Errorf("%q leads to %q", address, host)
		}
	})
}

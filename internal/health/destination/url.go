// SPDX-License-Identifier: Apache-2.0

package destination

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// longestURL and longestHost are limits in bytes. That of a host is from RFC 1035.
const (
	longestURL  = 2048
	longestHost = 253
)

// hostname matches the labels of a host in ASCII and in lower case, without a trailing
// dot. International names are written as xn--… (RFC 5891).
var hostname = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// numeric matches a last label that other programs read as a part of an IPv4 address,
// also in octal and hexadecimal form: https://url.spec.whatwg.org/#ends-in-a-number-checker
var numeric = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)

// origin is the scheme, host and port of a URL.
type origin struct {
	scheme string
	host   string // in lower case; without brackets
	port   string
	// address is valid if the host is an IP address.
	address netip.Addr
	// wildcard means that the host is the ending of what is allowed.
	wildcard bool
}

// parseOrigin is stricter than other parsers, so that all of them find the same host in
// whatever it accepts. The error is the end of a sentence about the URL.
func parseOrigin(text string) (origin, error) {
	if err := checkCharacters(text); err != nil {
		return origin{}, err
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Opaque != "" {
		return origin{}, errors.New("it is not a URL with a host")
	}
	if parsed.Scheme != "http" && parsed.Scheme != "https" {
		return origin{}, errors.New("its scheme is neither http nor https")
	}
	if parsed.User != nil {
		return origin{}, errors.New("it contains a user or password: use secretRef")
	}
	return parseAuthority(parsed)
}

// checkCharacters rejects what parsers are known to read differently.
func checkCharacters(text string) error {
	if len(text) > longestURL {
		return fmt.Errorf("it is longer than %d bytes", longestURL)
	}
	for _, r := range text {
		switch {
		case r <= ' ', r == '\\', r == 0x7f:
			return errors.New("it contains a space, a backslash or a control character")
		case r > 0x7f:
			return errors.New("it contains a character that is not ASCII: write the host as xn--…, and encode the path with %")
		case r == '#':
			return errors.New("it contains a #, which is never sent")
		}
	}
	return nil
}

func parseAuthority(parsed *url.URL) (origin, error) {
	of := origin{scheme: parsed.Scheme, host: strings.ToLower(parsed.Hostname()), port: port(parsed)}
	if strings.HasSuffix(parsed.Host, ":") || !isPort(of.port) {
		return origin{}, errors.New("its port is not a number from 1 to 65535")
	}
	if strings.HasPrefix(parsed.Host, "[") {
		return parseIPv6(of)
	}
	return parseHost(of)
}

func parseIPv6(of origin) (origin, error) {
	address, err := netip.ParseAddr(of.host)
	switch {
	case err != nil || !address.Is6():
		return origin{}, errors.New("there is no IPv6 address between its brackets")
	case address.Zone() != "":
		return origin{}, errors.New("its IPv6 address has a zone")
	case address.Is4In6():
		return origin{}, errors.New("its IPv6 address contains an IPv4 address: write that one")
	}
	of.host, of.address = address.String(), address
	return of, nil
}

func parseHost(of origin) (origin, error) {
	if address, err := netip.ParseAddr(of.host); err == nil && address.Is4() {
		of.address = address
		return of, nil
	}
	switch {
	case numeric.MatchString(of.host):
		return origin{}, errors.New("its host is a number: write an IPv4 address as four decimal numbers without zeros in front")
	case len(of.host) > longestHost || !hostname.MatchString(of.host):
		return origin{}, errors.New("its host is not a DNS name in ASCII without a trailing dot")
	}
	return of, nil
}

// isPort rejects other ways to write a number.
func isPort(text string) bool {
	number, err := strconv.Atoi(text)
	return err == nil && number >= 1 && number <= 65535 && strconv.Itoa(number) == text
}

// port returns the port of a URL, or that of its scheme.
func port(of *url.URL) string {
	switch {
	case of.Port() != "":
		return of.Port()
	case of.Scheme == "https":
		return "443"
	}
	return "80"
}

// allows reports whether an entry of a list includes an origin.
func (o origin) allows(other origin) bool {
	if o.scheme != other.scheme || o.port != other.port {
		return false
	}
	if o.wildcard {
		return !other.address.IsValid() && strings.HasSuffix(other.host, "."+o.host)
	}
	return o.host == other.host
}

// String returns the origin as it is written in a list.
func (o origin) String() string { return o.scheme + "://" + net.JoinHostPort(o.host, o.port) }

// target returns the target of a URL with this origin. The path and the query are those of
// the URL. The host is in lower case, with the port only if it is not the default.
func (o origin) target(text string) (Target, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return Target{}, err
	}
	host := o.host
	if o.address.Is6() {
		host = "[" + host + "]"
	}
	if parsed.Port() != "" {
		host += ":" + o.port
	}
	parsed.Host = host
	return Target{url: parsed}, nil
}

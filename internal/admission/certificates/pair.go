// SPDX-License-Identifier: Apache-2.0

// Package certificates makes, stores and renews the certificates of the webhook and the
// metrics endpoint, and makes the API server and Prometheus trust them.
//
// It exists because of the overlap. The one well-maintained library for this,
// open-policy-agent/cert-controller, replaces the authority in the webhook's
// configuration and the certificate at the same time. It checks the clock in intervals,
// and needs a restart or a mounted file to serve a new certificate. With this package,
// the API server trusts the new authority for a while before any replica serves a
// certificate that it signed, and the old authority for as long as it is valid. Therefore
// no call fails. The next check is at the exact time at which something is due.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// Life is how long a certificate is valid after it was made.
	Life = 90 * 24 * time.Hour
	// RenewAfter is when the next certificate is made: after two thirds of its life.
	RenewAfter = Life * 2 / 3
	// Overlap is how long the API server trusts a new authority before a certificate that
	// it signed is served. By then, all replicas know it too.
	Overlap = time.Hour
	// skew is how far the clock of an API server may be behind.
	skew = time.Hour
)

// Pair is a certificate for a server, with its key, and the authority that signed it, all
// in PEM. The authority signs only this certificate: its key is not stored.
type Pair struct {
	Certificate, Key, Authority []byte

	leaf *x509.Certificate
}

// Make makes a pair for a host name or an IP address. It is valid from now on.
func Make(host string, now time.Time) (*Pair, error) {
	authority := template("rollout-controller", now)
	authority.IsCA = true
	authority.KeyUsage |= x509.KeyUsageCertSign
	authorityKey, authorityDER, err := sign(authority, authority, nil)
	if err != nil {
		return nil, err
	}
	server := template(host, now)
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ip := net.ParseIP(host); ip != nil {
		server.IPAddresses = []net.IP{ip}
	} else {
		server.DNSNames = []string{host}
	}
	key, der, err := sign(server, authority, authorityKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return parse(encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER), encode("CERTIFICATE", authorityDER))
}

func template(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName(name)},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(Life),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
}

// commonName is for users to read. Clients verify the alternative names, which may be
// longer than a common name can be.
func commonName(name string) string {
	const longest = 64
	return name[:min(len(name), longest)]
}

// sign makes a key and a certificate for it. Without a key of the parent, the certificate
// is self-signed.
func sign(certificate, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	if parentKey == nil {
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return key, der, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// parse returns an error if the parts do not belong together.
func parse(certificate, key, authority []byte) (*Pair, error) {
	p := &Pair{Certificate: certificate, Key: key, Authority: authority}
	served, err := p.TLS()
	if err != nil {
		return nil, err
	}
	p.leaf = served.Leaf
	if err := Trusted(served, authority, "", p.leaf.NotAfter); err != nil {
		return nil, err
	}
	return p, nil
}

// TLS returns the pair in the form that a server needs.
func (p *Pair) TLS() (*tls.Certificate, error) {
	served, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("read a certificate: %w", err)
	}
	return &served, nil
}

// made returns when the pair was made.
func (p *Pair) made() time.Time { return p.leaf.NotBefore.Add(skew) }

func (p *Pair) validAt(now time.Time) bool {
	return !now.Before(p.leaf.NotBefore) && now.Before(p.leaf.NotAfter)
}

func (p *Pair) isFor(host string) bool { return p.leaf.VerifyHostname(host) == nil }

// Trusted returns why a client that trusts the authorities, in PEM, would not trust the
// certificate of a server with this name. It returns nil if the client would.
func Trusted(served *tls.Certificate, authorities []byte, host string, now time.Time) error {
	if len(served.Certificate) == 0 {
		return errors.New("there is no certificate")
	}
	leaf, err := x509.ParseCertificate(served.Certificate[0])
	if err != nil {
		return fmt.Errorf("read a certificate: %w", err)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	for _, der := range served.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		DNSName: host, Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"time"
)

// Keys of the Secret. The keys of the newest pair have the standard names.
const (
	certificateKey         = "tls.crt"
	keyKey                 = "tls.key"
	authorityKey           = "ca.crt"
	previousCertificateKey = "previous-tls.crt"
	previousKeyKey         = "previous-tls.key"
	previousAuthorityKey   = "previous-ca.crt"
)

// AuthoritiesKey is the key of the Secret from which clients read the authorities to
// trust: those of both pairs.
const AuthoritiesKey = "ca-bundle.crt"

// Store is the content of the Secret: the newest pair, and the one before it as long as
// it is valid.
type Store struct {
	Newest, Previous *Pair
}

// Read reads the data of the Secret. A pair that cannot be used counts as missing.
func Read(data map[string][]byte) Store {
	var s Store
	s.Newest, _ = parse(data[certificateKey], data[keyKey], data[authorityKey])
	s.Previous, _ = parse(data[previousCertificateKey], data[previousKeyKey], data[previousAuthorityKey])
	if s.Newest == nil {
		s.Newest, s.Previous = s.Previous, nil
	}
	return s
}

// Data returns the data of the Secret.
func (s Store) Data() map[string][]byte {
	data := map[string][]byte{}
	if s.Newest != nil {
		data[AuthoritiesKey] = s.Authorities()
		data[certificateKey], data[keyKey], data[authorityKey] = s.Newest.Certificate, s.Newest.Key, s.Newest.Authority
	}
	if s.Previous != nil {
		data[previousCertificateKey], data[previousKeyKey], data[previousAuthorityKey] = s.Previous.Certificate, s.Previous.Key, s.Previous.Authority
	}
	return data
}

// Renewed returns what the store should contain for a host now. A pair is made if there
// is no usable one, or if two thirds of the life of the newest have passed.
func (s Store) Renewed(host string, now time.Time) (Store, error) {
	usable := func(p *Pair) *Pair {
		if p != nil && p.validAt(now) && p.isFor(host) {
			return p
		}
		return nil
	}
	s.Newest, s.Previous = usable(s.Newest), usable(s.Previous)
	if s.Newest != nil && now.Before(s.Newest.made().Add(RenewAfter)) {
		return s, nil
	}
	made, err := Make(host, now)
	if err != nil {
		return s, err
	}
	return Store{Newest: made, Previous: s.Newest}, nil
}

// Authorities returns the authorities that the API server should trust, in PEM.
func (s Store) Authorities() []byte {
	all := bytes.Clone(s.Newest.Authority)
	if s.Previous != nil {
		all = append(all, s.Previous.Authority...)
	}
	return all
}

// Serving returns the pair to serve to an API server that trusts the given authorities.
// It stays the previous one until the newest is known everywhere.
func (s Store) Serving(trusted []byte, now time.Time) *Pair {
	isTrusted := func(p *Pair) bool { return bytes.Contains(trusted, bytes.TrimSpace(p.Authority)) }
	if s.Previous != nil && isTrusted(s.Previous) && (now.Before(s.switchAt()) || !isTrusted(s.Newest)) {
		return s.Previous
	}
	return s.Newest
}

// RecheckAt returns when the results of the methods above change by time alone.
func (s Store) RecheckAt(now time.Time) time.Time {
	at := s.Newest.made().Add(RenewAfter)
	if s.Previous == nil {
		return at
	}
	if s.Previous.leaf.NotAfter.Before(at) {
		at = s.Previous.leaf.NotAfter
	}
	if now.Before(s.switchAt()) && s.switchAt().Before(at) {
		at = s.switchAt()
	}
	return at
}

func (s Store) switchAt() time.Time { return s.Newest.made().Add(Overlap) }

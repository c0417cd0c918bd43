// SPDX-License-Identifier: Apache-2.0

package report

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
)

const (
	// SigningEntry is the key of a Secret that holds a private key.
	SigningEntry = "identity.key"
	// TrustedSuffix is that of the keys of a Secret that hold public keys.
	TrustedSuffix = suffix
)

// Algorithm is a kind of keys.
type Algorithm string

const (
	// Ed25519 is the algorithm of RFC 8032.
	Ed25519 Algorithm = "ed25519"
	// ECDSA is the algorithm of FIPS 186-5, on the curve P-256.
	ECDSA Algorithm = "ecdsa"
)

// Generate makes a new private key.
func Generate(algorithm Algorithm, random io.Reader) (SigningKey, error) {
	var private crypto.Signer
	var err error
	switch algorithm {
	case Ed25519:
		_, private, err = ed25519.GenerateKey(random)
	case ECDSA:
		private, err = ecdsa.GenerateKey(elliptic.P256(), random)
	default:
		return SigningKey{}, fmt.Errorf("the algorithm is %s or %s, not %s", Ed25519, ECDSA, quoted(string(algorithm)))
	}
	if err != nil {
		return SigningKey{}, fmt.Errorf("generate a key: %w", err)
	}
	id, err := idOf(private.Public())
	return SigningKey{private: private, id: id}, err
}

// PrivatePEM returns the private key as ParseSigningKey reads it.
func (k SigningKey) PrivatePEM() ([]byte, error) {
	if k.private == nil {
		return nil, errors.New("there is no key")
	}
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, errors.New("the private key cannot be encoded") // the cause might quote it
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// PublicPEM returns the public key as ParseTrustedKeys reads it.
func (k SigningKey) PublicPEM() ([]byte, error) {
	if k.private == nil {
		return nil, errors.New("there is no key")
	}
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		return nil, fmt.Errorf("encode the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// IDs returns the fingerprint of each key. The signature of a report names one of them.
func (k TrustedKeys) IDs() []string {
	var all []string
	for _, key := range k.keys {
		all = append(all, key.id)
	}
	return all
}

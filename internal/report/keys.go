// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

const (
	// suffix is that of the keys in a Secret that hold public keys, as in the Secrets that
	// Flux verifies signatures with.
	suffix = ".pub"
	// separator is between the name of a cluster and the rest of the name of a key. No
	// cluster has it in its name.
	separator = "."
	// anyCluster is in the place of the name of a cluster where a key may sign for all.
	anyCluster = "any"
	// mostKeys is how many keys a Secret may have: one for each cluster, and a second one
	// while it is replaced.
	mostKeys = 64
)

var (
	errAlgorithm = errors.New("it is neither an Ed25519 key nor an ECDSA key on the curve P-256")
	errSignature = errors.New("the signature is not by this key")
)

// SigningKey is the private key of a cluster. Its zero value signs nothing.
type SigningKey struct {
	private crypto.Signer
	id      string
}

// ParseSigningKey reads a private key in PEM, in the form PKCS#8. Its errors quote nothing
// of it.
func ParseSigningKey(text []byte) (SigningKey, error) {
	der, err := block(text, "PRIVATE KEY")
	if err != nil {
		return SigningKey{}, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return SigningKey{}, errors.New("its content is not a key of the form PKCS#8")
	}
	private, ok := parsed.(crypto.Signer)
	if !ok {
		return SigningKey{}, errAlgorithm
	}
	id, err := idOf(private.Public())
	if err != nil {
		return SigningKey{}, err
	}
	return SigningKey{private: private, id: id}, nil
}

// Sign signs with no source of randomness: so the same content has the same signature.
func (k SigningKey) Sign(_ context.Context, data []byte) ([]byte, error) {
	switch key := k.private.(type) {
	case ed25519.PrivateKey:
		return ed25519.Sign(key, data), nil
	case *ecdsa.PrivateKey:
		sum := sha256.Sum256(data)
		return key.Sign(nil, sum[:], crypto.SHA256)
	default:
		return nil, errors.New("there is no key")
	}
}

// KeyID returns the fingerprint of the public key, in the form of OpenSSH.
func (k SigningKey) KeyID() (string, error) { return k.id, nil }

// String returns the fingerprint: nobody prints a private key by mistake.
func (k SigningKey) String() string { return k.id }

// GoString is String.
func (k SigningKey) GoString() string { return k.id }

// Trusted returns the public key, for reports that the cluster has written itself.
func (k SigningKey) Trusted() TrustedKeys {
	keys := TrustedKeys{name: "this cluster"}
	if k.private != nil {
		keys.keys = []publicKey{{key: k.private.Public(), id: k.id, names: []string{anyCluster}}}
	}
	return keys
}

// TrustedKeys are the public keys of other clusters. A report that one of them has signed
// is trusted, but see [TrustedKeys.For]. Its zero value trusts nothing.
type TrustedKeys struct {
	name string
	keys []publicKey
}

// ParseTrustedKeys reads the data of a Secret: each public key, in PEM, under a key that
// ends in ".pub". Other keys are ignored. Name is what messages call the Secret. One key
// that cannot be read is an error: its reports would be refused without a word about it.
func ParseTrustedKeys(name string, data map[string][]byte) (TrustedKeys, error) {
	trusted := TrustedKeys{name: name}
	for _, entry := range slices.Sorted(maps.Keys(data)) {
		if !strings.HasSuffix(entry, suffix) {
			continue
		}
		key, err := parsePublicKey(data[entry])
		if err != nil {
			return TrustedKeys{}, fmt.Errorf("read %s of %s: %w", entry, name, err)
		}
		trusted.add(key, strings.TrimSuffix(entry, suffix))
	}
	switch {
	case len(trusted.keys) == 0:
		return TrustedKeys{}, fmt.Errorf("%s has no public key: add one in PEM as CLUSTER%s", name, suffix)
	case len(trusted.keys) > mostKeys:
		return TrustedKeys{}, fmt.Errorf("%s has %d public keys, and only %d are read", name, len(trusted.keys), mostKeys)
	}
	return trusted, nil
}

// add adds a key under a name. The same key can have several.
func (k *TrustedKeys) add(key publicKey, name string) {
	at := slices.IndexFunc(k.keys, func(known publicKey) bool { return known.id == key.id })
	if at < 0 {
		at, k.keys = len(k.keys), append(k.keys, key)
	}
	k.keys[at].names = append(k.keys[at].names, name)
}

// IsCluster reports whether a cluster can have a name: letters, digits, "-" and "_". It is
// the beginning of the names of the cluster's keys.
func IsCluster(name string) bool {
	return len(name) <= truncate.LongestName && name != anyCluster && clusterName.MatchString(name)
}

var clusterName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// For returns the keys that may sign what a cluster says: those with its name, alone or with
// a dot and more after it, and those that may sign for any cluster. There are no others, so
// to remove a key never lets another one sign instead.
func (k TrustedKeys) For(cluster string) TrustedKeys {
	its := slices.DeleteFunc(slices.Clone(k.keys), func(key publicKey) bool { return len(key.namesFor(cluster)) == 0 })
	return TrustedKeys{name: fmt.Sprintf("%s for cluster %s", k.name, cluster), keys: its}
}

// EntriesFor returns the entries of the Secret whose keys may sign what a cluster says.
func (k TrustedKeys) EntriesFor(cluster string) []string {
	var entries []string
	for _, key := range k.keys {
		for _, name := range key.namesFor(cluster) {
			entries = append(entries, name+suffix)
		}
	}
	slices.Sort(entries)
	return entries
}

// ClusterOf returns the cluster for which the key in an entry may sign; "any" if it may sign
// for every cluster.
func ClusterOf(entry string) string {
	cluster, _, _ := strings.Cut(strings.TrimSuffix(entry, suffix), separator)
	return cluster
}

// IsForAny reports whether the key in an entry may sign for every cluster.
func IsForAny(entry string) bool { return ClusterOf(entry) == anyCluster }

// Has reports whether a key is among them, by its fingerprint.
func (k TrustedKeys) Has(fingerprint string) bool {
	return slices.ContainsFunc(k.keys, func(key publicKey) bool { return key.id == fingerprint })
}

// Fingerprint returns a hash of the keys and their names. Keys with the same
// fingerprint verify the same reports.
func (k TrustedKeys) Fingerprint() string {
	ids := make([]string, 0, len(k.keys))
	for _, key := range k.keys {
		ids = append(ids, key.id+" "+strings.Join(key.names, " "))
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, "\n")))
	return hex.EncodeToString(sum[:])
}

func (k TrustedKeys) verifiers() []dsse.Verifier {
	var all []dsse.Verifier
	for _, key := range k.keys {
		all = append(all, key)
	}
	return all
}

// publicKey verifies signatures.
type publicKey struct {
	key crypto.PublicKey
	id  string
	// names are those of its entries in a Secret, without the suffix.
	names []string
}

// namesFor returns the names that let a key sign for a cluster.
func (k publicKey) namesFor(cluster string) []string {
	return slices.DeleteFunc(slices.Clone(k.names), func(name string) bool { return ClusterOf(name) != cluster && !IsForAny(name) })
}

func parsePublicKey(text []byte) (publicKey, error) {
	der, err := block(text, "PUBLIC KEY")
	if err != nil {
		return publicKey{}, err
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return publicKey{}, errors.New("its content is not a public key of the form PKIX")
	}
	id, err := idOf(key)
	return publicKey{key: key, id: id}, err
}

// Verify returns an error if the signature is not by this key.
func (k publicKey) Verify(_ context.Context, data, signature []byte) error {
	good := false
	switch key := k.key.(type) {
	case ed25519.PublicKey:
		good = ed25519.Verify(key, data, signature)
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(data)
		good = ecdsa.VerifyASN1(key, sum[:], signature)
	}
	if !good {
		return errSignature
	}
	return nil
}

// KeyID returns the fingerprint. A signature that names another one is not verified.
func (k publicKey) KeyID() (string, error) { return k.id, nil }

// Public returns the key itself.
func (k publicKey) Public() crypto.PublicKey { return k.key }

// block returns the content of a text that is one PEM block of a type.
func block(text []byte, want string) ([]byte, error) {
	found, rest := pem.Decode(text)
	switch {
	case found == nil:
		return nil, fmt.Errorf("it is not a %s in PEM", want)
	case found.Type != want:
		return nil, fmt.Errorf("it is a PEM block %s, not %s: convert it with openssl pkey", quoted(found.Type), quoted(want))
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("there is more than one PEM block: write each key under a name of its own")
	}
	return found.Bytes, nil
}

// idOf returns the fingerprint of a key, if it is of a kind that is used.
func idOf(key crypto.PublicKey) (string, error) {
	switch k := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return "", errAlgorithm
		}
	default:
		return "", errAlgorithm
	}
	id, err := dsse.SHA256KeyID(key)
	if err != nil {
		return "", fmt.Errorf("compute the fingerprint: %w", err)
	}
	return id, nil
}

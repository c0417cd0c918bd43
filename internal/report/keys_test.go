// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/report"
)

func privatePEM(tb testing.TB, key any) []byte {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func publicPEM(tb testing.TB, key crypto.Signer) []byte {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// private returns a key that is the same in each run.
func private(number byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{number}, ed25519.SeedSize))
}

func ellipticKey(tb testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func signingKey(tb testing.TB, key any) report.SigningKey {
	tb.Helper()
	parsed, err := report.ParseSigningKey(privatePEM(tb, key))
	if err != nil {
		tb.Fatal(err)
	}
	return parsed
}

func ed25519Key(tb testing.TB, number byte) report.SigningKey {
	tb.Helper()
	return signingKey(tb, private(number))
}

func signers(tb testing.TB) map[string]report.SigningKey {
	tb.Helper()
	return map[string]report.SigningKey{
		"Ed25519": ed25519Key(tb, 1), "ECDSA": signingKey(tb, ellipticKey(tb, elliptic.P256())),
	}
}

func trust(tb testing.TB, data map[string][]byte) report.TrustedKeys {
	tb.Helper()
	keys, err := report.ParseTrustedKeys("promotion-keys", data)
	if err != nil {
		tb.Fatal(err)
	}
	return keys
}

// TestKeyIsReplaced trusts the old and the new key of a cluster at once.
func TestKeyIsReplaced(t *testing.T) {
	byOld, byNew := sign(t, everything(), ed25519Key(t, 1)), sign(t, everything(), ed25519Key(t, 2))
	before := map[string][]byte{"staging-eu.pub": publicPEM(t, private(1))}
	meanwhile := map[string][]byte{"staging-eu.pub": publicPEM(t, private(1)), "staging-eu.2.pub": publicPEM(t, private(2)), "notes.txt": []byte("x")}
	after := map[string][]byte{"staging-eu.2.pub": publicPEM(t, private(2)), "staging-us.pub": publicPEM(t, private(2))}
	for _, test := range []struct {
		name     string
		trusted  map[string][]byte
		old, new bool
	}{{"before", before, true, false}, {"meanwhile", meanwhile, true, true}, {"after", after, false, true}} {
		t.Run(test.name, func(t *testing.T) {
			_, err := report.Verify(byOld, trust(t, test.trusted), report.Expected{Source: staging})
			diff(t, test.old, err == nil)
			_, err = report.Verify(byNew, trust(t, test.trusted), report.Expected{Source: staging})
			diff(t, test.new, err == nil)
		})
	}
}

func TestKeyThatIsNamedAfterAClusterSpeaksForItAlone(t *testing.T) {
	key := map[string][]byte{}
	for i, name := range []string{"eu", "us", "any"} {
		key[name] = publicPEM(t, private(byte(1+i)))
	}
	for name, test := range map[string]struct {
		data map[string][]byte
		want map[string]string // why the report of staging-eu by that key is refused
	}{
		"its own, and that of any": {
			map[string][]byte{"staging-eu.pub": key["eu"], "staging-us.pub": key["us"], "any.pub": key["any"]},
			map[string]string{"eu": "", "us": "no key of promotion-keys for cluster staging-eu signed it", "any": ""},
		},
		"two of its own": {
			map[string][]byte{"staging-eu.pub": key["eu"], "staging-eu.second.pub": key["us"], "any.other.pub": key["any"]},
			map[string]string{"eu": "", "us": "", "any": ""},
		},
		"its own was removed": {
			map[string][]byte{"staging-us.pub": key["us"]},
			map[string]string{"eu": "no key of promotion-keys for cluster staging-eu signed it", "us": "no key of promotion-keys for cluster staging-eu signed it"},
		},
		"one for two clusters": {
			map[string][]byte{"staging-eu.pub": key["eu"], "staging-us.pub": key["eu"]},
			map[string]string{"eu": "", "us": "no key of promotion-keys for cluster staging-eu signed it"},
		},
		"none has its name": {
			map[string][]byte{"staging.pub": key["eu"], "staging-eu-2.pub": key["us"]},
			map[string]string{"eu": "no key of promotion-keys for cluster staging-eu signed it", "us": "no key of promotion-keys for cluster staging-eu signed it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for signer, want := range test.want {
				number := map[string]byte{"eu": 1, "us": 2, "any": 3}[signer]
				_, err := report.Verify(sign(t, everything(), ed25519Key(t, number)), trust(t, test.data), report.Expected{Source: everything().Source})
				if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
					t.Errorf("%s: error %s, want %q", signer, got, want)
				}
			}
		})
	}
}

func TestEntriesForAClusterAreThoseThatMaySign(t *testing.T) {
	one, two := publicPEM(t, private(1)), publicPEM(t, private(2))
	keys := trust(t, map[string][]byte{
		"staging-eu.pub": one, "staging-us.pub": one, "staging-eu.second.pub": two, "any.pub": two, "staging.pub": two,
	})
	for cluster, want := range map[string][]string{
		"staging-eu": {"any.pub", "staging-eu.pub", "staging-eu.second.pub"},
		"staging":    {"any.pub", "staging.pub"},
		"prod":       {"any.pub"},
	} {
		if got := keys.EntriesFor(cluster); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", cluster, got, want)
		}
	}
}

func TestFingerprintIsThatOfTheKeys(t *testing.T) {
	one, two := publicPEM(t, private(1)), publicPEM(t, private(2))
	both := trust(t, map[string][]byte{"a.pub": one, "b.pub": two}).Fingerprint()
	if got := trust(t, map[string][]byte{"b.pub": two, "a.pub": one}).Fingerprint(); got != both {
		t.Error("it is not the same for the same keys")
	}
	if got := trust(t, map[string][]byte{"a.pub": two, "b.pub": one}).Fingerprint(); got == both {
		t.Error("it does not depend on the names, which say for which cluster a key counts")
	}
	if got := trust(t, map[string][]byte{"a.pub": one}).Fingerprint(); got == both || got == (report.TrustedKeys{}).Fingerprint() {
		t.Error("it does not depend on the keys")
	}
}

func TestParseTrustedKeysSaysWhichKeyIsWrong(t *testing.T) {
	good := publicPEM(t, private(1))
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	diff(t, nil, err)
	many := map[string][]byte{}
	for i := range 65 {
		many[fmt.Sprint(i, ".pub")] = publicPEM(t, private(byte(i)))
	}
	one := func(text []byte) map[string][]byte { return map[string][]byte{"a.pub": good, "b.pub": text} }
	for name, test := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"no key":        {nil, "promotion-keys has no public key: add one in PEM as CLUSTER.pub"},
		"another name":  {map[string][]byte{"key.pem": good}, "promotion-keys has no public key: add one in PEM as CLUSTER.pub"},
		"too many":      {many, "promotion-keys has 65 public keys, and only 64 are read"},
		"not in PEM":    {one([]byte("ssh-ed25519 AAAA")), "read b.pub of promotion-keys: it is not a PUBLIC KEY in PEM"},
		"empty":         {one(nil), "read b.pub of promotion-keys: it is not a PUBLIC KEY in PEM"},
		"a private key": {one(privatePEM(t, private(1))), `read b.pub of promotion-keys: it is a PEM block "PRIVATE KEY", not "PUBLIC KEY": convert it with openssl pkey`},
		"two keys":      {one(append(bytes.Clone(good), good...)), "read b.pub of promotion-keys: there is more than one PEM block: write each key under a name of its own"},
		"no content": {
			one(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})),
			"read b.pub of promotion-keys: its content is not a public key of the form PKIX",
		},
		"RSA":   {one(publicPEM(t, rsaKey)), "read b.pub of promotion-keys: it is neither an Ed25519 key nor an ECDSA key on the curve P-256"},
		"P-384": {one(publicPEM(t, ellipticKey(t, elliptic.P384()))), "read b.pub of promotion-keys: it is neither an Ed25519 key nor an ECDSA key on the curve P-256"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := report.ParseTrustedKeys("promotion-keys", test.data)
			diff(t, test.want, fmt.Sprint(err))
		})
	}
}

func TestParseSigningKeySaysWhatIsWrong(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	diff(t, nil, err)
	key := ellipticKey(t, elliptic.P256())
	sec1, err := x509.MarshalECPrivateKey(key)
	diff(t, nil, err)
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"empty":        {nil, "it is not a PRIVATE KEY in PEM"},
		"a public key": {publicPEM(t, key), `it is a PEM block "PUBLIC KEY", not "PRIVATE KEY": convert it with openssl pkey`},
		"SEC 1": {
			pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}),
			`it is a PEM block "EC PRIVATE KEY", not "PRIVATE KEY": convert it with openssl pkey`,
		},
		"no content": {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), "its content is not a key of the form PKCS#8"},
		"RSA":        {privatePEM(t, rsaKey), "it is neither an Ed25519 key nor an ECDSA key on the curve P-256"},
		"P-521":      {privatePEM(t, ellipticKey(t, elliptic.P521())), "it is neither an Ed25519 key nor an ECDSA key on the curve P-256"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := report.ParseSigningKey(test.text)
			diff(t, test.want, fmt.Sprint(err))
		})
	}
}

func TestSigningKeyIsNotPrinted(t *testing.T) {
	for kind, key := range signers(t) {
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if text := fmt.Sprintf(format, key); !strings.HasPrefix(text, "SHA256:") || len(text) != 50 {
				t.Errorf("%s prints %s as %s", format, kind, text)
			}
		}
	}
}

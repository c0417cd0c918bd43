// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/report"
)

func TestGeneratedKeySignsWhatItsPublicKeyVerifies(t *testing.T) {
	for _, algorithm := range []report.Algorithm{report.Ed25519, report.ECDSA} {
		t.Run(string(algorithm), func(t *testing.T) {
			key, err := report.Generate(algorithm, rand.Reader)
			diff(t, nil, err)
			private, err := key.PrivatePEM()
			diff(t, nil, err)
			parsed, err := report.ParseSigningKey(private)
			diff(t, nil, err)
			public, err := key.PublicPEM()
			diff(t, nil, err)
			trusted := trust(t, map[string][]byte{"any.pub": public})
			diff(t, []string{key.String()}, trusted.IDs())
			_, err = report.Verify(sign(t, everything(), parsed), trusted, report.Expected{Source: staging})
			diff(t, nil, err)
		})
	}
}

func TestGenerateKnowsTwoAlgorithms(t *testing.T) {
	_, err := report.Generate("rsa", rand.Reader)
	diff(t, `the algorithm is ed25519 or ecdsa, not "rsa"`, fmt.Sprint(err))
}

func TestNoKeyHasNoPEM(t *testing.T) {
	_, err := report.SigningKey{}.PrivatePEM()
	diff(t, "there is no key", fmt.Sprint(err))
	_, err = report.SigningKey{}.PublicPEM()
	diff(t, "there is no key", fmt.Sprint(err))
}

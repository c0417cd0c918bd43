// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// Sign returns the report in a signed envelope. The same report and key always give the
// same bytes. It returns an error if readers would refuse the report.
func Sign(r Report, key SigningKey) ([]byte, error) {
	if err := check(r); err != nil {
		return nil, fmt.Errorf("others would refuse the report: %w", err)
	}
	payload, err := r.payload()
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	signer, err := dsse.NewEnvelopeSigner(key)
	if err != nil {
		return nil, fmt.Errorf("sign the report: %w", err)
	}
	signed, err := signer.SignPayload(context.Background(), payloadType, payload) // nothing is waited for
	if err != nil {
		return nil, fmt.Errorf("sign the report: %w", err)
	}
	return encode(signed)
}

func encode(signed *dsse.Envelope) ([]byte, error) {
	envelope, err := json.Marshal(signed)
	if err == nil && len(envelope) > MostBytes {
		err = refuse(TooLarge, "it has %d bytes, and only %d are read", len(envelope), MostBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("encode the envelope: %w", err)
	}
	return envelope, nil
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// Expected is what a report must say to be used.
type Expected struct {
	Source
	// Sequence is that of the newest report that was verified before; 0 if none was.
	Sequence int64
	// Latest is the highest number that is accepted; 0 for any. See Latest.
	Latest int64
}

// Verify returns the report in an envelope. Its error is a Refusal: unless a key that may
// sign for the cluster has signed the report, and it is what was expected, nothing in it
// is returned.
func Verify(envelope []byte, keys TrustedKeys, expected Expected) (Report, error) {
	signed, err := unpack(envelope)
	if err != nil {
		return Report{}, err
	}
	payload, signedBy, err := keys.For(expected.Cluster).open(signed)
	if err != nil {
		return Report{}, err
	}
	r, err := decode(payload)
	if err != nil {
		return Report{}, err
	}
	if err := expected.accept(r); err != nil {
		return Report{}, err
	}
	if err := check(r); err != nil {
		return Report{}, err
	}
	fit(&r)
	r.SignedBy = signedBy
	return r, nil
}

// unpack decodes an envelope, as far as that is possible before its signature is known to
// be good.
func unpack(envelope []byte) (*dsse.Envelope, error) {
	if len(envelope) > MostBytes {
		return nil, refuse(TooLarge, "it has %d bytes, and only %d are read", len(envelope), MostBytes)
	}
	signed := &dsse.Envelope{}
	if err := json.Unmarshal(envelope, signed); err != nil {
		return nil, refuse(Unreadable, "it is not a signed envelope")
	}
	switch {
	case signed.PayloadType != payloadType:
		return nil, refuse(Unreadable, "it contains %s, not %s", quoted(signed.PayloadType), payloadType)
	case len(signed.Signatures) == 0:
		return nil, refuse(Unsigned, "it is not signed")
	case len(signed.Signatures) > mostSignatures:
		return nil, refuse(Untrusted, "it has %d signatures, and only %d are read", len(signed.Signatures), mostSignatures)
	}
	return signed, nil
}

// open returns the content of an envelope that one of the keys has signed, and the
// fingerprints of those that have.
func (k TrustedKeys) open(signed *dsse.Envelope) (payload []byte, by []string, err error) {
	verifier, err := dsse.NewEnvelopeVerifier(k.verifiers()...)
	if err != nil {
		return nil, nil, refuse(Untrusted, "no key of %s signed it", k.name)
	}
	accepted, payload, err := verifier.VerifyAndDecode(context.Background(), signed) // nothing is waited for
	if err != nil {
		return nil, nil, refuse(Untrusted, "no key of %s signed it", k.name)
	}
	for _, key := range accepted {
		by = append(by, key.KeyID)
	}
	return payload, by, nil
}

// decode reads a Statement that a trusted key has signed. That key may be used for other
// Statements, too.
func decode(payload []byte) (Report, error) {
	var s statement
	var p predicate
	if err := json.Unmarshal(payload, &s); err != nil {
		return Report{}, refuse(Unreadable, "it is not an in-toto Statement")
	}
	switch version, ours := strings.CutPrefix(s.PredicateType, predicates); {
	case s.Type != statementType:
		return Report{}, refuse(Unreadable, "it is of type %s, not %s", quoted(s.Type), statementType)
	case !ours:
		return Report{}, refuse(Unreadable, "it is a Statement of type %s, not a report", quoted(s.PredicateType))
	case s.PredicateType != predicateType:
		return Report{}, refuse(NewerFormat, "it is a report of format %s, which is unknown here: upgrade this controller", quoted(version))
	}
	if err := json.Unmarshal(s.Predicate, &p); err != nil {
		return Report{}, refuse(Unreadable, "it is not a report of format v1")
	}
	return fromWire(p), nil
}

// accept returns an error if a report is about something else, or outdated. Without this,
// whoever has a key for one environment could speak for all of them.
func (e Expected) accept(r Report) error {
	for _, field := range []struct{ name, got, want string }{
		{"application", r.Application, e.Application},
		{"environment", r.Environment, e.Environment},
		{"cluster", r.Cluster, e.Cluster},
		{"namespace", r.Namespace, e.Namespace},
		{"Rollout", r.Rollout, e.Rollout},
	} {
		if field.got != field.want {
			return refuse(OtherSource, "it is about %s %s, not %s", field.name, quoted(field.got), quoted(field.want))
		}
	}
	switch {
	case r.Sequence < e.Sequence:
		return refuse(Outdated, "its sequence %d is lower than %d, which was verified before", r.Sequence, e.Sequence)
	case e.Latest != 0 && r.Sequence > e.Latest:
		return refuse(Ahead, "its sequence %d is far in the future", r.Sequence)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest returns a hash of a part of a status, in the form "sha256:" and hexadecimal
// digits. Two parts that are stored as the same JSON have the same hash.
func Digest(part any) string { return digestOf(encoded(part)) }

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func encoded(part any) []byte {
	text, err := json.Marshal(part)
	if err != nil {
		panic(err) // a part of a status can always be encoded
	}
	return text
}

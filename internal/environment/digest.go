// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
)

// Digest returns a hash of a part of a status, in the form "sha256:" and hexadecimal
// digits. Two parts that are stored as the same JSON have the same hash.
func Digest(part any) string {
	sum := sha256.Sum256(encoded(part))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// short returns a hash that takes little memory: 16 bytes, as 22 characters.
func short(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawStdEncoding.EncodeToString(sum[:16])
}

func encoded(part any) []byte {
	text, err := json.Marshal(part)
	if err != nil {
		panic(err) // a part of a status can always be encoded
	}
	return text
}

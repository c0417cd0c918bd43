// SPDX-License-Identifier: Apache-2.0

package truncate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// LongestName is how many bytes the name of an object may have, and so the names in specs
// and reports that stand for one.
const LongestName = 253

// Name returns the name of an object, or, if it has more than a number of bytes, its
// beginning and a hash of it. It ends in a letter or digit, as the name did.
func Name(name string, longest int) string {
	if len(name) <= longest {
		return name
	}
	end := "-" + Hash(name)
	return strings.TrimRight(name[:longest-len(end)], "-.") + end
}

// Hash returns a short hash that is still unique among the objects of a cluster.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// SPDX-License-Identifier: Apache-2.0

package releases

import "github.com/fluxrollouts/rollout-controller/internal/truncate"

// versionsLimit is the size limit in the status for the versions that one gate allows, in
// bytes of JSON.
const versionsLimit = 2 << 10

// ListedVersions returns as many of the allowed versions as the size limit permits.
// Wanted versions (the candidates) take precedence. The versions keep their order.
func ListedVersions(allowed []string, wanted map[string]bool) []string {
	listed, left := make([]bool, len(allowed)), versionsLimit
	for _, first := range []bool{true, false} {
		for i, version := range allowed {
			size := truncate.Size(version) + len(`"",`)
			if wanted[version] == first && size <= left {
				listed[i] = true
				left -= size
			}
		}
	}
	some := make([]string, 0, len(allowed))
	for i, version := range allowed {
		if listed[i] {
			some = append(some, version)
		}
	}
	return some
}

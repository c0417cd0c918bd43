// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strconv"
	"testing"
)

func TestLimitsAreLimited(t *testing.T) {
	l := limits{qps: 1}
	for i := range 3 * mostLimits {
		host := strconv.Itoa(i)
		if first := l.of(host); first != l.of(host) {
			t.Fatalf("the limit of host %d is forgotten", i)
		}
	}
	if len(l.hosts) != mostLimits {
		t.Errorf("there are %d limits", len(l.hosts))
	}
}

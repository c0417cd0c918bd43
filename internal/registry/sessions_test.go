// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"strconv"
	"testing"
)

func TestSessionsAreLimited(t *testing.T) {
	var s sessions
	for i := range 3 * mostSessions {
		key := session{repository: strconv.Itoa(i)}
		s.keep(key, http.DefaultTransport)
		if s.get(key) == nil {
			t.Fatalf("session %d is not kept", i)
		}
	}
	if len(s.kept) != mostSessions {
		t.Errorf("%d sessions are kept", len(s.kept))
	}
}

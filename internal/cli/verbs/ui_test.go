// SPDX-License-Identifier: Apache-2.0

package verbs

import "testing"

// In a pod, everybody who reached the page would have the rights of its account.
func TestPageIsNotServedInAPod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	oneLineWith(t, runAt(t.Context(), t, "http://127.0.0.1:1", until{}, "ui", "--open=false"), "this is a pod", "run it there")
}

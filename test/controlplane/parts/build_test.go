// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"io"
	"testing"
)

func TestMakeCheckRunsNoPart(t *testing.T) {
	t.Setenv(noPartsVariable, "1")
	_, err := Build(t.Context(), io.Discard, Etcd)
	const want = "make check runs no [etcd]: add the package of this test to RECONCILERS in the Makefile, or skip the test if testing.Short()"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

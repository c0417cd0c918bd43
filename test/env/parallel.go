// SPDX-License-Identifier: Apache-2.0

package env

import (
	"flag"
	"sync"
	"testing"
)

// testsAtOnce is more than there are processors, because tests wait for the API server.
const testsAtOnce = "16"

// AllowParallel sets how many tests of a package run in parallel. TestMain calls it.
func AllowParallel() error { return flag.Set("test.parallel", testsAtOnce) }

// parallel contains the tests that run in parallel.
var parallel sync.Map

// Parallel runs a test in parallel with others. It may be called again for the same test.
func Parallel(t *testing.T) {
	t.Helper()
	if _, already := parallel.LoadOrStore(t, true); !already {
		t.Parallel()
	}
}

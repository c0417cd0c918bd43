// SPDX-License-Identifier: Apache-2.0

// Package recovery loses what the controller remembers, and brings it back as
// docs/guides/backup-and-recovery.md says: the tests run the commands of that page, and await
// what it shows.
//
// The tests share a control plane, where each has two environments of its own. Those that write
// the status of everything, delete CRDs or restore etcd have it alone meanwhile. Reports are
// exchanged between two other control planes. There is no controller manager: nothing here needs
// pods.
package recovery

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// plane is shared by the tests.
var plane *env.Plane

// use is locked by a test that has the plane alone, and locked for reading by the others.
var use sync.RWMutex

func TestMain(m *testing.M) {
	// All tests run at the same time: they mostly wait.
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, &plane, controlplane.Options{Flux: true, ImageScanner: true}))
}

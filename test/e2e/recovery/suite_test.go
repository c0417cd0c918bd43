// SPDX-License-Identifier: Apache-2.0

// Package recovery loses what the controller remembers, and brings it back as
// docs/guides/backup-and-recovery.md says: the tests run the commands of that page, and await
// what it shows.
//
// The tests share the control plane. Each has two environments of its own. Those that write
// the status of everything, delete CRDs or restore etcd run alone, before those that run in
// parallel. There is no controller manager: nothing here needs pods.
package recovery

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// plane is shared by the tests.
var plane *env.Plane

func TestMain(m *testing.M) {
	// All parallel tests run at the same time: they mostly wait.
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, &plane, controlplane.Options{Flux: true, ImageScanner: true}))
}

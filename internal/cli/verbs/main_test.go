// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// Environment of the program that a test starts as a process of its own.
const (
	clusterVariable = "TEST_CLUSTER" // the file with the objects of its cluster
	patchVariable   = "TEST_PATCH"   // the file that gets its patch
	// changesDescriptor is the open file from which it reads how Rollouts change.
	changesDescriptor = 3
)

// TestMain is the program itself if a test has started it with a cluster.
func TestMain(m *testing.M) {
	if os.Getenv(clusterVariable) != "" {
		os.Exit(asProcess())
	}
	os.Exit(m.Run())
}

// asProcess runs the program as main does, with a cluster made of a file, at noon.
func asProcess() int {
	open, fake, err := openRecording(os.Getenv(clusterVariable), os.Getenv(patchVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return program.Failed
	}
	fake.changes = os.NewFile(changesDescriptor, "changes")
	p := newProcess("kubectl rollouts")
	p.Connect = func(context.Context) (program.Cluster, error) { return open, nil }
	p.Now, p.Zone = func() time.Time { return noon }, time.FixedZone("CET", 3600)
	return untilInterrupted(p, os.Args[1:])
}

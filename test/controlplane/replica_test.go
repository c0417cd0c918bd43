// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// A part that ends while or after the control plane starts is named, and so is what waits
// for it.
func TestPartThatEndsIsNamed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c, err := Start(t.Context(), Options{Workloads: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop() }()
	scheduler := c.Part(parts.Scheduler)
	scheduler.signal(syscall.SIGKILL)
	await(t, "the scheduler ended", func() bool { return !scheduler.Running() })

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err = c.awaitReplica(ctx)
	for _, part := range []string{"no pod becomes ready", "canary-", "kube-scheduler (running: false)", "kwok (running: true)"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if err := c.Stop(); err == nil || !strings.Contains(err.Error(), "kube-scheduler ended by itself\nsignal: killed") {
		t.Errorf("got %v", err)
	}
}

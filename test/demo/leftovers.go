// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// remains are the processes and the folder that a control plane has created on this
// machine. None of them must exist after it has stopped.
type remains struct {
	groups map[string]int
	folder string
}

// leftovers lists what could be left, before the control plane stops.
func leftovers(plane *controlplane.ControlPlane) remains {
	r := remains{groups: map[string]int{}, folder: plane.Dir()}
	for _, name := range append(parts.All(), scenario.ControllerName) {
		if p := plane.Part(name); p != nil && p.Running() {
			r.groups[string(name)] = p.PID()
		}
	}
	return r
}

// gone returns an error for each remaining process, or process of its group, and for the
// folder with the stored data.
func (r remains) gone() error {
	var errs []error
	for name, group := range r.groups {
		if err := syscall.Kill(-group, 0); !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("%s still runs as process %d", name, group))
		}
	}
	if _, err := os.Stat(r.folder); !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, fmt.Errorf("the folder %s is still there", r.folder))
	}
	return errors.Join(errs...)
}

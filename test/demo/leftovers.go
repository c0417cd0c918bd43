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

// remains are what a control plane has made on this machine, and what must be
// gone when it has stopped.
type remains struct {
	groups map[string]int
	folder string
}

// leftovers lists what there is to be left, before the control plane stops.
func leftovers(plane *controlplane.ControlPlane) remains {
	r := remains{groups: map[string]int{}, folder: plane.Dir()}
	for _, name := range append(parts.All(), scenario.ControllerName) {
		if p := plane.Part(name); p != nil && p.Running() {
			r.groups[string(name)] = p.PID()
		}
	}
	return r
}

// gone returns what is still there: a process, or another of its group, or
// the folder with everything that was stored.
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

// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/child"
)

var errStopped = errors.New("the control plane is stopped")

// starter starts processes that die with this one. Linux sends the parent death signal
// when the thread that started the child ends, and Go's threads may end at any time.
// Therefore one thread only starts processes.
type starter struct {
	requests chan startRequest
	done     chan struct{}
	close    func()
}

type startRequest struct {
	cmd    *exec.Cmd
	result chan<- error
}

func newStarter() *starter {
	s := &starter{requests: make(chan startRequest), done: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.done) })
	go s.run()
	return s
}

// run never unlocks its thread. When it returns, Go ends the thread, and the processes
// that it started are killed.
func (s *starter) run() {
	runtime.LockOSThread()
	for {
		select {
		case r := <-s.requests:
			r.result <- r.cmd.Start()
		case <-s.done:
			return
		}
	}
}

// start starts the command in its own process group. Ctrl-C in a terminal then reaches
// only this process, which can stop its parts in order.
func (s *starter) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = child.Attributes(syscall.SIGKILL)
	result := make(chan error, 1)
	select {
	case s.requests <- startRequest{cmd, result}:
		return <-result
	case <-s.done:
		return errStopped
	}
}

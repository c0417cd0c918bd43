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

// starter starts processes that die with this one. Linux ties that promise
// (the parent death signal) to the thread that started the child, and Go's
// threads come and go, so one thread is kept for starting and nothing else.
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

// run never unlocks its thread: when it returns, Go ends the thread, and what
// was started and is still there is killed.
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

// start starts the command in a process group of its own, so that Ctrl-C in a
// terminal reaches this process first and it can stop its parts in order.
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

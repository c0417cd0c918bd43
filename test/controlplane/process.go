// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/child"
)

// stopGrace is how long a process may take to end after SIGTERM.
const stopGrace = 10 * time.Second

// Process is one child process of the control plane. It may be started again after it
// ended, with the same arguments and the same log file.
type Process struct {
	Name string
	Path string
	Args []string
	// Env is added to the environment of this process.
	Env []string
	// LogFile receives the output of the process. A restart appends to it.
	LogFile string

	plane   string // the name of its control plane, or ""
	starter *starter
	// ready returns nil when the process serves. If ready is nil, the process is ready as
	// soon as it runs.
	ready func(context.Context) error

	// pausing is locked while a goroutine stops or resumes the process.
	pausing sync.Mutex
	paused  bool

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
	result error
	ending bool // Stop or Kill was called
}

// String returns the name of the process, after that of its control plane if it has one.
func (p *Process) String() string { return label(p.plane, p.Name) }

// label returns a name after the name of a control plane, which may be empty.
func label(plane, name string) string {
	if plane == "" {
		return name
	}
	return plane + "-" + name
}

// Start starts the process if it does not run, and waits until it is ready.
func (p *Process) Start(ctx context.Context) error {
	exited, err := p.launch()
	if err != nil {
		return err
	}
	if err := p.awaitReady(ctx, exited); err != nil {
		return fmt.Errorf("%s did not become ready: %w\n%s", p, err, p.logTail())
	}
	return nil
}

func (p *Process) launch() (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runningLocked() {
		return p.exited, nil
	}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", p, err)
	}
	defer func() { _ = log.Close() }()

	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := p.starter.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", p, err)
	}
	p.cmd, p.exited, p.result, p.ending = cmd, make(chan struct{}), nil, false
	go p.reap(cmd, p.exited)
	return p.exited, nil
}

func (p *Process) reap(cmd *exec.Cmd, exited chan<- struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	p.result = err
	p.mu.Unlock()
	close(exited)
}

// awaitReady checks until the process is ready, it has ended or ctx is done. It checks
// less and less often: each check is a TLS handshake, while starting programs need the
// processors.
func (p *Process) awaitReady(ctx context.Context, exited <-chan struct{}) error {
	for pause := 50 * time.Millisecond; p.ready != nil; pause = min(pause*5/4, 400*time.Millisecond) {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("it ended: %w", errors.Join(p.exitError(), err))
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
	return nil
}

// Running reports whether the process runs. A paused process runs.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runningLocked()
}

func (p *Process) runningLocked() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// PID returns the id of the running process, or 0 when it does not run.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.runningLocked() {
		return 0
	}
	return p.cmd.Process.Pid
}

// Wait waits until the process has ended and returns its exit error.
func (p *Process) Wait(ctx context.Context) error {
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	if exited == nil {
		return fmt.Errorf("%s was never started", p)
	}
	select {
	case <-exited:
		return p.exitError()
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of %s: %w", p, ctx.Err())
	}
}

// Stop asks the process to end and kills it after stopGrace.
func (p *Process) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	p.end(syscall.SIGTERM)
	p.signal(syscall.SIGCONT)
	p.awaitExit(ctx)
	return p.Kill()
}

// Kill ends the process at once, as a crash would, and waits until it has ended.
func (p *Process) Kill() error {
	if !p.Running() {
		return nil
	}
	p.end(syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	if !p.awaitExit(ctx) {
		return fmt.Errorf("%s is still there after being killed", p)
	}
	return nil
}

// Pause freezes the process: its connections stay open but it answers nothing. Pause
// returns when every thread has stopped.
func (p *Process) Pause() {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	p.paused = true
	p.signal(syscall.SIGSTOP)
	for pid := p.PID(); pid != 0 && p.Running() && !child.Stopped(pid); {
		time.Sleep(time.Millisecond)
	}
}

// Resume continues a paused process.
func (p *Process) Resume() {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	p.paused = false
	p.signal(syscall.SIGCONT)
}

// Restart stops the process and starts it again.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// end sends the signal after which the process ends.
func (p *Process) end(s syscall.Signal) {
	p.mu.Lock()
	p.ending = p.runningLocked()
	p.mu.Unlock()
	p.signal(s)
}

// EndedByItself returns an error if the process ended although neither Stop nor Kill was
// called.
func (p *Process) EndedByItself() error {
	p.mu.Lock()
	ended := p.cmd != nil && !p.runningLocked() && !p.ending
	p.mu.Unlock()
	if !ended {
		return nil
	}
	return errors.Join(errors.New(p.String()+" ended by itself"), p.exitError(), errors.New(string(p.logTail())))
}

// signal sends a signal to the process and its children.
func (p *Process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runningLocked() {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

func (p *Process) awaitExit(ctx context.Context) bool {
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	if exited == nil {
		return true
	}
	select {
	case <-exited:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *Process) exitError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result
}

// logTail returns the end of the log, for error messages.
func (p *Process) logTail() []byte {
	const length = 2000
	content, err := os.ReadFile(p.LogFile)
	if err != nil || len(content) <= length {
		return content
	}
	tail := content[len(content)-length:]
	return tail[bytes.IndexByte(tail, '\n')+1:]
}

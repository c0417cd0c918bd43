// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// program is the controller as a process of its own, with the rights and the flags
// that are shipped, and with a limit of memory for ten thousand Rollouts.
type program struct {
	*controlplane.Process
	metrics string    // the address of its metrics
	began   time.Time // when it was started last

	mu   sync.Mutex
	most controlplane.Memory
}

// generousGC lets what is not measured use memory rather than CPU.
const generousGC = 200

// memoryLimit is what the controller's garbage collector is told of. The fleet of
// ten thousand shall need no more.
const memoryLimit = "256MiB"

// profileSeconds is how long CPU profiles are, from the beginning of a wave.
const profileSeconds = 20

// shipped are the flags of the shipped Deployment that say what it does.
var shipped = []string{"--leader-elect"}

// startProgram installs the rights of the controller and starts it, with trust in a
// certificate.
func startProgram(ctx context.Context, plane *controlplane.ControlPlane, path, certificate string) (*program, error) {
	address, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--metrics-bind-address=" + address, "--metrics-secure=false"}, shipped...)
	began := time.Now()
	kubeconfig, err := scenario.Install(ctx, plane, scenario.Account)
	if err != nil {
		return nil, err
	}
	environment := []string{"GOGC=", "GOMEMLIMIT=" + memoryLimit, "SSL_CERT_FILE=" + certificate}
	process, err := scenario.StartControllerAs(plane, scenario.ControllerName, path, kubeconfig, environment, args...)
	if err != nil {
		return nil, err
	}
	return &program{Process: process, metrics: address, began: began}, nil
}

// blink is how often the memory is looked at. In that time it grows by a megabyte
// or two at most.
const blink = 50 * time.Millisecond

// watchMemory keeps the most memory that any of the processes has.
func (p *program) watchMemory(ctx context.Context) {
	for pause(ctx, blink) == nil {
		now, err := controlplane.MemoryOf(p.PID())
		if err != nil {
			continue // it is being started again
		}
		p.mu.Lock()
		p.most = p.most.Most(now)
		p.mu.Unlock()
	}
}

// mostMemory is the most so far.
func (p *program) mostMemory() (controlplane.Memory, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most.Own == 0 {
		return controlplane.Memory{}, errors.New("nobody has seen how much memory the controller has")
	}
	return p.most, nil
}

// profile saves what the program's /debug/pprof serves under a name.
func (p *program) profile(ctx context.Context, name, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metrics+"/debug/pprof/"+name, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask for a profile: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the program serves no profile %s: %s", name, response.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}

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

// program is the controller as its own process, with the shipped permissions and flags,
// and with a memory limit for ten thousand Rollouts.
type program struct {
	*controlplane.Process
	metrics string    // the address of its metrics
	began   time.Time // when it was last started

	mu   sync.Mutex
	most controlplane.Memory
}

// generousGC makes programs that are not measured use memory rather than CPU time.
const generousGC = 200

// memoryLimit is the GOMEMLIMIT of the controller. The fleet of ten thousand must not
// need more.
const memoryLimit = "256MiB"

// environmentsLimit is the same where each Rollout has an Environment and a full history.
const environmentsLimit = "640MiB"

// profileSeconds is how long CPU profiles are, from the beginning of a wave.
const profileSeconds = 20

// shipped are the flags of the shipped Deployment that define its behavior.
var shipped = []string{"--leader-elect"}

// startProgram installs the permissions of the controller and starts it with a GOMEMLIMIT.
// The controller trusts the certificate, and HealthChecks may ask the Prometheus.
func startProgram(ctx context.Context, plane *controlplane.ControlPlane, path, limit, certificate, prometheus string) (*program, error) {
	address, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--metrics-bind-address=" + address, "--metrics-secure=false", "--prometheus-address=" + prometheus}, shipped...)
	began := time.Now()
	kubeconfig, err := scenario.Install(ctx, plane, scenario.Account)
	if err != nil {
		return nil, err
	}
	environment := []string{"GOGC=", "GOMEMLIMIT=" + limit, "SSL_CERT_FILE=" + certificate}
	process, err := scenario.StartControllerAs(plane, scenario.ControllerName, path, kubeconfig, environment, args...)
	if err != nil {
		return nil, err
	}
	return &program{Process: process, metrics: address, began: began}, nil
}

// blink is how often the memory is read. In that time it grows by a megabyte or two at
// most.
const blink = 50 * time.Millisecond

// watchMemory records the most memory that any process of the controller has had.
func (p *program) watchMemory(ctx context.Context) {
	for pause(ctx, blink) == nil {
		now, err := controlplane.MemoryOf(p.PID())
		if err != nil {
			continue // it is being restarted
		}
		p.mu.Lock()
		p.most = p.most.Most(now)
		p.mu.Unlock()
	}
}

// forgetMemory makes the most memory count from now on.
func (p *program) forgetMemory() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = controlplane.Memory{}
}

// mostMemory returns the most memory so far.
func (p *program) mostMemory() (controlplane.Memory, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most.Own == 0 {
		return controlplane.Memory{}, errors.New("nobody has seen how much memory the controller has")
	}
	return p.most, nil
}

// profile saves a profile that the program's /debug/pprof serves.
func (p *program) profile(ctx context.Context, name, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = p.fetch(ctx, "debug/pprof/"+name, file)
	return errors.Join(err, file.Close())
}

// scrape returns how many bytes a scrape of the metrics has.
func (p *program) scrape(ctx context.Context) (int64, error) {
	return p.fetch(ctx, "metrics", io.Discard)
}

// fetch copies what the program serves, and returns its size in bytes.
func (p *program) fetch(ctx context.Context, path string, to io.Writer) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metrics+"/"+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("ask for %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the program serves no %s: %s", path, response.Status)
	}
	return io.Copy(to, response.Body)
}

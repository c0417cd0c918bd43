// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// program is the controller as a process of its own, with the rights and the flags
// that are shipped. Its memory has no limit, so that its peak is what it needs.
type program struct {
	*controlplane.Process
	metrics string    // the address of its metrics
	began   time.Time // when it was started last
}

// generousGC lets what is not measured use memory rather than CPU.
const generousGC = 200

// profileSeconds is how long CPU profiles are, from the beginning of a wave.
const profileSeconds = 20

// shipped are the flags of the shipped Deployment that say what it does.
var shipped = []string{"--leader-elect"}

// startProgram installs the rights of the controller and starts it.
func startProgram(ctx context.Context, plane *controlplane.ControlPlane, path string) (*program, error) {
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
	process, err := scenario.StartControllerAs(plane, scenario.ControllerName, path, kubeconfig, []string{"GOGC="}, args...)
	if err != nil {
		return nil, err
	}
	return &program{Process: process, metrics: address, began: began}, nil
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

// usage is what a process has used.
type usage struct {
	cpu  time.Duration
	peak int64 // bytes
}

func (p *program) usage() (usage, error) {
	cpu, err := cpuOf(p.PID())
	if err != nil {
		return usage{}, err
	}
	peak, err := peakOf(p.PID())
	return usage{cpu, peak}, err
}

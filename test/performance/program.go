// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// program is the controller as a process of its own, with the rights, flags and
// environment that are shipped, but no limits.
type program struct {
	*controlplane.Process
	metrics string    // the address of its metrics
	began   time.Time // when it was started last
}

// shipped are the flags of the shipped Deployment that say what it does.
var shipped = []string{"--leader-elect", "--leader-election-release-on-cancel"}

// startProgram installs the rights of the controller and starts it, with more flags
// beside the shipped ones.
func startProgram(ctx context.Context, plane *controlplane.ControlPlane, path string, more ...string) (*program, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--metrics-bind-address=" + address, "--metrics-secure=false"}, shipped...)
	began := time.Now()
	process, err := scenario.StartController(ctx, plane, path, nil, append(args, more...)...)
	if err != nil {
		return nil, err
	}
	return &program{Process: process, metrics: address, began: began}, nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
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

// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

const (
	loopback = "127.0.0.1"
	// The ports are below the range that the kernel uses for outgoing connections.
	// Otherwise such a connection could take a port between its choice and its use.
	firstPort = 15000
	lastPort  = 31999
)

// ports reserves free loopback ports. No other control plane on the machine can take a
// reserved port until release.
type ports struct {
	mu    sync.Mutex // parts are started in parallel
	locks []*os.File
}

// others are the ports of programs that callers start in addition to control planes.
var others ports

// FreePort returns a loopback port on which nothing listens. No control plane and no
// other caller takes it until this process ends.
func FreePort() (int, error) { return others.take() }

// FreeAddress returns an address on loopback with a FreePort.
func FreeAddress() (string, error) {
	port, err := FreePort()
	return net.JoinHostPort(loopback, strconv.Itoa(port)), err
}

// take reserves one port.
func (p *ports) take() (int, error) {
	dir := filepath.Join(os.TempDir(), "rollout-controlplane.ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, fmt.Errorf("make the folder of reserved ports: %w", err)
	}
	for range 500 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		lock, err := lockFile(filepath.Join(dir, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if portIsFree(port) {
			p.keep(lock)
			return port, nil
		}
		_ = lock.Close()
	}
	return 0, errors.New("found no free port on loopback")
}

func (p *ports) keep(lock *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.locks = append(p.locks, lock)
}

// takeAll reserves a port for each variable.
func (p *ports) takeAll(places ...*int) error {
	for _, place := range places {
		port, err := p.take()
		if err != nil {
			return err
		}
		*place = port
	}
	return nil
}

func (p *ports) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, lock := range p.locks {
		_ = os.Remove(lock.Name())
		_ = lock.Close()
	}
	p.locks = nil
}

func portIsFree(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}

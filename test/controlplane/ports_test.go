// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"syscall"
	"testing"
)

func TestRegistryTakesAnotherPortIfOneIsNoLongerFree(t *testing.T) {
	occupied, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	first := opened(t, func() (int, error) { return occupied, nil })
	ports := []int{occupied, occupied}
	second := opened(t, func() (int, error) {
		if len(ports) == 0 {
			return FreePort()
		}
		port := ports[0]
		ports = ports[1:]
		return port, nil
	})
	if second.Host() == first.Host() {
		t.Errorf("both have the address %s", first.Host())
	}

	tries := 0
	_, err = openRegistry(func() (int, error) { tries++; return occupied, nil })
	if !errors.Is(err, syscall.EADDRINUSE) || tries != mostPorts {
		t.Errorf("it gave up after %d tries with %v, want %d tries", tries, err, mostPorts)
	}
}

func opened(t *testing.T, take func() (int, error)) *Registry {
	t.Helper()
	r, err := openRegistry(take)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.GoAway() })
	return r
}

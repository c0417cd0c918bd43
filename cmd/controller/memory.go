// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// namespaceMemory is the flag that limits what one namespace has in the caches.
	namespaceMemory = "namespace-memory"
	// memoryOfTenants is its default for tenants that are kept apart: what several hundred
	// Rollouts with full histories take.
	memoryOfTenants = 8 << 20
)

// memory is a number of bytes, as a quantity of Kubernetes.
type memory int

// Set implements flag.Value.
func (m *memory) Set(text string) error {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("it must be a quantity such as 8Mi: %w", err)
	}
	bytes := quantity.Value()
	if bytes < 0 || bytes > math.MaxInt32 {
		return fmt.Errorf("it must be from 0 to 2Gi")
	}
	*m = memory(bytes)
	return nil
}

// String implements flag.Value.
func (m *memory) String() string { return resource.NewQuantity(int64(*m), resource.BinarySI).String() }

// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
)

// mostConfigs is for how many repositories it is remembered that they have the config.
const mostConfigs = 1024

// configs are the repositories that have the config of reports. Without this, a request
// more would be needed for each report. The zero value is ready for use.
type configs struct {
	mu    sync.Mutex
	known map[string]bool
}

func (c *configs) has(repository name.Repository) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[repository.Name()]
}

func (c *configs) set(repository name.Repository, has bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !has {
		delete(c.known, repository.Name())
		return
	}
	if c.known == nil || len(c.known) >= mostConfigs {
		c.known = map[string]bool{}
	}
	c.known[repository.Name()] = true
}

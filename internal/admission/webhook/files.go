// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// files reads the certificate from files that another program writes. It reads them again
// when they change.
type files struct {
	options Options

	mu      sync.Mutex
	watcher *certwatcher.CertWatcher
}

// Start reads the files until ctx ends. It returns an error if it cannot use them,
// because the mount that they come from must exist before the container starts.
func (f *files) Start(ctx context.Context) error {
	watcher, err := certwatcher.New(f.path(f.options.CertName, "tls.crt"), f.path(f.options.KeyName, "tls.key"))
	if err != nil {
		return fmt.Errorf("read the webhook's certificate: %w", err)
	}
	f.mu.Lock()
	f.watcher = watcher
	f.mu.Unlock()
	return watcher.Start(ctx)
}

func (f *files) path(name, otherwise string) string {
	if name == "" {
		name = otherwise
	}
	return filepath.Join(f.options.CertPath, name)
}

// Certificate returns the certificate that was read last.
func (f *files) Certificate() (*tls.Certificate, error) {
	f.mu.Lock()
	watcher := f.watcher
	f.mu.Unlock()
	if watcher == nil {
		return nil, errors.New("the files have not been read yet")
	}
	return watcher.GetCertificate(nil)
}

// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// NeedLeaderElection returns false: the API server may call any replica.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves while the webhook is installed, until ctx ends. It returns an error if it
// cannot listen.
func (s *Server) Start(ctx context.Context) error {
	for {
		if _, installed := s.configuration.Get(); installed {
			if err := s.serveWhileInstalled(ctx); err != nil {
				return err
			}
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// look makes Start check whether the webhook is installed.
func (s *Server) look() {
	select {
	case s.wake <- struct{}{}:
	default: // a check is already due
	}
}

func (s *Server) serveWhileInstalled(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()
	for {
		select {
		case err := <-ended:
			return err
		case <-s.wake:
			if _, installed := s.configuration.Get(); !installed {
				stop()
			}
		}
	}
}

// serve listens until ctx ends, with the certificate that is current at that time.
func (s *Server) serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := webhook.NewServer(webhook.Options{Host: s.options.Host, Port: s.options.Port, TLSOpts: []func(*tls.Config){s.secure}})
	server.Register(Path, limit(&webhook.Admission{Handler: s.handler}))
	s.setStarted(server.StartedChecker())
	defer s.setStarted(nil)

	var err, providing error
	var both sync.WaitGroup
	both.Go(func() { defer stop(); providing = s.certificates.Start(ctx) })
	both.Go(func() { defer stop(); err = server.Start(ctx) })
	both.Wait()
	if err := errors.Join(err, providing); err != nil {
		return fmt.Errorf("serve the webhook: %w", err)
	}
	return nil
}

func (s *Server) secure(c *tls.Config) {
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificates.Certificate() }
	if !s.options.EnableHTTP2 {
		c.NextProtos = []string{"http/1.1"}
	}
}

func (s *Server) setStarted(started healthz.Checker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = started
}

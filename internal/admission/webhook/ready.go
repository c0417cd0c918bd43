// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/fluxrollouts/rollout-controller/internal/admission/certificates"
)

// Ready is a readiness check. If the webhook is installed, it must be served with a
// certificate that the API server trusts.
func (s *Server) Ready(request *http.Request) error {
	select {
	case <-s.configuration.Known():
	default:
		return errors.New("it is not known yet whether the webhook is installed")
	}
	if _, installed := s.configuration.Get(); !installed {
		return nil
	}
	served, err := s.certificates.Certificate()
	if err != nil {
		return fmt.Errorf("the webhook has no certificate: %w", err)
	}
	called := s.configuration.Webhook()
	if called == nil {
		return errors.New("the webhook's configuration does not name it")
	}
	host, err := certificates.Host(called.ClientConfig)
	if err != nil {
		return err
	}
	if err := certificates.Trusted(served, called.ClientConfig.CABundle, host, s.clock.Now()); err != nil {
		return fmt.Errorf("the API server does not trust the webhook's certificate: %w", err)
	}
	return s.listens(request)
}

func (s *Server) listens(request *http.Request) error {
	s.mu.Lock()
	started := s.started
	s.mu.Unlock()
	if started == nil {
		return errors.New("the webhook is not served yet")
	}
	return started(request)
}

// SPDX-License-Identifier: Apache-2.0

// Package webhook answers the API server when it asks which Deployments to pause. It
// listens only while a configuration makes the API server ask.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fluxrollouts/rollout-controller/internal/admission"
	"github.com/fluxrollouts/rollout-controller/internal/admission/certificates"
)

// Path is the URL path of the webhook.
const Path = "/mutate-apps-v1-deployment"

// Options configure how the webhook is served.
type Options struct {
	// Host is the address to listen on. Empty means every address.
	Host string
	// Port is the TCP port to listen on. 0 means 9443.
	Port int
	// CertPath is the folder of a certificate that another program provides. If it is
	// empty, the controller makes and renews one.
	CertPath string
	// CertName and KeyName are the files in CertPath. Empty means tls.crt and tls.key.
	CertName, KeyName string
	// EnableHTTP2 enables HTTP/2 in addition.
	EnableHTTP2 bool
	// Clock is the clock. Nil means the real one.
	Clock clock.Clock
}

// Server serves the webhook while it is installed. It is a runnable of a manager and runs
// on every replica.
type Server struct {
	configuration admission.Configuration
	handler       ctrladmission.Handler
	options       Options
	certificates  source
	clock         clock.Clock
	wake          chan struct{}

	mu      sync.Mutex
	started healthz.Checker // nil while it is not served
}

// source provides the certificate.
type source interface {
	// Start provides the certificate until ctx ends.
	Start(ctx context.Context) error
	// Certificate returns the certificate to serve now, or why there is none.
	Certificate() (*tls.Certificate, error)
}

// Add adds the webhook and its readiness check to the manager. It asks the API server for
// the user name of the controller, because the rule does not change the controller's own
// writes. If that is refused, only the webhook's configuration exempts the controller.
func Add(ctx context.Context, mgr ctrl.Manager, installed *admission.Installed, names admission.Names, options Options) (*Server, error) {
	who, err := authenticationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	s := &Server{
		configuration: installed.ServeWebhook(),
		handler: &Handler{
			Coordinations: mgr.GetClient(),
			Rule:          admission.Rule{Controller: self(ctx, who.SelfSubjectReviews())},
			Decoder:       ctrladmission.NewDecoder(mgr.GetScheme()),
		},
		options: options,
		clock:   options.Clock,
		wake:    make(chan struct{}, 1),
	}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	if options.CertPath != "" {
		s.certificates = &files{options: options}
	} else {
		rotator, err := certificates.NewRotator(mgr.GetConfig(), mgr.GetHTTPClient(), names, s.clock, mgr.GetLogger().WithName("certificates"))
		if err != nil {
			return nil, err
		}
		s.configuration.OnChange(rotator.Look)
		s.certificates = rotator
	}
	s.configuration.OnChange(s.look)
	if err := errors.Join(mgr.Add(s), mgr.AddReadyzCheck("webhook", s.Ready)); err != nil {
		return nil, fmt.Errorf("add the webhook: %w", err)
	}
	return s, nil
}

// self returns the user name of the controller. It is empty if the API server does not
// report it.
func self(ctx context.Context, reviews authenticationclient.SelfSubjectReviewInterface) string {
	review, err := reviews.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("the controller does not know its own user name", "reason", err.Error())
		return ""
	}
	return review.Status.UserInfo.Username
}

// SPDX-License-Identifier: Apache-2.0

package imagescanner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/patch"
	"github.com/go-logr/logr/funcr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// fieldManager is the name under which the original writes.
const fieldManager = "image-reflector-controller"

// silent drops what it is given; a logger without a sink would be replaced.
var silent = funcr.New(func(string, string) {}, funcr.Options{})

var ownedConditions = []string{meta.ReadyCondition, meta.ReconcilingCondition, meta.StalledCondition}

// Scanner scans registries until it is stopped.
type Scanner struct {
	// direct reads and writes past any cache.
	direct client.Client
	cancel context.CancelFunc
	ended  chan struct{}
	err    error

	// mu lets one object be worked on at a time, by the watches or by ScanNow.
	mu sync.Mutex
	// tags are those found by the last scan of each canonical image name.
	tags map[string][]string
}

// Start scans with the given version of the image API, once its CRDs are there;
// it does not wait for them. The Scanner outlives ctx.
func Start(_ context.Context, restConfig *rest.Config, version string) (*Scanner, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), AddToScheme(scheme, version)); err != nil {
		return nil, fmt.Errorf("register the image kinds: %w", err)
	}
	direct, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Scanner{direct: direct, cancel: cancel, ended: make(chan struct{}), tags: map[string][]string{}}
	go func() {
		defer close(s.ended)
		s.err = s.run(ctx, restConfig, scheme)
	}()
	return s, nil
}

// Stop ends the scanning and waits for what is under way.
func (s *Scanner) Stop() {
	s.cancel()
	<-s.ended
}

func (s *Scanner) run(ctx context.Context, restConfig *rest.Config, scheme *runtime.Scheme) error {
	if !s.awaitCRDs(ctx) {
		return nil
	}
	yes := true
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:     scheme,
		Logger:     silent,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := s.watchRepositories(mgr); err != nil {
		return fmt.Errorf("watch image repositories: %w", err)
	}
	if err := s.watchPolicies(mgr); err != nil {
		return fmt.Errorf("watch image policies: %w", err)
	}
	return mgr.Start(ctx)
}

// awaitCRDs waits until the image kinds are served, or returns false at the end.
func (s *Scanner) awaitCRDs(ctx context.Context) bool {
	for ctx.Err() == nil {
		repositories := s.direct.List(ctx, &imagev1.ImageRepositoryList{}, client.Limit(1))
		policies := s.direct.List(ctx, &imagev1.ImagePolicyList{}, client.Limit(1))
		if repositories == nil && policies == nil {
			return true
		}
		pause := 200 * time.Millisecond
		if !apimeta.IsNoMatchError(repositories) {
			pause = time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return false
}

// ScanNow scans every repository and applies every policy, without waiting for
// an interval, and returns when the statuses are written. Suspended objects
// stay as they are.
func (s *Scanner) ScanNow(ctx context.Context) error {
	var repositories imagev1.ImageRepositoryList
	if err := s.direct.List(ctx, &repositories); err != nil {
		return fmt.Errorf("list image repositories: %w", err)
	}
	var errs []error
	for i := range repositories.Items {
		_, err := s.scanOne(ctx, client.ObjectKeyFromObject(&repositories.Items[i]), true)
		errs = append(errs, err)
	}
	var policies imagev1.ImagePolicyList
	if err := s.direct.List(ctx, &policies); err != nil {
		return fmt.Errorf("list image policies: %w", err)
	}
	for i := range policies.Items {
		_, err := s.applyOne(ctx, client.ObjectKeyFromObject(&policies.Items[i]))
		if !errors.Is(err, errNoVersion) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func patchOptions() []patch.Option {
	return []patch.Option{
		patch.WithOwnedConditions{Conditions: ownedConditions},
		patch.WithFieldOwner(fieldManager),
	}
}

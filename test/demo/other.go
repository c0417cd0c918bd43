// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// environment is one that the application also has.
type environment struct {
	// namespace in which it is.
	namespace string
	// actor is its name in what is printed.
	actor actor
}

// otherApp returns the application in the other environment.
func (s *session) otherApp() scenario.App {
	app := s.App
	app.Namespace = s.other.namespace
	return app
}

// scanOther makes the other environment look for releases.
func (s *session) scanOther(ctx context.Context) error {
	return s.otherCluster.plane.RequestReconcile(ctx, s.otherApp().ImageRepository(s.plane.Registry.Host()))
}

// watchOther shows what the Rollout of the other environment does, too.
func (s *session) watchOther(ctx context.Context) (ended func(), err error) {
	s.beyond = newObserver(func(lines ...line) {
		for i := range lines {
			lines[i].actor = s.other.actor
		}
		s.printer.show(lines...)
	})
	at := s.otherCluster.plane
	changes, ended, err := watch(ctx, at.RESTConfig(), at.Client().Scheme(), s.other.namespace, []client.Object{&v1alpha1.Rollout{}})
	if err != nil {
		return nil, err
	}
	go s.beyond.run(ctx, changes)
	return ended, nil
}

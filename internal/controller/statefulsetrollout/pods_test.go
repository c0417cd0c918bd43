// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// slowSource has its first list when the test sends it.
type slowSource struct{ listed chan error }

func (s slowSource) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

func (s slowSource) WaitForSync(ctx context.Context) error {
	select {
	case err := <-s.listed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watching counts the sources that a controller watches.
type watching struct {
	controller.Controller
	sources int
}

func (w *watching) Watch(source.Source) error {
	w.sources++
	return nil
}

type indexless struct{ cache.Cache }

func (indexless) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

// A list of pods that takes longer than a pass waits is requested only once.
func TestPodsAreWatchedOnceHoweverLongTheirListTakes(t *testing.T) {
	g := NewWithT(t)
	watched, pods := &watching{}, slowSource{listed: make(chan error)}
	w := &podWatch{cache: indexless{}, controller: watched, source: func() source.SyncingSource { return pods }}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		g.Expect(w.begin(impatient)).To(MatchError(context.Canceled))
	}
	g.Expect(watched.sources).To(Equal(1))

	close(pods.listed)
	g.Expect(w.begin(t.Context())).To(Succeed())
	g.Expect(w.begin(t.Context())).To(Succeed())
	g.Expect(watched.sources).To(Equal(1))
}

func TestWatchOnPodsThatCannotBeBeginsAgain(t *testing.T) {
	g := NewWithT(t)
	watched, pods := &watching{}, slowSource{listed: make(chan error, 1)}
	w := &podWatch{cache: indexless{}, controller: watched, source: func() source.SyncingSource { return pods }}
	pods.listed <- errors.New("the informer has stopped")
	g.Expect(w.begin(t.Context())).To(MatchError(ContainSubstring("the informer has stopped")))
	close(pods.listed)
	g.Expect(w.begin(t.Context())).To(Succeed())
	g.Expect(watched.sources).To(Equal(2))
}

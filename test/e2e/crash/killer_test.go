// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/stage"
)

// killer kills the controller again and again, and starts it again each time.
type killer struct {
	plane  *stage.Plane
	random *rand.Rand
	client client.WithWatch
	// halfway counts the kills between the record of a promotion and the
	// writing of all its targets.
	halfway int
}

func newKiller(plane *stage.Plane, random *rand.Rand) (*killer, error) {
	c, err := client.NewWithWatch(plane.RESTConfig(), client.Options{Scheme: plane.Client().Scheme()})
	return &killer{plane: plane, random: random, client: c}, err
}

// kill kills the controller a number of times: every other time at any moment
// of its life, its start included, and else right after it has written the
// status of some Rollout, when there is the most to lose.
func (k *killer) kill(ctx context.Context, times int) error {
	for n := range times {
		var err error
		if n%2 == 0 {
			k.wait(4 * time.Second)
		} else {
			err = k.awaitWrite(ctx)
			k.wait(20 * time.Millisecond)
		}
		if err != nil {
			return err
		}
		if err := k.restart(ctx); err != nil {
			return fmt.Errorf("kill number %d: %w", n+1, err)
		}
	}
	return nil
}

// wait waits for a random time that is shorter than the given one.
func (k *killer) wait(most time.Duration) { time.Sleep(time.Duration(k.random.Int64N(int64(most)))) }

// awaitWrite waits until a Rollout changes.
func (k *killer) awaitWrite(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	rollouts := &v1alpha1.RolloutList{}
	if err := k.client.List(ctx, rollouts); err != nil {
		return fmt.Errorf("list Rollouts: %w", err)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: rollouts.ResourceVersion}}
	watch, err := k.client.Watch(ctx, rollouts, from)
	if err != nil {
		return fmt.Errorf("watch Rollouts: %w", err)
	}
	defer watch.Stop()
	select {
	case <-watch.ResultChan():
	case <-ctx.Done():
	}
	return nil
}

func (k *killer) restart(ctx context.Context) error {
	if err := k.plane.Controller.Kill(); err != nil {
		return err
	}
	if err := k.look(ctx); err != nil {
		return err
	}
	return k.plane.Controller.Start(ctx)
}

// look notes in which state the dead controller has left the Rollouts.
func (k *killer) look(ctx context.Context) error {
	rollouts, repositories := &v1alpha1.RolloutList{}, &sourcev1.OCIRepositoryList{}
	if err := k.client.List(ctx, rollouts); err != nil {
		return fmt.Errorf("list Rollouts: %w", err)
	}
	if err := k.client.List(ctx, repositories); err != nil {
		return fmt.Errorf("list OCIRepositories: %w", err)
	}
	carried := map[client.ObjectKey]string{}
	for i := range repositories.Items {
		if ref := repositories.Items[i].Spec.Reference; ref != nil {
			carried[client.ObjectKeyFromObject(&repositories.Items[i])] = ref.Tag
		}
	}
	for i := range rollouts.Items {
		rollout := &rollouts.Items[i]
		if current := rollout.Current(); current != nil && current.Version.Tag != carried[client.ObjectKeyFromObject(rollout)] {
			k.halfway++
			return nil
		}
	}
	return nil
}

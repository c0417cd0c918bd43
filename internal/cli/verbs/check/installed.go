// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

// installed is what of the controller is in a cluster.
type installed struct {
	// instances are the Deployments of the controller; instancesErr is why they could not be
	// listed.
	instances    []installation.Instance
	instancesErr error
	// definitions are those that are in the cluster and that this program knows, sorted by
	// name; definitionsErr is why one of them could not be read.
	definitions    []definition
	definitionsErr error
}

// readInstalled reads everything at once.
func readInstalled(ctx context.Context, open program.Cluster) installed {
	var found installed
	var group sync.WaitGroup
	group.Go(func() { found.instances, found.instancesErr = program.InstancesIn(ctx, open) })
	group.Go(func() { found.definitions, found.definitionsErr = definitionsIn(ctx, open) })
	group.Wait()
	return found
}

// definitionsIn reads the definitions one by one: a list has those of all other programs,
// which are large.
func definitionsIn(ctx context.Context, open program.Cluster) ([]definition, error) {
	names := slices.Sorted(maps.Keys(knownDefinitions()))
	found, errs := make([]definition, len(names)), make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { errs[i] = open.Client.Get(ctx, client.ObjectKey{Name: name}, &found[i]) })
	}
	group.Wait()
	var all []definition
	for i := range names {
		switch {
		case errs[i] == nil:
			all = append(all, found[i])
		case !apierrors.IsNotFound(errs[i]):
			return nil, errs[i]
		}
	}
	return all, nil
}

// differences compares the definitions with those that this program knows, and leaves out
// those that are equal.
func (i installed) differences() []difference {
	var all []difference
	for n := range i.definitions {
		if d := compare(knownDefinitions()[i.definitions[n].Name], &i.definitions[n]); !d.none() {
			all = append(all, d)
		}
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

// keyPlace is where the keys of a controller are.
type keyPlace struct {
	// namespace is that of the controller.
	namespace string
	// clusterName is how reports call the cluster, and controllerName how the flag of the
	// controller does; empty if it has none.
	clusterName, controllerName string
	// signing and trusted are the names of the Secrets that the flags of the controller
	// give. Without a flag, signing is empty, and trusted is the usual name.
	signing, trusted string
	// isFound is true if there is a Deployment of the controller.
	isFound, trusts bool
}

// findPlace finds the controller: in the namespace that the user gives, or else wherever it
// is.
func findPlace(ctx context.Context, p *program.Program, open program.Cluster) (keyPlace, error) {
	given := p.Kubeconfig.Namespace
	isGiven := given != nil && *given != ""
	all, err := program.InstancesIn(ctx, open)
	if isGiven {
		all = slices.DeleteFunc(all, func(i installation.Instance) bool { return i.Namespace != *given })
	}
	namespaces := namespacesOf(all)
	switch {
	case len(namespaces) == 1:
		return placeOf(all), nil
	case isGiven: // the controller may follow, or may not be read
		return keyPlace{namespace: *given, trusted: trustedSecret}, nil
	case err != nil:
		return keyPlace{}, fmt.Errorf("say the namespace of the controller, with -n: its Deployment could not be found: %w", err)
	case len(namespaces) == 0:
		return keyPlace{}, errors.New("say the namespace of the controller, with -n: this cluster has no Deployment of it")
	}
	return keyPlace{}, fmt.Errorf("say which controller is meant, with -n: there is one in each of the namespaces %s", strings.Join(namespaces, ", "))
}

func namespacesOf(all []installation.Instance) []string {
	var names []string
	for _, i := range all {
		names = append(names, i.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// placeOf returns what the instances of a namespace say together. Those that share the
// Rollouts of a cluster have the same keys.
func placeOf(all []installation.Instance) keyPlace {
	at := keyPlace{namespace: all[0].Namespace, isFound: true}
	for _, i := range all {
		at.controllerName = cmp.Or(at.controllerName, i.ClusterName)
		at.signing, at.trusted = cmp.Or(at.signing, i.SigningKeySecret), cmp.Or(at.trusted, i.TrustedKeysSecret)
	}
	at.clusterName, at.trusts = at.controllerName, at.trusted != ""
	at.trusted = cmp.Or(at.trusted, trustedSecret)
	return at
}

// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
)

// mostUpstreamNamespaces is in how many other namespaces upstreams are followed.
const mostUpstreamNamespaces = 64

// followUpstreams reads the Environments of the namespaces that upstreams name, and of
// those that these name. Each of them may admit a namespace by its labels.
func (t *taker) followUpstreams(ctx context.Context, namespace string, objects []client.Object) {
	known := map[string]bool{namespace: true}
	for next := unknownNamespaces(objects, known); len(next) > 0; next = unknownNamespaces(objects, known) {
		lists := make([][]client.Object, len(next))
		for i, name := range next {
			known[name] = true
			t.group.Go(func() { lists[i] = t.environmentsIn(ctx, name) })
			t.get(ctx, namespaceOf(name))
		}
		t.wait()
		for _, list := range lists {
			objects = append(objects, list...)
		}
	}
}

// unknownNamespaces returns the namespaces that upstreams name and that are not known yet.
func unknownNamespaces(objects []client.Object, known map[string]bool) []string {
	var all []string
	found := map[string]bool{}
	for _, o := range objects {
		e, is := o.(*environmentsv1.Environment)
		if !is {
			continue
		}
		for _, name := range upstreamNamespaces(e) {
			if !known[name] && !found[name] && len(known)+len(found) <= mostUpstreamNamespaces {
				found[name] = true
				all = append(all, name)
			}
		}
	}
	return all
}

// environmentsIn lists the Environments of another namespace.
func (t *taker) environmentsIn(ctx context.Context, namespace string) []client.Object {
	list := &environmentsv1.EnvironmentList{}
	objects, err := t.pages(ctx, client.InNamespace(namespace), list)
	if err == nil || isAbsent(err) {
		t.took(list, objects, err)
		return objects
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed(t.snapshot.FailIn(namespace, list, err))
	return nil
}

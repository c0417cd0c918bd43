// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// api sends prepared requests without a client-side rate limit, and counts them. It does
// not decode the answers of the API server.
type api struct {
	rest rest.Interface

	mu     sync.Mutex
	counts controlplane.Requests
}

// resource is a kind of object in a URL.
type resource struct{ group, version, name string }

// The resources that the benchmark writes.
var (
	namespaces        = resource{"", "v1", "namespaces"}
	events            = resource{"", "v1", "events"}
	imageRepositories = resource{"image.toolkit.fluxcd.io", "v1", "imagerepositories"}
	imagePolicies     = resource{"image.toolkit.fluxcd.io", "v1", "imagepolicies"}
	ociRepositories   = resource{"source.toolkit.fluxcd.io", "v1", "ocirepositories"}
	kustomizations    = resource{"kustomize.toolkit.fluxcd.io", "v1", "kustomizations"}
	rollouts          = resource{"kuberik.com", "v1alpha1", "rollouts"}
	gates             = resource{"kuberik.com", "v1alpha1", "rolloutgates"}
	healthChecks      = resource{"kuberik.com", "v1alpha1", "healthchecks"}
	environments      = resource{"environments.kuberik.com", "v1alpha1", "environments"}
)

func newAPI(config *rest.Config) (*api, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.ContentType = -1, runtime.ContentTypeJSON
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	transport, err := patient(config)
	if err != nil {
		return nil, fmt.Errorf("make a bare client: %w", err)
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, &http.Client{Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("make a bare client: %w", err)
	}
	return &api{rest: client, counts: controlplane.Requests{}}, nil
}

// patient returns a transport that keeps connections that are silent for long. client-go
// closes them after 45 seconds. A machine that stops for a minute must not end an hour of
// measurements.
func patient(config *rest.Config) (http.RoundTripper, error) {
	security, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare TLS: %w", err)
	}
	return rest.HTTPWrappersForConfig(config, &http.Transport{TLSClientConfig: security, ForceAttemptHTTP2: true})
}

// create creates an object with a POST request.
func (a *api) create(ctx context.Context, r resource, namespace string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return a.do(ctx, http.MethodPost, r, namespace, "", "", a.rest.Post().Body(body), "kustomize-controller")
}

// patch sends a merge patch of an object or of its status.
func (a *api) patch(ctx context.Context, r resource, namespace, name, subresource, manager string, body []byte) error {
	return a.do(ctx, http.MethodPatch, r, namespace, name, subresource, a.rest.Patch(types.MergePatchType).Body(body), manager)
}

func (a *api) do(ctx context.Context, verb string, r resource, namespace, name, subresource string, request *rest.Request, manager string) error {
	_, err := a.raw(ctx, verb, r, namespace, name, subresource, request, manager)
	return err
}

func (a *api) raw(ctx context.Context, verb string, r resource, namespace, name, subresource string, request *rest.Request, manager string) ([]byte, error) {
	a.mu.Lock()
	a.counts[controlplane.Request{Verb: verb, Group: r.group, Resource: r.name, Subresource: subresource}]++
	a.mu.Unlock()
	request.AbsPath(r.path(namespace, name, subresource)).Param("fieldManager", manager)
	answer, err := request.DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s %s %s/%s: %w", strings.ToLower(verb), r.name, namespace, name, err)
	}
	return answer, nil
}

func (r resource) path(namespace, name, subresource string) string {
	elements := []string{"/apis", r.group, r.version}
	if r.group == "" {
		elements = []string{"/api", r.version}
	}
	if namespace != "" {
		elements = append(elements, "namespaces", namespace)
	}
	for _, element := range []string{r.name, name, subresource} {
		if element != "" {
			elements = append(elements, element)
		}
	}
	return strings.Join(elements, "/")
}

// sent returns the number of the requests sent so far.
func (a *api) sent() controlplane.Requests {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.counts)
}

// statusPatch returns a merge patch that sets fields of a status.
func statusPatch(status any) ([]byte, error) {
	return json.Marshal(map[string]any{"status": status})
}

// specPatch returns a merge patch that sets fields of a spec.
func specPatch(spec any) ([]byte, error) {
	return json.Marshal(map[string]any{"spec": spec})
}

// forEach calls do for each number below n, in order and by several workers. It returns
// the first error.
func forEach(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range numbers {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		select {
		case numbers <- i:
		case <-ctx.Done():
		}
	}
	close(numbers)
	group.Wait()
	return context.Cause(ctx)
}

// SPDX-License-Identifier: Apache-2.0

// Package live reads objects of any kind from the API server and not from a cache: health
// counts for a release only if it was observed after that release was applied.
package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fluxrollouts/rollout-controller/internal/jsonlist"
)

// longestObject is how many bytes of JSON are read of an object. The API server stores
// less.
const longestObject = 8 << 20

// Objects reads objects as JSON. Objects may be large, and lists contain many: only one
// object at a time is in memory.
type Objects struct{ api rest.Interface }

// NewObjects returns Objects that use the given client.
func NewObjects(config *rest.Config, client *http.Client) (*Objects, error) {
	api, err := rest.UnversionedRESTClientForConfigAndClient(dynamic.ConfigFor(config), client)
	if err != nil {
		return nil, fmt.Errorf("create a client for objects of any kind: %w", err)
	}
	return &Objects{api}, nil
}

// Get returns an object. If it does not exist, the error is NotFound.
func (o *Objects) Get(ctx context.Context, kind *meta.RESTMapping, key types.NamespacedName) (json.RawMessage, error) {
	if isNamespaced(kind) && key.Namespace == "" {
		return nil, apierrors.NewNotFound(kind.Resource.GroupResource(), key.Name) // this path could list objects
	}
	body, err := o.request(kind, key.Namespace).Name(key.Name).Stream(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // callers ask what error it is
	}
	defer func() { _ = body.Close() }()
	object, err := io.ReadAll(io.LimitReader(body, longestObject))
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind.Resource.Resource, key, err)
	}
	return object, nil
}

// Select calls do for each object of a kind and namespace that a selector selects. It asks
// for a page of objects at a time, and for no more pages after an error of do, which it
// returns. The argument of do is valid until do returns.
func (o *Objects) Select(ctx context.Context, kind *meta.RESTMapping, namespace string, selector labels.Selector, page int64,
	do func(json.RawMessage) error,
) error {
	for next := ""; ; {
		options := &metav1.ListOptions{LabelSelector: selector.String(), Limit: page, Continue: next}
		body, err := o.request(kind, namespace).VersionedParams(options, metav1.ParameterCodec).Stream(ctx)
		if err != nil {
			return err //nolint:wrapcheck // callers ask what error it is
		}
		metadata, err := jsonlist.Each(body, do)
		_ = body.Close()
		if err != nil {
			return fmt.Errorf("list %s: %w", kind.Resource.Resource, err)
		}
		if next = metadata.Continue; next == "" {
			return nil
		}
	}
}

func (o *Objects) request(kind *meta.RESTMapping, namespace string) *rest.Request {
	path := []string{"/apis", kind.Resource.Group, kind.Resource.Version}
	if kind.Resource.Group == "" {
		path = []string{"/api", kind.Resource.Version}
	}
	return o.api.Get().AbsPath(path...).NamespaceIfScoped(namespace, isNamespaced(kind)).Resource(kind.Resource.Resource)
}

func isNamespaced(kind *meta.RESTMapping) bool {
	return kind.Scope.Name() == meta.RESTScopeNameNamespace
}

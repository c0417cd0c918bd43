// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Left makes a List include objects that cannot be fully decoded, with the parts that can
// be read: their metadata, and the references in their spec. Without it, such a List
// fails.
type Left struct{}

// ApplyToList does nothing.
func (Left) ApplyToList(*client.ListOptions) {}

// NewClient returns a client that returns marked objects only on request.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	inner, err := client.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return Client{inner}, nil
}

// Client reads objects, and returns an error for marked ones.
type Client struct{ client.Client }

// Get returns an [Error] if the object is marked, in addition to the readable parts.
func (c Client) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	return Of(object)
}

// List returns an [Error] if one of the objects is marked, unless it is called with
// [Left].
func (c Client) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.Client.List(ctx, list, options...); err != nil {
		return err
	}
	for _, option := range options {
		if _, left := option.(Left); left {
			return nil
		}
	}
	return apimeta.EachListItem(list, func(o runtime.Object) error {
		if object, ok := o.(client.Object); ok {
			return Of(object)
		}
		return nil
	})
}

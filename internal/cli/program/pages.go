// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsMissing reports whether the API server does not serve a kind.
func IsMissing(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// PageSize is how many Rollouts are requested at a time. The first page is printed before
// the second is requested.
const PageSize = 500

// EachPage lists the objects of a kind in a namespace, page by page.
func EachPage[L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, from client.Reader, namespace string, with func(P)) error {
	for next := ""; ; {
		page := P(new(L))
		if err := from.List(ctx, page, client.InNamespace(namespace), client.Limit(PageSize), client.Continue(next)); err != nil {
			return err
		}
		with(page)
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package live reads objects from the API server and not from a cache: a decision that
// cannot be taken back rests on what is there now, and health counts for a release only if
// it was observed after that release was applied.
//
// All reads past the caches go through this package, because tenants write the objects.
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

	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

const (
	// longestObject is how many bytes of JSON are read of an object. The API server stores
	// less.
	longestObject = 8 << 20
	// large is the size from which objects take turns.
	large = 64 << 10
	// atOnce is how many bytes are read at once: what follows a small object in a list is
	// read together with it.
	atOnce = 32 << 10
)

// Objects reads objects as JSON. Objects may be large, lists contain many, and tenants
// write them: only one object of a list is in memory at a time, and only one large object
// of all that are read. Therefore a process has one Objects.
type Objects struct {
	api  rest.Interface
	turn chan struct{} // contains one element while a large object is in memory
}

// NewObjects returns Objects that use the given client.
func NewObjects(config *rest.Config, client *http.Client) (*Objects, error) {
	api, err := rest.UnversionedRESTClientForConfigAndClient(dynamic.ConfigFor(config), client)
	if err != nil {
		return nil, fmt.Errorf("create a client for objects of any kind: %w", err)
	}
	return &Objects{api: api, turn: make(chan struct{}, 1)}, nil
}

// Get calls do with an object, and returns its error. If the object does not exist, the
// error is NotFound. The argument of do is valid until do returns. do must not read other
// objects: a large one keeps its turn until then.
func (o *Objects) Get(ctx context.Context, kind *meta.RESTMapping, key types.NamespacedName, do func(json.RawMessage) error) error {
	if isNamespaced(kind) && key.Namespace == "" {
		return apierrors.NewNotFound(kind.Resource.GroupResource(), key.Name) // this path could list objects
	}
	return o.get(ctx, o.request(kind, key.Namespace).Name(key.Name), kind, do)
}

func (o *Objects) get(ctx context.Context, request *rest.Request, kind *meta.RESTMapping, do func(json.RawMessage) error) error {
	body, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	turns := &turns{ctx: ctx, body: body, turn: o.turn}
	defer turns.end()
	object, err := io.ReadAll(io.LimitReader(turns, longestObject))
	if err != nil {
		return fmt.Errorf("get %s: %w", kind.Resource.Resource, err)
	}
	return do(object)
}

// Select calls do for each object of a kind and namespace that a selector selects. It asks
// for a page of objects at a time, and for no more pages after an error of do, which it
// returns. What Get says of do applies here too.
func (o *Objects) Select(ctx context.Context, kind *meta.RESTMapping, namespace string, selector labels.Selector, page int64,
	do func(json.RawMessage) error,
) error {
	options := &metav1.ListOptions{LabelSelector: selector.String(), Limit: page}
	for {
		metadata, err := o.list(ctx, o.request(kind, namespace).VersionedParams(options, metav1.ParameterCodec), kind, do)
		if err != nil {
			return err
		}
		if options.Continue = metadata.Continue; options.Continue == "" {
			return nil
		}
	}
}

// list calls do for each object of one response.
func (o *Objects) list(ctx context.Context, request *rest.Request, kind *meta.RESTMapping, do func(json.RawMessage) error) (metav1.ListMeta, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer func() { _ = body.Close() }()
	turns := &turns{ctx: ctx, body: body, turn: o.turn}
	defer turns.end()
	metadata, err := unreadable.EachItem(turns, func(object json.RawMessage) error {
		defer turns.end()
		return do(object)
	})
	if err != nil {
		err = fmt.Errorf("list %s: %w", kind.Resource.Resource, err)
	}
	return metadata, err
}

// turns reads the response to a request. It waits for its turn before it reads more of an
// object than a small one has.
type turns struct {
	ctx  context.Context // of the request
	body io.Reader
	turn chan struct{}
	read int  // bytes of this object
	has  bool // the turn
}

// Read reads a part.
func (t *turns) Read(into []byte) (int, error) {
	if t.read >= large && !t.has {
		select {
		case t.turn <- struct{}{}:
			t.has = true
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		}
	}
	n, err := t.body.Read(into[:min(len(into), atOnce)])
	t.read += n
	return n, err
}

// end ends an object: what comes next has to wait for its own turn.
func (t *turns) end() {
	if t.read = 0; t.has {
		<-t.turn
		t.has = false
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

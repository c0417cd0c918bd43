// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/internal/cache"
)

// everywhere stands for all namespaces.
const everywhere = "*"

// memory has what was read, until something of that kind is written there. A pass reads a
// dozen lists, and few of them have changed since the pass before; a test looks at the same
// objects after each pass. Asking the API server each time was most of the work of the tests.
//
// It knows of writes through the client of [Main] and through those of managers. Where a
// manager runs, it remembers nothing: events and other things are written as well, by clients
// that it does not know.
type memory struct {
	mu      sync.Mutex
	shelves map[place]*shelf
	// changing are the namespaces where managers write.
	changing map[string]bool
}

// place is where objects of a kind are.
type place struct {
	kind      schema.GroupKind
	namespace string
}

// shelf has the answers about one place.
type shelf struct {
	// begun and ended count the writes: an answer is kept if there was none on its way.
	begun, ended int
	answers      map[string]answer
}

// answer is what was read. Its objects are shared, and nobody changes them.
type answer struct {
	objects []client.Object
	// version is the resourceVersion of a list.
	version string
	err     error
}

// view is what is kept of the objects that are read.
type view struct {
	name string
	keep func(any) (any, error)
}

var (
	// stored is an object as the API server returns it.
	stored = view{"stored", func(o any) (any, error) { return o, nil }}
	// cached is what the controller's cache keeps of an object.
	cached = view{"cached", cache.Options(cache.Setting{}).DefaultTransform}
)

// remembering is a client whose writes a memory knows of, and which answers from it.
type remembering struct {
	client.WithWatch

	memory *memory
}

// Get implements client.Reader.
func (r remembering) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return r.memory.get(ctx, r.WithWatch, stored, key, o, opts...)
}

// List implements client.Reader.
func (r remembering) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if options.FieldSelector != nil || options.Raw != nil || options.Limit > 0 {
		return r.WithWatch.List(ctx, list, opts...)
	}
	found := r.memory.list(ctx, r.WithWatch, stored, list, options)
	if found.err != nil {
		return found.err
	}
	return Indexes{}.fill(list, found, nil)
}

func newRemembering(live client.WithWatch) remembering {
	m := &memory{shelves: map[place]*shelf{}, changing: map[string]bool{}}
	return remembering{m.through(live), m}
}

// memoryOf returns the memory that knows of all writes of a client; nil if there is none.
func memoryOf(c client.Client) *memory {
	r, _ := c.(remembering)
	return r.memory
}

// through returns a client whose writes are noticed.
func (m *memory) through(live client.WithWatch) client.WithWatch {
	return interceptor.NewClient(live, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			defer m.writes(c, o, o.GetNamespace())()
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			defer m.writes(c, o, o.GetNamespace())()
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			defer m.writes(c, o, o.GetNamespace())()
			return c.Patch(ctx, o, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			defer m.writes(c, o, o.GetNamespace())()
			return c.Delete(ctx, o, opts...)
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			defer m.writes(c, o, (&client.DeleteAllOfOptions{}).ApplyOptions(opts).Namespace)()
			return c.DeleteAllOf(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			defer m.writesAnything()() // it has no kind that is easily known
			return c.Apply(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			defer m.writes(c, o, o.GetNamespace())()
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			defer m.writes(c, o, o.GetNamespace())()
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	})
}

// writes forgets what a write may change. The writer calls the returned function when the
// write has ended.
func (m *memory) writes(c client.Client, o client.Object, namespace string) (ended func()) {
	kind := kindOf(c, o)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.write(m.shelf(place{kind, namespace}), m.shelf(place{kind, everywhere}))
}

func (m *memory) writesAnything() (ended func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.write(slices.Collect(maps.Values(m.shelves))...)
}

func (m *memory) write(shelves ...*shelf) (ended func()) {
	for _, on := range shelves {
		on.begun++
		on.answers = nil
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, on := range shelves {
			on.ended++
		}
	}
}

// distrust makes the memory forget what it knows of a namespace, and remember nothing of it
// from now on.
func (m *memory) distrust(namespace string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changing[namespace] = true
}

// noticing makes the client of a manager one whose writes are noticed.
func (m *memory) noticing(newClient client.NewClientFunc) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		made, err := newClient(config, options)
		if m == nil || err != nil {
			return made, err
		}
		return m.through(unwatching{made}), nil
	}
}

// unwatching is the client of a manager, which watches through its cache.
type unwatching struct{ client.Client }

// Watch implements client.WithWatch.
func (unwatching) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.ErrUnsupported
}

// recall returns what was read before, or else reads it.
func (m *memory) recall(at place, question string, read func() answer) answer {
	if m == nil {
		return read()
	}
	known, found, begun := m.find(at, question)
	if found {
		return known
	}
	now := read()
	if now.err == nil || apierrors.IsNotFound(now.err) {
		m.keep(at, question, now, begun)
	}
	return now
}

func (m *memory) find(at place, question string) (known answer, found bool, begun int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	on := m.shelf(at)
	known, found = on.answers[question]
	if m.changing[at.namespace] || on.begun != on.ended {
		return answer{}, false, -1
	}
	return known, found, on.begun
}

func (m *memory) keep(at place, question string, known answer, begun int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	on := m.shelf(at)
	if on.begun != begun {
		return
	}
	if on.answers == nil {
		on.answers = map[string]answer{}
	}
	on.answers[question] = known
}

func (m *memory) shelf(at place) *shelf {
	if m.shelves[at] == nil {
		m.shelves[at] = &shelf{}
	}
	return m.shelves[at]
}

// get reads an object.
func (m *memory) get(ctx context.Context, c client.Client, of view, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	found := m.recall(place{kindOf(c, o), key.Namespace}, question(of, o, key.Name), func() answer {
		fresh := blank(o).(client.Object)
		err := c.Get(ctx, key, fresh, opts...)
		_, _ = of.keep(fresh)
		return answer{objects: []client.Object{fresh}, err: err}
	})
	become(o, found.objects[0].DeepCopyObject())
	return found.err
}

// list returns the objects of a list. They are shared: nobody may change them.
func (m *memory) list(ctx context.Context, c client.Client, of view, list client.ObjectList, options *client.ListOptions) answer {
	in := options.Namespace
	if in == "" {
		in = everywhere
	}
	return m.recall(place{kindOf(c, list), in}, question(of, list, options.LabelSelector, options.Limit, options.Continue), func() answer {
		fresh := blank(list).(client.ObjectList)
		if err := c.List(ctx, fresh, options); err != nil {
			return answer{err: err}
		}
		items, err := apimeta.ExtractList(fresh)
		found := answer{version: fresh.GetResourceVersion(), err: err}
		for _, item := range items {
			_, _ = of.keep(item)
			found.objects = append(found.objects, item.(client.Object))
		}
		return found
	})
}

// question says what is asked for, and in which Go type and version.
func question(of view, o runtime.Object, details ...any) string {
	return fmt.Sprintf("%s %T %s %v", of.name, o, o.GetObjectKind().GroupVersionKind().Version, details)
}

// blank returns an empty object of the same type and kind.
func blank(o runtime.Object) runtime.Object {
	fresh := reflect.New(reflect.TypeOf(o).Elem()).Interface().(runtime.Object)
	fresh.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	return fresh
}

// kindOf returns the kind of an object, or that of the items of a list.
func kindOf(c client.Client, o runtime.Object) schema.GroupKind {
	gvk, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		panic(err)
	}
	return schema.GroupKind{Group: gvk.Group, Kind: strings.TrimSuffix(gvk.Kind, "List")}
}

// become gives an object the content of another one of the same type.
func become(o, other runtime.Object) {
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(other).Elem())
}

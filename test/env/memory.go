// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// everywhere stands for all namespaces.
const everywhere = "*"

// memory has what reconcilers have read, until something of that kind is written there. A
// pass reads a dozen lists, and few of them have changed since the pass before: asking the
// API server each time was most of the work of these tests.
//
// It knows only of writes through the client of [Main]. Where a manager runs, which writes
// with a client of its own, nothing is remembered.
type memory struct {
	mu      sync.Mutex
	shelves map[place]*shelf
	// changing are the namespaces where others write.
	changing map[string]bool
}

// place is where objects of a kind are.
type place struct {
	kind      schema.GroupKind
	namespace string
}

// shelf has the answers about one place.
type shelf struct {
	// writes counts the writes: an answer that was on its way meanwhile is not kept.
	writes  int
	answers map[string]answer
}

// answer is what was read. Its objects are shared, and nobody changes them.
type answer struct {
	objects []client.Object
	// version is the resourceVersion of a list.
	version string
	err     error
}

// remembering is a client whose writes a memory knows of. Its own reads are fresh.
type remembering struct {
	client.WithWatch

	memory *memory
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
			defer m.wrote(c, o)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			defer m.wrote(c, o)
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			defer m.wrote(c, o)
			return c.Patch(ctx, o, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			defer m.wrote(c, o)
			return c.Delete(ctx, o, opts...)
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			defer m.wroteIn(c, o, (&client.DeleteAllOfOptions{}).ApplyOptions(opts).Namespace)
			return c.DeleteAllOf(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			defer m.forget() // it has no kind that is easily known
			return c.Apply(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			defer m.wrote(c, o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			defer m.wrote(c, o)
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	})
}

func (m *memory) wrote(c client.Client, o client.Object) { m.wroteIn(c, o, o.GetNamespace()) }

func (m *memory) wroteIn(c client.Client, o client.Object, namespace string) {
	kind := kindOf(c, o)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, in := range []string{namespace, everywhere} {
		written := m.shelf(place{kind, in})
		written.writes++
		written.answers = nil
	}
}

func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, on := range m.shelves {
		on.writes++
		on.answers = nil
	}
}

// distrust makes the memory forget what it knows of a namespace and of the cluster, and
// remember nothing of them from now on.
func (m *memory) distrust(namespace string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changing[namespace], m.changing[""], m.changing[everywhere] = true, true, true
}

// recall returns what was read before, or else reads it.
func (m *memory) recall(at place, question string, read func() answer) answer {
	if m == nil {
		return read()
	}
	known, found, writes := m.find(at, question)
	if found {
		return known
	}
	now := read()
	if now.err == nil || apierrors.IsNotFound(now.err) {
		m.keep(at, question, now, writes)
	}
	return now
}

func (m *memory) find(at place, question string) (known answer, found bool, writes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changing[at.namespace] {
		return answer{}, false, -1
	}
	on := m.shelf(at)
	known, found = on.answers[question]
	return known, found, on.writes
}

func (m *memory) keep(at place, question string, known answer, writes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	on := m.shelf(at)
	if on.writes != writes {
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

// get reads an object, reduced to what the controller's cache keeps of it.
func (m *memory) get(ctx context.Context, c client.Client, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	found := m.recall(place{kindOf(c, o), key.Namespace}, fmt.Sprintf("%T %s", o, key.Name), func() answer {
		err := c.Get(ctx, key, o, opts...)
		_, _ = trim(o)
		return answer{objects: []client.Object{o.DeepCopyObject().(client.Object)}, err: err}
	})
	become(o, found.objects[0].DeepCopyObject())
	return found.err
}

// list returns the objects of a list, reduced to what the controller's cache keeps of them.
// They are shared: nobody may change them.
func (m *memory) list(ctx context.Context, c client.Client, list client.ObjectList, options *client.ListOptions) answer {
	in := options.Namespace
	if in == "" {
		in = everywhere
	}
	question := fmt.Sprintf("%T %v %d %s", list, options.LabelSelector, options.Limit, options.Continue)
	return m.recall(place{kindOf(c, list), in}, question, func() answer {
		if err := c.List(ctx, list, options); err != nil {
			return answer{err: err}
		}
		items, err := apimeta.ExtractList(list)
		found := answer{version: list.GetResourceVersion(), err: err}
		for _, item := range items {
			_, _ = trim(item)
			found.objects = append(found.objects, item.(client.Object))
		}
		return found
	})
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

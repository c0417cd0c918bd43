// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewCache creates a cache whose lists and watches of custom resources decode each object
// separately. The API server itself decodes the built-in kinds before it stores them.
//
// The cache can be restricted to one namespace, and by label and field selectors for each
// kind.
func (o *Objects) NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	if len(options.DefaultNamespaces) > 1 {
		return nil, fmt.Errorf("%d namespaces: at most one is supported", len(options.DefaultNamespaces))
	}
	next := toolscache.NewSharedIndexInformer
	if options.NewInformer != nil {
		next = options.NewInformer
	}
	sources := source{config: config, options: options}
	options.NewInformer = func(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		own, err := sources.of(example)
		if err != nil { // a kind that the API server does not serve also fails in the cache
			return next(from, example, resync, indexers)
		}
		if own != nil {
			from = own
		}
		informer := next(from, example, resync, indexers)
		if own != nil {
			o.follow(informer)
		}
		return informer
	}
	return cache.New(config, options)
}

// source provides the objects of the caches.
type source struct {
	config  *rest.Config
	options cache.Options
}

// of returns the ListerWatcher of a kind, or nil if its objects can always be decoded.
func (s source) of(example runtime.Object) (toolscache.ListerWatcher, error) {
	object, ok := example.(client.Object)
	if _, metadata := example.(*metav1.PartialObjectMetadata); !ok || metadata {
		return nil, nil
	}
	if _, untyped := example.(runtime.Unstructured); untyped {
		return nil, nil
	}
	kind, err := apiutil.GVKForObject(object, s.options.Scheme)
	if err != nil || clientgoscheme.Scheme.Recognizes(kind) {
		return nil, err
	}
	mapping, err := s.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	codec := s.codec(kind)
	api, err := s.api(kind, codec)
	if err != nil {
		return nil, err
	}
	r := resource{
		api: api, name: mapping.Resource.Resource, scheme: s.options.Scheme, list: kind.GroupVersion().WithKind(kind.Kind + "List"),
		decoder: codec.ofJSON(kind.GroupVersion()), transform: s.options.DefaultTransform,
	}
	if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace {
		r.namespace = s.namespace()
	}
	r.selectors = s.selectors(kind)
	return &toolscache.ListWatch{ListWithContextFunc: r.List, WatchFuncWithContext: r.Watch}, nil
}

func (s source) codec(kind schema.GroupVersionKind) lenient {
	codecs := serializer.NewCodecFactory(s.options.Scheme).WithoutConversion()
	return lenient{NegotiatedSerializer: codecs, scheme: s.options.Scheme, expects: kind}
}

func (s source) api(kind schema.GroupVersionKind, codec lenient) (rest.Interface, error) {
	config := rest.CopyConfig(s.config)
	version := kind.GroupVersion()
	config.GroupVersion, config.APIPath, config.ContentType = &version, "/apis", runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.NegotiatedSerializer = codec
	return rest.RESTClientForConfigAndClient(config, s.options.HTTPClient)
}

func (s source) namespace() string {
	for only := range s.options.DefaultNamespaces {
		return only
	}
	return ""
}

// selectors returns the selectors with which the cache restricts a kind.
func (s source) selectors(kind schema.GroupVersionKind) cache.ByObject {
	for object, by := range s.options.ByObject {
		if of, err := apiutil.GVKForObject(object, s.options.Scheme); err == nil && of == kind {
			return by
		}
	}
	return cache.ByObject{}
}

// resource lists and watches the objects of a kind.
type resource struct {
	api             rest.Interface
	name, namespace string
	scheme          *runtime.Scheme
	list            schema.GroupVersionKind
	selectors       cache.ByObject
	decoder         decoder
	transform       toolscache.TransformFunc // makes objects small; may be nil
}

// mostAtOnce is how many bytes of a list are decoded at once. The objects of a longer
// list are decoded one by one while they arrive, and each is made small before the next.
const mostAtOnce = 4 << 20

func (r resource) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	body, err := r.request(options).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	list, err := r.read(body)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.name, err)
	}
	return list, nil
}

func (r resource) read(body io.Reader) (runtime.Object, error) {
	begin, err := io.ReadAll(io.LimitReader(body, mostAtOnce))
	if err != nil {
		return nil, err
	}
	list, err := r.scheme.New(r.list)
	if err != nil {
		return nil, err
	}
	if len(begin) == mostAtOnce {
		return list, r.decoder.each(io.MultiReader(bytes.NewReader(begin), body), list, r.transform)
	}
	_, _, err = r.decoder.Decode(begin, &r.list, list)
	return list, err
}

func (r resource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch, options.AllowWatchBookmarks = true, true
	return r.request(options).Watch(ctx)
}

func (r resource) request(options metav1.ListOptions) *rest.Request {
	if r.selectors.Label != nil {
		options.LabelSelector = r.selectors.Label.String()
	}
	if r.selectors.Field != nil {
		options.FieldSelector = r.selectors.Field.String()
	}
	request := r.api.Get().Resource(r.name).VersionedParams(&options, metav1.ParameterCodec)
	if r.namespace != "" {
		request.Namespace(r.namespace)
	}
	return request
}

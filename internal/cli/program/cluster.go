// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
)

// Cluster is an API server, as the identity of the user sees it.
type Cluster struct {
	Client client.WithWatch
	Scheme *runtime.Scheme
	Mapper meta.RESTMapper
}

// Limits of requests by one call. The API server has its own, and the program makes few.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 100
)

// openCluster connects with the identity of kubeconfig.
func (p *Program) openCluster(ctx context.Context) (Cluster, error) {
	config, err := p.Kubeconfig.ToRESTConfig()
	if err != nil {
		return Cluster{}, fmt.Errorf("kubeconfig: %w", err)
	}
	if !p.hasKubeconfig(config.Host) {
		return Cluster{}, errNoKubeconfig
	}
	c, err := Open(ctx, config, p.Version)
	if err != nil {
		return Cluster{}, p.notConnected(err)
	}
	return c, nil
}

// Open connects with the identity of a configuration. It makes one request: for the served
// version of Flux's image API.
func Open(ctx context.Context, config *rest.Config, version string) (Cluster, error) {
	images, err := servedImages(ctx, config)
	if err != nil {
		return Cluster{}, err
	}
	return OpenFor(config, version, images)
}

// OpenFor connects without a request, for a version of Flux's image API.
func OpenFor(config *rest.Config, version, images string) (Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	config.UserAgent = "flux-rollout/" + version
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return Cluster{}, fmt.Errorf("kubeconfig: %w", err)
	}
	scheme, mapper, err := NewScheme(images)
	if err != nil {
		return Cluster{}, err
	}
	// Below the targets may be objects of any kind. Their names are asked for when they are
	// needed.
	others, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return Cluster{}, fmt.Errorf("kubeconfig: %w", err)
	}
	mapper = meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{mapper, others}}
	c, err := newPatient(config, http, scheme, mapper)
	if err != nil {
		return Cluster{}, fmt.Errorf("kubeconfig: %w", err)
	}
	return Cluster{Client: c, Scheme: scheme, Mapper: mapper}, nil
}

// patient is a client whose watches have no time limit. The limit of a request would end
// each watch as well.
type patient struct {
	client.WithWatch
	watches client.WithWatch
}

func newPatient(config *rest.Config, http *http.Client, scheme *runtime.Scheme, mapper meta.RESTMapper) (patient, error) {
	limited, err := client.NewWithWatch(config, client.Options{HTTPClient: http, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return patient{}, err
	}
	unlimited := *http
	unlimited.Timeout = 0
	watches, err := client.NewWithWatch(config, client.Options{HTTPClient: &unlimited, Scheme: scheme, Mapper: mapper})
	return patient{limited, watches}, err
}

// Watch implements client.WithWatch.
func (p patient) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	return p.watches.Watch(ctx, list, options...)
}

// contextName names the API server for a message.
func (p *Program) contextName() string { return cmp.Or(p.ClusterName(), "the API server") }

// errNoKubeconfig ends a verb that has no API server to ask.
var errNoKubeconfig = errors.New("there is no kubeconfig: set KUBECONFIG, or give --kubeconfig or --server")

// hasKubeconfig reports whether something says where the API server is. What reads
// kubeconfig takes localhost:8080 without that.
func (p *Program) hasKubeconfig(host string) bool {
	config, err := p.Kubeconfig.ToRawKubeConfigLoader().RawConfig()
	return err != nil || len(config.Clusters) > 0 || ptr.Deref(p.Kubeconfig.APIServer, "") != "" || !strings.Contains(host, "localhost:8080")
}

// notConnected says which API server could not be asked, and why.
func (p *Program) notConnected(err error) error {
	name := p.contextName()
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s: the API server does not accept your credentials: log in again, or choose another context with --context", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// servedImages returns the version of Flux's image API that is served; the newest one if
// none is, so that reads say what is missing.
func servedImages(ctx context.Context, config *rest.Config) (string, error) {
	plain := rest.CopyConfig(config)
	plain.GroupVersion = &schema.GroupVersion{Version: "v1"}
	plain.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	c, err := rest.UnversionedRESTClientFor(plain)
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	group := &metav1.APIGroup{}
	err = c.Get().AbsPath("/apis/" + imagev1.GroupVersion.Group).Do(ctx).Into(group)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return imagev1.GroupVersion.Version, nil
	case err != nil:
		return "", fmt.Errorf("ask the API server for the versions of %s: %w", imagev1.GroupVersion.Group, err)
	}
	for _, served := range group.Versions {
		if served.Version == imagev1.GroupVersion.Version {
			return served.Version, nil
		}
	}
	return group.PreferredVersion.Version, nil
}

// NewScheme returns the kinds that are read or changed, and how they are named in
// requests. Nothing of that is asked for: discovery is slow where many kinds are served.
func NewScheme(images string) (*runtime.Scheme, meta.RESTMapper, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, coordinationv1.AddToScheme, environmentsv1.AddToScheme,
		sourcev1.AddToScheme, generatorv1.AddToScheme, kustomizev1.AddToScheme, helmv2.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register kinds: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	gv := schema.GroupVersion{Group: imagev1.GroupVersion.Group, Version: images}
	mapper.Add(gv.WithKind(imagev1.ImagePolicyKind), meta.RESTScopeNamespace)
	mapper.Add(gv.WithKind(imagev1.ImageRepositoryKind), meta.RESTScopeNamespace)
	if _, err := imagepolicy.AddImageTypes(scheme, mapper); err != nil {
		return nil, nil, err
	}
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, ScopeOf(kind))
	}
	return scheme, mapper, nil
}

// ScopeOf returns whether objects of a kind have a namespace.
func ScopeOf(kind schema.GroupVersionKind) meta.RESTScope {
	others := []string{"CustomResourceDefinition", "SelfSubjectReview", "SelfSubjectAccessReview", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	if kinds.IsGlobal(kind.GroupKind()) || slices.Contains(others, kind.Kind) {
		return meta.RESTScopeRoot
	}
	return meta.RESTScopeNamespace
}

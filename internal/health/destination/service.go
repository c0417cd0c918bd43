// SPDX-License-Identifier: Apache-2.0

package destination

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
)

// ErrNoEndpoint means that no Pod of a Service is ready. It is like a connection that
// nobody accepts.
var ErrNoEndpoint = errors.New("no Pod of the Service is ready")

// mostEndpoints is how many Pods of a Service are tried until one accepts a connection.
const mostEndpoints = 8

// Services finds Services. Those who may write EndpointSlices in a namespace decide where
// its Services lead, as everywhere in Kubernetes. Therefore the connection is opened to a
// Pod: its address is checked then. Behind a ClusterIP, nobody could tell where it leads.
type Services struct {
	// Reader reads Services and EndpointSlices: live, so that nothing is watched.
	Reader client.Reader
}

// Target returns the target of a reference, which is in the given field of a HealthCheck
// of the namespace. The Host header and the name in the certificate are
// <name>.<namespace>.svc. The path, which includes the query, replaces that of the
// reference; variables have been replaced in it.
//
// A Service that cannot be used is a Problem that says what to do. ErrNoEndpoint means
// that nobody would answer.
func (s Services) Target(ctx context.Context, field, namespace string, ref v1alpha1.ServiceReference, path string) (Target, error) {
	service, err := s.service(ctx, field, namespace, ref.Name)
	if err != nil {
		return Target{}, err
	}
	at, err := servicePort(field, service, ref.Port)
	if err != nil {
		return Target{}, err
	}
	target, err := serviceURL(field, namespace, ref, at.Port, path)
	if err != nil {
		return Target{}, err
	}
	target.addresses, err = s.endpoints(ctx, field, service, at.Name)
	return target, err
}

// service returns a Service whose endpoints are Pods of its own namespace.
func (s Services) service(ctx context.Context, field, namespace, name string) (*corev1.Service, error) {
	service := &corev1.Service{}
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service)
	switch {
	case apierrors.IsNotFound(err):
		return nil, health.Problemf("%s: Service %s does not exist in this namespace", field, name)
	case apierrors.IsForbidden(err):
		return nil, forbiddenRead(field, "Services")
	case err != nil:
		return nil, &ReadError{"get Service " + namespace + "/" + name, err}
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return nil, health.Problemf("%s: Service %s is of type ExternalName, which can point anywhere; use a Service with a Pod selector", field, name)
	case len(service.Spec.Selector) == 0:
		return nil, health.Problemf("%s: Service %s has no selector, so it can point anywhere; use a Service with a Pod selector", field, name)
	}
	return service, nil
}

func forbiddenRead(field, kind string) error {
	return health.Problemf("%s: this controller may not read %s here; bind the ClusterRole "+
		"rollout-controller-health-services-role to it in this namespace", field, kind)
}

// servicePort returns the port of a name or number. An empty text stands for the only one.
func servicePort(field string, service *corev1.Service, wanted string) (corev1.ServicePort, error) {
	ports := slices.DeleteFunc(slices.Clone(service.Spec.Ports), func(p corev1.ServicePort) bool {
		return p.Protocol != "" && p.Protocol != corev1.ProtocolTCP
	})
	if wanted == "" {
		if len(ports) != 1 {
			return corev1.ServicePort{}, health.Problemf("%s: Service %s has %d TCP ports; set port to the name of one", field, service.Name, len(ports))
		}
		return ports[0], nil
	}
	found := slices.IndexFunc(ports, func(p corev1.ServicePort) bool {
		return p.Name == wanted || strconv.Itoa(int(p.Port)) == wanted
	})
	if found < 0 {
		return corev1.ServicePort{}, health.Problemf("%s: Service %s has no TCP port %q", field, service.Name, wanted)
	}
	return ports[found], nil
}

// serviceURL returns a URL that cannot lead to another host, whatever the path contains.
func serviceURL(field, namespace string, ref v1alpha1.ServiceReference, number int32, path string) (Target, error) {
	scheme := ref.Scheme
	if scheme == "" {
		scheme = "http"
	}
	if path == "" {
		path = "/"
	}
	if path[0] != '/' {
		return Target{}, health.Problemf("%s: its path does not begin with /", field)
	}
	host := ref.Name + "." + namespace + ".svc"
	if number != defaultPort(scheme) {
		host += ":" + strconv.Itoa(int(number))
	}
	address := scheme + "://" + host + path
	of, err := parseOrigin(address)
	if err != nil {
		return Target{}, health.Problemf("%s: the URL of the Service is not valid: %s", field, err)
	}
	return of.target(address)
}

func defaultPort(scheme string) int32 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// endpoints returns addresses of ready Pods, in a random order, or in the same one each time
// if the Service keeps a client at one Pod.
func (s Services) endpoints(ctx context.Context, field string, service *corev1.Service, portName string) ([]string, error) {
	found := &discoveryv1.EndpointSliceList{}
	err := s.Reader.List(ctx, found, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	if apierrors.IsForbidden(err) {
		return nil, forbiddenRead(field, "EndpointSlices")
	}
	if err != nil {
		return nil, &ReadError{"list the EndpointSlices of Service " + service.Namespace + "/" + service.Name, err}
	}
	var addresses []string
	for _, slice := range found.Items {
		addresses = append(addresses, readyIn(slice, portName)...)
	}
	if len(addresses) == 0 {
		return nil, ErrNoEndpoint
	}
	slices.Sort(addresses)
	if service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	}
	return addresses[:min(len(addresses), mostEndpoints)], nil
}

// readyIn returns the addresses of the Pods of a slice that are ready, with the port.
func readyIn(slice discoveryv1.EndpointSlice, portName string) []string {
	at := slices.IndexFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
		return p.Port != nil && (p.Name == nil && portName == "" || p.Name != nil && *p.Name == portName)
	})
	if at < 0 || slice.AddressType == discoveryv1.AddressTypeFQDN {
		return nil
	}
	number := strconv.Itoa(int(*slice.Ports[at].Port))
	var ready []string
	for _, endpoint := range slice.Endpoints {
		if isReadyPod(endpoint, slice.Namespace) && len(endpoint.Addresses) > 0 {
			ready = append(ready, net.JoinHostPort(endpoint.Addresses[0], number))
		}
	}
	return ready
}

// isReadyPod reports whether an endpoint is a Pod of the namespace that is ready. An
// unknown state counts as ready, as its documentation demands.
func isReadyPod(endpoint discoveryv1.Endpoint, namespace string) bool {
	pod := endpoint.TargetRef
	return pod != nil && pod.Kind == "Pod" && (pod.Namespace == "" || pod.Namespace == namespace) &&
		(endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready)
}

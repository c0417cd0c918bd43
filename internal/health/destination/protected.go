// SPDX-License-Identifier: Apache-2.0

package destination

import (
	"context"
	"net"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadError means that something could not be read that a request needs. It says nothing
// about the destination.
type ReadError struct {
	what string
	err  error
}

// NewReadError returns the error of a read, which the first argument describes.
func NewReadError(what string, err error) *ReadError { return &ReadError{what, err} }

// Error says what was to be read.
func (r *ReadError) Error() string { return r.what + ": " + r.err.Error() }

// Unwrap returns the error of the read.
func (r *ReadError) Unwrap() error { return r.err }

// Protected returns the addresses that nobody may ask in this cluster.
type Protected func(context.Context) ([]netip.Addr, error)

// ProtectedIn returns the addresses of the API server, as the cluster shows them, and
// those of the network interfaces of this process. It needs the rights to get Services
// and to list EndpointSlices in the namespace default.
func ProtectedIn(reader client.Reader) Protected {
	return func(ctx context.Context) ([]netip.Addr, error) {
		own, err := ownAddresses()
		if err != nil {
			return nil, err
		}
		server, err := apiServer(ctx, reader)
		if err != nil {
			return nil, err
		}
		return append(own, server...), nil
	}
}

// Every returns the same addresses, but reads them again only if the last ones are older
// than the interval. If they cannot be read, it returns an error rather than old ones. One
// caller reads at a time, and the others wait no longer than their contexts allow.
func (p Protected) Every(interval time.Duration, clock clock.PassiveClock) Protected {
	turn := make(chan struct{}, 1)
	var last []netip.Addr
	var readAt time.Time
	return func(ctx context.Context) ([]netip.Addr, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, NewReadError("wait for the addresses of the API server", ctx.Err())
		}
		if !readAt.IsZero() && clock.Since(readAt) < interval {
			return last, nil
		}
		read, err := p(ctx)
		if err != nil {
			return nil, err
		}
		last, readAt = read, clock.Now()
		return last, nil
	}
}

func ownAddresses() ([]netip.Addr, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, &ReadError{"find the addresses of this machine", err}
	}
	var own []netip.Addr
	for _, of := range interfaces {
		if prefix, err := netip.ParsePrefix(of.String()); err == nil {
			own = append(own, prefix.Addr().Unmap().WithZone(""))
		}
	}
	return own, nil
}

// apiServer returns the addresses of the Service default/kubernetes and of its endpoints.
// The API server keeps both up to date.
func apiServer(ctx context.Context, reader client.Reader) ([]netip.Addr, error) {
	service := &corev1.Service{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, service); err != nil {
		return nil, &ReadError{"get the Service of the API server", err}
	}
	slices := &discoveryv1.EndpointSliceList{}
	if err := reader.List(ctx, slices, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}); err != nil {
		return nil, &ReadError{"list the EndpointSlices of the API server", err}
	}
	texts := service.Spec.ClusterIPs
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			texts = append(texts, endpoint.Addresses...)
		}
	}
	var addresses []netip.Addr
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, address.Unmap())
		}
	}
	return addresses, nil
}

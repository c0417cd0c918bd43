// SPDX-License-Identifier: Apache-2.0

// Package imagescanner stands in for Flux's image-reflector-controller, which
// is not published as a Go module: it lists the tags of a registry, applies
// image policies to them, and writes the same status as the original, which a
// test holds against a recording of the original's.
//
// It knows plain registries, with a docker-registry secret or without. Cloud
// providers, client certificates, proxies and access rules are left out.
package imagescanner

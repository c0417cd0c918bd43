// SPDX-License-Identifier: Apache-2.0

// Package controlplane builds and runs a real Kubernetes control plane with
// Flux on one machine, from Go modules alone: no container engine, no cluster
// and no downloaded binary. The demo and the tests share it.
//
// A caller says in Options which parts it uses, and only those are built and
// started. Everything listens on loopback, on free ports. Whatever happens to
// the process that called Start, its children die with it.
//
// The parts are listed in the package parts, each with a pinned version.
package controlplane

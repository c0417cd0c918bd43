// SPDX-License-Identifier: Apache-2.0

// Package controlplane builds and runs a real Kubernetes control plane with Flux on one
// machine, from Go modules alone: without a container engine, a cluster or downloaded
// binaries. The demo and the tests share it.
//
// Options selects the parts that a caller uses. Only those are built and started.
// Everything listens on loopback, on free ports. On Linux the child processes always end
// with the process that called Start, even if it is killed.
//
// The package parts lists the parts, each with a pinned version.
package controlplane

// SPDX-License-Identifier: Apache-2.0

//go:build !loopback

package main

// allowLoopback is whether HealthChecks may ask loopback addresses. No flag sets it: the
// servers of end-to-end tests have no other addresses, and only their program is built
// with the tag.
const allowLoopback = false

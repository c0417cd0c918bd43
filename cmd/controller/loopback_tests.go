// SPDX-License-Identifier: Apache-2.0

//go:build loopback

package main

const allowLoopback = true

// SPDX-License-Identifier: Apache-2.0

// Package crd contains the CustomResourceDefinitions of Rollouts and related kinds.
package crd

import "embed"

// Bases contains a file for each CustomResourceDefinition, in the folder bases.
//
//go:embed bases/*.yaml
var Bases embed.FS

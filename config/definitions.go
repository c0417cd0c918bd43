// SPDX-License-Identifier: Apache-2.0

// Package config contains the manifests of an installation.
package config

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed crd/bases/*.yaml coordination/crd/bases/*.yaml
var definitions embed.FS

// Definitions returns the manifests of our CustomResourceDefinitions, which are in the program.
func Definitions() [][]byte {
	var all [][]byte
	err := fs.WalkDir(definitions, ".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".yaml" {
			content, _ := definitions.ReadFile(name)
			all = append(all, content)
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	return all
}

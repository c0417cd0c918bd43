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

//go:embed components/approvals/approvals.yaml components/approvals/withdrawals.yaml components/deploy-user/deploy_user.yaml
var policies embed.FS

// Policies returns the manifests of the admission policies that vouch for the names of users,
// which are in the program.
func Policies() [][]byte {
	var all [][]byte
	for _, name := range []string{"approvals/approvals", "approvals/withdrawals", "deploy-user/deploy_user"} {
		content, err := policies.ReadFile("components/" + name + ".yaml")
		if err != nil {
			panic(err)
		}
		all = append(all, content)
	}
	return all
}

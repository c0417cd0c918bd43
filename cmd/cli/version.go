// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

// version is set when a release is built.
var version = "dev"

func newVersion(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			p.out.Line("flux-rollout %s", version)
			return nil
		},
	}
}

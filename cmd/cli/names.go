// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
)

// Names of the file that have a meaning.
const (
	kubectlFile  = "kubectl-rollouts"
	completeFile = "kubectl_complete-rollouts"
)

// calledAs returns what a user types to call the program, and the arguments for it. Help
// and remedies use it, so that they can be copied.
//
// kubectl finds plugins by their name on the PATH, and their completion by another name
// (kubernetes/kubernetes PR 105867). Flux runs a plugin by its full path, in a folder
// that holds only plugins (fluxcd/flux2, RFC-0013).
func calledAs(argv []string, env func(string) string) (name string, args []string) {
	file := strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	switch {
	case file == completeFile:
		return "kubectl rollouts", append([]string{"__complete"}, argv[1:]...)
	case file == kubectlFile:
		return "kubectl rollouts", argv[1:]
	case filepath.IsAbs(argv[0]) && isPluginFolder(filepath.Dir(argv[0]), env):
		return "flux rollout", argv[1:]
	}
	return "flux-rollout", argv[1:]
}

func isPluginFolder(folder string, env func(string) string) bool {
	plugins := env("FLUXCD_PLUGINS")
	if plugins == "" {
		plugins = filepath.Join(env("HOME"), ".fluxcd", "plugins")
	}
	return filepath.Clean(plugins) == filepath.Clean(folder)
}

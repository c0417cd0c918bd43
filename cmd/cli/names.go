// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
)

// Prefixes of files that kubectl runs, as plugins and to complete their commands.
const (
	kubectlPrefix  = "kubectl-"
	completePrefix = "kubectl_complete-"
)

// calledAs returns what a user types to call the program, and the arguments for it. Help
// and remedies use it, so that they can be copied.
//
// kubectl finds plugins by their name on the PATH, and their completion by another name
// (kubernetes/kubernetes PR 105867). krew installs the program under a name of its index,
// so each name after the prefix is accepted. Flux runs a plugin by its full path, in a
// folder that holds only plugins (fluxcd/flux2, RFC-0013).
func calledAs(argv []string, env func(string) string) (name string, args []string) {
	file := strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	if plugin, is := strings.CutPrefix(file, completePrefix); is {
		return kubectlCommand(plugin), append([]string{"__complete"}, argv[1:]...)
	}
	if plugin, is := strings.CutPrefix(file, kubectlPrefix); is {
		return kubectlCommand(plugin), argv[1:]
	}
	if filepath.IsAbs(argv[0]) && isPluginFolder(filepath.Dir(argv[0]), env) {
		return "flux rollout", argv[1:]
	}
	return "flux-rollout", argv[1:]
}

// kubectlCommand returns the command that kubectl makes of the file of a plugin.
func kubectlCommand(plugin string) string {
	return "kubectl " + strings.NewReplacer("-", " ", "_", "-").Replace(plugin)
}

// fileOf returns the name of the file that is run for a command. Shells complete it by
// that name: a script for the first word would replace the completion of kubectl or flux.
func fileOf(called string) string {
	if plugin, is := strings.CutPrefix(called, "kubectl "); is {
		return kubectlPrefix + pluginFile(plugin)
	}
	return strings.ReplaceAll(called, " ", "-")
}

// pluginFile returns what follows the prefix in the file of a plugin of kubectl.
func pluginFile(plugin string) string {
	return strings.NewReplacer("-", "_", " ", "-").Replace(plugin)
}

func isPluginFolder(folder string, env func(string) string) bool {
	plugins := env("FLUXCD_PLUGINS")
	if plugins == "" {
		plugins = filepath.Join(env("HOME"), ".fluxcd", "plugins")
	}
	return filepath.Clean(plugins) == filepath.Clean(folder)
}

// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"path/filepath"
	"slices"
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
// so each name after the prefix is accepted. Flux runs a plugin by its path, in a folder
// that holds only plugins (fluxcd/flux2, RFC-0013).
func calledAs(argv []string, env func(string) string) (name string, args []string) {
	file := strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	if plugin, is := strings.CutPrefix(file, completePrefix); is {
		return kubectlCommand(plugin), append([]string{"__complete"}, argv[1:]...)
	}
	if plugin, is := strings.CutPrefix(file, kubectlPrefix); is {
		return kubectlCommand(plugin), argv[1:]
	}
	if isPath := filepath.Base(argv[0]) != argv[0]; isPath && isPluginFolder(filepath.Dir(argv[0]), env) {
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

// isPluginFolder reports whether flux looks for plugins in a folder. Without a variable of
// its own, it looks below the home folder, which Windows has in another variable.
func isPluginFolder(folder string, env func(string) string) bool {
	plugins := env("FLUXCD_PLUGINS")
	if plugins != "" {
		return filepath.Clean(plugins) == filepath.Clean(folder)
	}
	return slices.ContainsFunc([]string{env("HOME"), env("USERPROFILE")}, func(home string) bool {
		return home != "" && filepath.Join(home, ".fluxcd", "plugins") == filepath.Clean(folder)
	})
}

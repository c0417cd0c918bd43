// SPDX-License-Identifier: Apache-2.0

package program

import "runtime/debug"

// unversioned is the version of a program that was built from a working tree.
const unversioned = "dev"

// VersionOf returns the version of the program: the one that a release has linked in, and
// else the one that "go install" was given.
func VersionOf(linked string, info *debug.BuildInfo) string {
	switch {
	case linked != "":
		return linked
	case info != nil && info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return unversioned
}

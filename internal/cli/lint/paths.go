// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"strings"
)

// appliedFiles returns the names of the files that a Kustomization applies, or the reason
// why they are not known.
func (s *set) appliedFiles(k *object) (files map[string]bool, reason string) {
	below, reason := relativePath(k)
	if reason != "" {
		return nil, reason
	}
	files, roots := map[string]bool{}, map[string]bool{}
	for _, file := range s.texts {
		if root, ok := rootOf(file.Name, below); ok {
			files[file.Name] = true
			roots[root] = true
		}
	}
	if reason := notApplied(k, below, files, roots); reason != "" {
		return nil, reason
	}
	return files, ""
}

// notApplied returns why it is not certain that the files are those of a Kustomization. A
// folder of that name may be in another repository, or in another part of this one.
func notApplied(k *object, below string, files, roots map[string]bool) string {
	switch {
	case len(files) == 0:
		return fmt.Sprintf("no file below %s is given", below)
	case len(roots) > 1:
		return fmt.Sprintf("several folders are named %s", below)
	case files[k.file]:
		return fmt.Sprintf("%s is below its own path", k)
	}
	for root := range roots {
		if !strings.HasPrefix(k.file, root) {
			return fmt.Sprintf("%s is not in the same tree of files as %s%s", k, root, below)
		}
	}
	return ""
}

// relativePath returns the path of a Kustomization in its source, without "./", or the
// reason why it says nothing about files.
func relativePath(k *object) (below, reason string) {
	if kind := k.text("spec", "sourceRef", "kind"); kind != "GitRepository" {
		return "", fmt.Sprintf("its manifests come from %s %s", kind, k.text("spec", "sourceRef", "name"))
	}
	if k.isUnknown("spec", "path") {
		return "", "spec.path has variables whose values are not known"
	}
	below = strings.TrimPrefix(path.Clean("/"+k.text("spec", "path")), "/")
	if below == "" {
		return "", "spec.path is the root of its source, which may be another repository"
	}
	return below, ""
}

// rootOf returns what is before a folder in the name of a file that is below it, and
// whether it is.
func rootOf(file, folder string) (string, bool) {
	name := strings.TrimPrefix(path.Clean(file), "./")
	if strings.HasPrefix(name, folder+"/") {
		return "", true
	}
	root, _, found := strings.Cut(name, "/"+folder+"/")
	return root + "/", found
}

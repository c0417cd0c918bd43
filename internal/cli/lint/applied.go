// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// appliedTogether reports whether something applies both of two files: a
// kustomization.yaml, or a Kustomization of Flux by its path. Files of one folder are taken
// to be applied together. Others may be for different clusters.
func (s *set) appliedTogether(a, b string) bool {
	if path.Dir(a) == path.Dir(b) {
		return true
	}
	if s.applied == nil {
		overlays := s.overlays()
		s.applied = append(builds(overlays), s.pathsOfFlux(overlays)...)
	}
	for _, files := range s.applied {
		if files[path.Clean(a)] && files[path.Clean(b)] {
			return true
		}
	}
	return false
}

// overlays returns each kustomization.yaml by its folder.
func (s *set) overlays() map[string]*object {
	all := map[string]*object{}
	for _, o := range s.all {
		if o.isOverlay() {
			all[path.Dir(path.Clean(o.file))] = o
		}
	}
	return all
}

// builds returns the files of each kustomization.yaml.
func builds(overlays map[string]*object) []map[string]bool {
	var all []map[string]bool
	for folder := range overlays {
		files := map[string]bool{}
		reach(overlays, folder, files)
		all = append(all, files)
	}
	return all
}

// reach adds the files that the kustomization.yaml of a folder names, and those of the
// folders that it names.
func reach(overlays map[string]*object, folder string, files map[string]bool) {
	overlay := overlays[folder]
	if overlay == nil || files[path.Clean(overlay.file)] {
		return
	}
	files[path.Clean(overlay.file)] = true
	for _, field := range []string{"resources", "bases", "components"} {
		for _, item := range overlay.items(field) {
			if name, ok := item.(string); ok && !strings.Contains(name, "://") {
				files[path.Join(folder, name)] = true
				reach(overlays, path.Join(folder, name), files)
			}
		}
	}
}

// pathsOfFlux returns the files below the path of each Kustomization, in each tree that has
// such a path. If the folder has a kustomization.yaml, only that says what is applied.
func (s *set) pathsOfFlux(overlays map[string]*object) []map[string]bool {
	var all []map[string]bool
	for _, k := range s.byKind[kustomizationKind] {
		below, reason := relativePath(k)
		if reason != "" {
			continue
		}
		trees := map[string]map[string]bool{}
		for _, file := range s.texts {
			root, ok := rootOf(file.Name, below)
			if !ok || overlays[path.Join(root, below)] != nil {
				continue
			}
			if trees[root] == nil {
				trees[root] = map[string]bool{}
			}
			trees[root][path.Clean(file.Name)] = true
		}
		all = slices.AppendSeq(all, maps.Values(trees))
	}
	return all
}

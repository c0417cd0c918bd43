// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// separate reports whether two objects are for different clusters, as far as one can see:
// the files define an object several times, and nothing applies both files.
func (s *set) separate(a, b *object) bool {
	return len(s.apart) > 0 && !s.appliedTogether(a.file, b.file)
}

// appliedTogether reports whether something applies both of two files: a
// kustomization.yaml, or Kustomizations of Flux by their paths, from one folder on. Files of
// one folder are taken to be applied together.
func (s *set) appliedTogether(a, b string) bool {
	if path.Dir(a) == path.Dir(b) {
		return true
	}
	if s.applied == nil {
		s.applied = s.applySets()
	}
	return slices.ContainsFunc(s.applied, func(files map[string]bool) bool { return files[path.Clean(a)] && files[path.Clean(b)] })
}

// applySets returns sets of files that are applied together.
func (s *set) applySets() []map[string]bool {
	overlays := s.overlays()
	all := builds(overlays)
	paths := map[*object]map[string]bool{}
	for _, k := range s.byKind[kustomizationKind] {
		trees := s.below(k, overlays)
		all = slices.AppendSeq(all, maps.Values(trees))
		for root, files := range trees {
			if strings.HasPrefix(k.file, root) {
				paths[k] = files
			}
		}
	}
	for _, k := range s.byKind[kustomizationKind] {
		all = append(all, s.cluster(k, paths))
	}
	return all
}

// cluster returns what is applied with a Kustomization: the files of its folder, and from
// there on those of each path.
func (s *set) cluster(first *object, paths map[*object]map[string]bool) map[string]bool {
	files := map[string]bool{}
	for _, file := range s.texts {
		if path.Dir(file.Name) == path.Dir(first.file) {
			files[path.Clean(file.Name)] = true
		}
	}
	for before := -1; before < len(files); {
		before = len(files)
		for k, more := range paths {
			if files[path.Clean(k.file)] {
				maps.Copy(files, more)
			}
		}
	}
	return files
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
		all = append(all, build(overlays, folder))
	}
	return all
}

func build(overlays map[string]*object, folder string) map[string]bool {
	files := map[string]bool{}
	reach(overlays, folder, files)
	return files
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

// below returns the files below the path of a Kustomization, by what is before the path. If
// the folder has a kustomization.yaml, only that says what is applied.
func (s *set) below(k *object, overlays map[string]*object) map[string]map[string]bool {
	trees := map[string]map[string]bool{}
	below, reason := relativePath(k)
	if reason != "" {
		return trees
	}
	for _, file := range s.texts {
		root, ok := rootOf(file.Name, below)
		switch folder := path.Join(root, below); {
		case !ok:
		case overlays[folder] != nil && trees[root] == nil:
			trees[root] = build(overlays, folder)
		case overlays[folder] != nil:
		case trees[root] == nil:
			trees[root] = map[string]bool{path.Clean(file.Name): true}
		default:
			trees[root][path.Clean(file.Name)] = true
		}
	}
	return trees
}

// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
)

// isOverlay reports whether an object is the content of a kustomization.yaml, which
// changes other files.
func (o *object) isOverlay() bool {
	return strings.HasPrefix(o.apiVersion(), "kustomize.config.k8s.io/")
}

// applyOverlays does what can be known without building an overlay: files that are
// patches have no objects, and a namespace is that of the objects in the same folder.
func (s *set) applyOverlays() {
	patches := map[string]*object{}
	for _, overlay := range s.all {
		if overlay.isOverlay() {
			for _, file := range overlay.patchFiles() {
				patches[file] = overlay
			}
			s.setNamespaces(overlay)
		}
	}
	s.all = slices.DeleteFunc(s.all, func(o *object) bool {
		overlay := patches[path.Clean(o.file)]
		if overlay != nil {
			s.skipped = append(s.skipped, NotChecked{File: o.file, Line: o.line(), Object: o.String(), Reason: fmt.Sprintf(
				"it is a patch of %s: lint the built overlay", overlay.file)})
		}
		return overlay != nil
	})
}

// patchFiles returns the names of the files that an overlay uses as patches.
func (o *object) patchFiles() []string {
	var files []string
	add := func(value any) {
		if name, ok := value.(string); ok && !strings.Contains(name, "\n") {
			files = append(files, path.Join(path.Dir(o.file), name))
		}
	}
	for _, field := range []string{"patches", "patchesJson6902", "patchesStrategicMerge", "replacements"} {
		for _, each := range o.items(field) {
			if values, ok := each.(map[string]any); ok {
				each = values["path"]
			}
			add(each)
		}
	}
	return files
}

// setNamespaces gives the namespace of an overlay to the objects in the same folder.
func (s *set) setNamespaces(overlay *object) {
	namespace := overlay.text("namespace")
	if namespace == "" {
		return
	}
	for _, o := range s.all {
		if !o.isOverlay() && path.Dir(o.file) == path.Dir(overlay.file) && !kinds.IsGlobal(o.groupKind()) {
			o.overlay = namespace
		}
	}
}

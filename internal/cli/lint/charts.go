// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"path"
	"slices"
	"strings"
)

// withoutTemplates leaves out the templates of charts, which are not YAML, and says so once
// for each chart.
func (s *set) withoutTemplates(files []File) []File {
	charts := map[string]bool{}
	for _, file := range files {
		if path.Base(file.Name) == "Chart.yaml" {
			charts[path.Dir(file.Name)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(files), func(file File) bool {
		for folder := path.Dir(file.Name); folder != "." && folder != "/"; folder = path.Dir(folder) {
			if path.Base(folder) == "templates" && charts[path.Dir(folder)] {
				s.skipped = append(s.skipped, NotChecked{
					File: strings.TrimPrefix(path.Join(path.Dir(folder), "templates"), "./"), Reason: "they are templates of a chart: lint what helm template prints",
				})
				return true
			}
		}
		return false
	})
}

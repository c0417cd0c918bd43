// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
)

// GitHub returns the finding as a workflow command, which GitHub Actions shows next to
// the line of the file: "::error file=app.yaml,line=3,title=R201::message". What has a
// meaning in such a command is escaped.
func (f Finding) GitHub() string {
	var properties []string
	if f.File != "" {
		properties = append(properties, "file="+escapeProperty(f.File))
	}
	if f.Line > 0 {
		properties = append(properties, fmt.Sprintf("line=%d", f.Line))
	}
	properties = append(properties, "title="+escapeProperty(f.Rule))
	text := f.Message
	if f.Remedy != "" {
		text += "\n" + f.Remedy
	}
	return fmt.Sprintf("::%s %s::%s", f.Severity, strings.Join(properties, ","), escapeData(text))
}

var (
	dataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func escapeData(text string) string { return dataEscapes.Replace(text) }

func escapeProperty(text string) string { return propertyEscapes.Replace(text) }

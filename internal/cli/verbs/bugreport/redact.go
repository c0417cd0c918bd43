// SPDX-License-Identifier: Apache-2.0

package bugreport

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// redactions are words for names. A name has the same word everywhere, so that what
// refers to it still does.
type redactions struct {
	words map[string]string
	names *regexp.Regexp
}

// kept are fields whose values are part of the API, or what a decision is about.
var kept = map[string]bool{
	"apiVersion": true, "kind": true, "tag": true, "digest": true, "revision": true, "uid": true,
	"reason": true, "type": true, "status": true, "bakeStatus": true, "range": true, "wantedVersion": true, "timezone": true,
}

// redactionsOf finds the names in objects: of the objects themselves, their namespaces,
// users, images, and what HealthChecks ask. Those that are given get the first words. Without objects, nothing is
// replaced.
func redactionsOf(objects []map[string]any, first ...string) redactions {
	r := redactions{words: map[string]string{}}
	for _, name := range first {
		r.replace("name", name)
	}
	for _, object := range objects {
		walk(object, func(field, value string) {
			switch field {
			case "name", "namespace", "cluster", v1alpha1.DeployUserAnnotation, v1alpha1.SuspendedByAnnotation:
				r.replace("name", value)
			case "withdrawn", v1alpha1.DescriptionAnnotation:
				if _, user, by := strings.Cut(value, ", by "); by {
					r.replace("name", user)
				}
			case v1alpha1.ApprovalAnnotation:
				if _, user, by := strings.Cut(value, " by "); by {
					user, _, _ = strings.Cut(user, ": ")
					r.replace("name", user)
				}
			case "image", "url", "address", "repository", "project":
				r.image(value)
			}
		})
	}
	quoted := make([]string, 0, len(r.words))
	for _, name := range slices.SortedFunc(maps.Keys(r.words), longest) {
		quoted = append(quoted, regexp.QuoteMeta(name))
	}
	if len(quoted) > 0 {
		r.names = regexp.MustCompile(`\b(` + strings.Join(quoted, "|") + `)\b`)
	}
	return r
}

// longest sorts long names first: a short one may be a part of a long one.
func longest(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }

// replace makes a word for a name. Names of one letter would be found everywhere.
func (r redactions) replace(kind, name string) {
	if _, known := r.words[name]; !known && len(name) > 1 {
		r.words[name] = fmt.Sprintf("%s-%d", kind, len(r.words)+1)
	}
}

// headersOf visits the headers that a HealthCheck sends.
func headersOf(object map[string]any) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		spec, _ := object["spec"].(map[string]any)
		for _, class := range []string{"prometheus", "http"} {
			fields, _ := spec[class].(map[string]any)
			headers, _ := fields["headers"].([]any)
			for _, header := range headers {
				if header, ok := header.(map[string]any); ok && !yield(header) {
					return
				}
			}
		}
	}
}

// image makes words for the host and for each part of the path of an image, or of a URL.
func (r redactions) image(reference string) {
	if _, rest, hasScheme := strings.Cut(reference, "://"); hasScheme {
		reference = rest
	}
	host, rest, _ := strings.Cut(reference, "/")
	r.replace("host", host)
	for part := range strings.SplitSeq(rest, "/") {
		r.replace("name", part)
	}
}

// redact replaces all names in the values of some content. Keys stay: they are fields,
// annotations and labels.
func (r redactions) redact(content any) {
	switch content := content.(type) {
	case map[string]any:
		r.quarantine(content)
		for field, value := range content {
			switch value := value.(type) {
			case string:
				if !kept[field] {
					content[field] = r.in(value)
				}
			case []any:
				if field != "latestTags" && field != "tags" {
					r.redact(value)
				}
			default:
				r.redact(value)
			}
		}
	case []any:
		for i, value := range content {
			if text, ok := value.(string); ok {
				content[i] = r.in(text)
			}
			r.redact(value)
		}
	}
}

// quarantine replaces names in the reason of a quarantine. Users have written it, unlike
// the other reasons.
func (r redactions) quarantine(object map[string]any) {
	if kind, _ := object["kind"].(string); !strings.HasSuffix(kind, v1alpha1.ReleaseQuarantineKind) {
		return
	}
	if spec, _ := object["spec"].(map[string]any); spec != nil {
		if reason, ok := spec["reason"].(string); ok {
			spec["reason"] = r.in(reason)
		}
	}
}

func (r redactions) in(text string) string {
	if r.names == nil {
		return text
	}
	return r.names.ReplaceAllStringFunc(text, func(name string) string { return r.words[name] })
}

// walk visits each text with its field, in an order that is always the same.
func walk(content any, visit func(field, value string)) {
	switch content := content.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(content)) {
			if text, ok := content[field].(string); ok {
				visit(field, text)
			}
			walk(content[field], visit)
		}
	case []any:
		for _, value := range content {
			walk(value, visit)
		}
	}
}

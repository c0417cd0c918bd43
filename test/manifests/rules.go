// SPDX-License-Identifier: Apache-2.0

package manifests

// RemoveRules removes the rules in CEL from a schema, or from all that is in it, such
// as a CustomResourceDefinition: what an older API server, or an older version of the
// kind, stores.
func RemoveRules(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		delete(schema, "x-kubernetes-validations")
		for _, inner := range schema {
			RemoveRules(inner)
		}
	case []any:
		for _, inner := range schema {
			RemoveRules(inner)
		}
	}
}

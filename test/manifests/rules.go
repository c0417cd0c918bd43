// SPDX-License-Identifier: Apache-2.0

package manifests

// RemoveRules removes the CEL rules from a schema, or from everything in an object such
// as a CustomResourceDefinition. An older API server, or an older version of the kind,
// stores schemas without these rules.
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

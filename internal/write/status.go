// SPDX-License-Identifier: Apache-2.0

package write

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StatusPatch returns a merge patch (RFC 7386) of the changes between two statuses of an
// object, under an optimistic lock. Both are structs of the same type, whose fields all
// have omitempty. The client would create the same patch, but would convert both objects
// to JSON for it.
func StatusPatch[T any](resourceVersion string, before, after T) (client.Patch, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status":   differing(reflect.ValueOf(before), reflect.ValueOf(after)),
	})
	if err != nil {
		return nil, fmt.Errorf("encode patch of the status: %w", err)
	}
	return client.RawPatch(types.MergePatchType, body), nil
}

// differing returns the fields that differ between two structs. Lists, and what has a form
// of its own in JSON, such as times, are replaced as a whole.
func differing(before, after reflect.Value) map[string]any {
	changed := map[string]any{}
	for i := range after.NumField() {
		was, is := before.Field(i), after.Field(i)
		name, _, _ := strings.Cut(after.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case name == "": // inline
			maps.Copy(changed, differing(was, is))
		case equality.Semantic.DeepEqual(was.Interface(), is.Interface()):
		case is.IsZero() || is.Kind() == reflect.Slice && is.Len() == 0:
			changed[name] = nil
		case isNested(is) && !was.IsNil():
			changed[name] = differing(was.Elem(), is.Elem())
		default:
			changed[name] = is.Interface()
		}
	}
	return changed
}

func isNested(field reflect.Value) bool {
	_, encodesItself := field.Interface().(json.Marshaler)
	return field.Kind() == reflect.Pointer && field.Elem().Kind() == reflect.Struct && !encodesItself
}

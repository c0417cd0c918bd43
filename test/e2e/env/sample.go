// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// Sample returns the objects of a file in config/samples, with replacements as of
// strings.NewReplacer.
func Sample(t *testing.T, path string, replacements ...string) []client.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts.Root(), "config", "samples", path))
	if err != nil {
		t.Fatal(err)
	}
	return Decode(t, strings.NewReplacer(replacements...).Replace(string(text)))
}

// Decode returns the objects of a YAML text.
func Decode(t *testing.T, text string) []client.Object {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text))
	var objects []client.Object
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

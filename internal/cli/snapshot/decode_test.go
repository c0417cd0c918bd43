// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

const gate = `
apiVersion: kuberik.com/v1alpha1
kind: RolloutGate
metadata: {name: qa, namespace: shop}
spec: {rolloutRef: {name: shop}, passing: false}
`

func TestDecode(t *testing.T) {
	for name, tt := range map[string]struct {
		content string
		want    []string
		err     string
	}{
		"nothing":        {"", nil, ""},
		"only comments":  {"# nothing\n---\n# here\n", nil, ""},
		"one":            {gate, []string{"*v1alpha1.RolloutGate shop/qa"}, ""},
		"two":            {gate + "---" + strings.Replace(gate, "qa", "legal", 1), []string{"*v1alpha1.RolloutGate shop/qa", "*v1alpha1.RolloutGate shop/legal"}, ""},
		"Windows' lines": {strings.ReplaceAll(gate+"---"+gate, "\n", "\r\n"), []string{"*v1alpha1.RolloutGate shop/qa", "*v1alpha1.RolloutGate shop/qa"}, ""},
		"JSON":           {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`, []string{"*v1.Pod /web"}, ""},
		"a list": {
			`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}},{"apiVersion":"v1","kind":"Pod","metadata":{"name":"db"}}]}`,
			[]string{"*v1.Pod /web", "*v1.Pod /db"}, "",
		},
		"an older version": {
			"apiVersion: image.toolkit.fluxcd.io/v1beta2\nkind: ImagePolicy\nmetadata: {name: shop}", []string{"*v1.ImagePolicy /shop"}, "",
		},
		"a kind that nobody knows": {"apiVersion: example.com/v1\nkind: Cake\n---" + gate, []string{"*v1alpha1.RolloutGate shop/qa"}, ""},
		"no kind":                  {gate + "---\nname: x", []string{"*v1alpha1.RolloutGate shop/qa"}, "document 2: it has no apiVersion, or no kind"},
		"no YAML":                  {"a: b: c", nil, "document 1: it is no YAML object: "},
		"a value of another type": {
			strings.Replace(gate, "passing: false", "passing: [x]", 1), nil, "document 1: RolloutGate shop/qa: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := snapshot.Decode(clusterScheme(t), []byte(tt.content))
			if (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, fmt.Sprintf("%T %s", o, client.ObjectKeyFromObject(o)))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", gate, "---\n---", `{"kind":"List","apiVersion":"v1","items":[1]}`, "a: &a [*a]", "kind: x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		objects, _ := snapshot.Decode(clusterScheme(t), content)
		for _, o := range objects {
			if o == nil {
				t.Error("an object is nil")
			}
		}
	})
}

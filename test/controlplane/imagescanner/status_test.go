// SPDX-License-Identifier: Apache-2.0

package imagescanner_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// recording is what the original wrote.
func recording(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile("testdata/status.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list unstructured.UnstructuredList
	if err := yaml.Unmarshal(content, &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestStatusIsWhatTheOriginalWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c, err := controlplane.Start(t.Context(), controlplane.Options{ImageScanner: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	digests := pushTags(t, c, "0.9.0", "1.0.0", "1.1.0", "1.2.0-rc.1", "latest", "v1.3.0", "1.1.0.sig")
	replayRecording(t, c)

	concrete := strings.NewReplacer(
		"127.0.0.1:5050", c.Registry.Host(),
		"sha256:35dc1c76f63cd81201420607d87a28a1e44234cd8efb96dacd40868c14432b53", digests["v1.3.0"],
		"sha256:a2a62fa79a46c3fc829dcd2b7fdb7fdc60d5ea6d8db40033518f64bfa19b0f36", digests["1.1.0"],
	)
	for _, original := range recording(t) {
		t.Run(original.GetKind()+" "+original.GetName(), func(t *testing.T) {
			want := withoutAccidents(t, original, concrete)
			var got map[string]any
			for range 100 {
				written := original.DeepCopy()
				if err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(&original), written); err != nil {
					t.Fatal(err)
				}
				if got = withoutAccidents(t, *written, concrete); cmp.Equal(want, got) {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Errorf("status differs (- original, + stand-in):\n%s", cmp.Diff(want, got))
		})
	}
}

var anyTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`)

// withoutAccidents drops what differs from run to run, and nothing else.
func withoutAccidents(t *testing.T, object unstructured.Unstructured, concrete *strings.Replacer) map[string]any {
	t.Helper()
	for _, field := range []string{"annotations", "creationTimestamp", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	var result map[string]any
	if err := json.Unmarshal(anyTime.ReplaceAll([]byte(concrete.Replace(string(text))), []byte(`"a time"`)), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// pushTags pushes something else under each tag.
func pushTags(t *testing.T, c *controlplane.ControlPlane, tags ...string) map[string]string {
	t.Helper()
	for _, tag := range tags {
		a := controlplane.Artifact{Repository: "podinfo", Tag: tag, Files: map[string]string{"version": tag}}
		if _, err := c.Registry.Push(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	digests, err := c.Registry.Digests(t.Context(), "podinfo")
	if err != nil {
		t.Fatal(err)
	}
	return digests
}

// replayRecording does what was done when the original was recorded.
func replayRecording(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	wide := policy("podinfo", imagev1.ReflectIfNotPresent, ">=1.0.0 <1.2.0")
	for _, o := range []client.Object{
		&imagev1.ImageRepository{ObjectMeta: metav1.ObjectMeta{Name: "podinfo", Namespace: "default"}, Spec: imagev1.ImageRepositorySpec{
			Image: c.Registry.Host() + "/podinfo", Insecure: true, Interval: metav1.Duration{Duration: 10 * time.Second},
		}},
		wide,
		policy("nothing-matches", imagev1.ReflectNever, ">=9.0.0"),
	} {
		if err := c.Client().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	awaitTag(t, c, wide, "1.1.0")
	patch := client.MergeFrom(wide.DeepCopy())
	wide.Spec.Policy.SemVer.Range = ">=1.0.0"
	if err := c.Client().Patch(t.Context(), wide, patch); err != nil {
		t.Fatal(err)
	}
	awaitTag(t, c, wide, "v1.3.0")
}

func policy(name string, digests imagev1.ReflectionPolicy, versions string) *imagev1.ImagePolicy {
	return &imagev1.ImagePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: imagev1.ImagePolicySpec{
			ImageRepositoryRef:     meta.NamespacedObjectReference{Name: "podinfo"},
			DigestReflectionPolicy: digests,
			Policy:                 imagev1.ImagePolicyChoice{SemVer: &imagev1.SemVerPolicy{Range: versions}},
		},
	}
}

func awaitTag(t *testing.T, c *controlplane.ControlPlane, p *imagev1.ImagePolicy, tag string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if err := c.Client().Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			t.Fatal(err)
		}
		if p.Status.LatestRef != nil && p.Status.LatestRef.Tag == tag {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the policy %s never chose %s: %+v", p.Name, tag, p.Status)
}

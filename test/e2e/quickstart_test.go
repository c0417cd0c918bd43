// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// TestQuickStartGoesAsItsPageSays applies the manifest of docs/quickstart.md, runs the
// commands of the page in their order, and awaits what the page shows after each. Only the
// registry is another one, and the bake is shorter.
func TestQuickStartGoesAsItsPageSays(t *testing.T) {
	t.Parallel()
	page := readQuickStart(t)
	s := &env.Env{App: scenario.NewApp("podinfo", "podinfo"), T: t, Plane: plane}
	s.Repository = "stefanprodan/manifests/podinfo"
	for _, version := range []string{"6.7.0", "6.7.1", "6.8.0", "latest"} {
		s.Push(s.Release(version))
	}
	for _, object := range page.manifest(t, plane.Registry.Host()) {
		s.Create(object)
	}
	var created sync.Once
	for _, step := range page.steps {
		if step.patch != nil {
			if err := plane.Client().Patch(t.Context(), step.object, step.patch, client.FieldOwner("on-call")); err != nil {
				t.Fatalf("%s: %v", step.command, err)
			}
		}
		if step.want == nil {
			continue
		}
		env.Eventually(t, step.command, func() (bool, string) {
			shown := page.shown(t, step.command)
			return cmp.Equal(step.want, shown), cmp.Diff(step.want, shown)
		})
		created.Do(func() { wasCreatedWith(s, "6.7.1") })
	}
}

// quickStart is what docs/quickstart.md says.
type quickStart struct {
	yaml  string
	steps []quickStep
}

// quickStep is a command that changes or shows something, and what is shown afterwards,
// line by line.
type quickStep struct {
	command string
	object  client.Object
	patch   client.Patch
	want    [][]string
}

var (
	block   = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	patches = regexp.MustCompile(`^kubectl -n podinfo patch (\w+) (\w+) (?:--field-manager=on-call )?--type merge -p '(.*)'$`)
	printed = regexp.MustCompile(`-o jsonpath='(.*)'$`)
)

// resources are the kinds that the page patches.
var resources = map[string]schema.GroupVersionKind{
	"imagepolicy": {Group: "image.toolkit.fluxcd.io", Version: "v1", Kind: "ImagePolicy"},
	"rolloutgate": v1alpha1.GroupVersion.WithKind("RolloutGate"),
	"rollout":     v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind),
}

func readQuickStart(t *testing.T) quickStart {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "quickstart.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, _, _ := strings.Cut(string(text), "## 6. Clean up")
	var q quickStart
	for _, found := range block.FindAllStringSubmatch(page, -1) {
		switch content := strings.TrimSpace(found[2]); found[1] {
		case "yaml":
			q.yaml = found[2]
		case "sh":
			q.steps = append(q.steps, stepOf(t, content))
		case "text":
			last := &q.steps[len(q.steps)-1]
			last.want = controlplane.Cells(strings.ReplaceAll(content, "1m0s", shortBake))
		}
	}
	q.steps = q.steps[2:] // the commands that create what the manifest has, and kubectl apply
	if len(q.steps) < 5 {
		t.Fatalf("the page has only %d steps", len(q.steps))
	}
	return q
}

func stepOf(t *testing.T, command string) quickStep {
	t.Helper()
	step := quickStep{command: command}
	if words := patches.FindStringSubmatch(command); words != nil {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(resources[words[1]])
		object.SetNamespace("podinfo")
		object.SetName(words[2])
		step.object, step.patch = object, client.RawPatch(types.MergePatchType, []byte(words[3]))
	}
	return step
}

// shortBake is the bake time in the test, as messages show it.
const shortBake = "3s"

// manifest returns the objects of the page, which is also a sample.
func (q quickStart) manifest(t *testing.T, registry string) []client.Object {
	t.Helper()
	sample, err := os.ReadFile(filepath.Join(parts.Root(), "config", "samples", "quickstart", "podinfo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(sample), q.yaml); diff != "" {
		t.Errorf("the page does not show config/samples/quickstart/podinfo.yaml (-sample +page):\n%s", diff)
	}
	text := strings.NewReplacer("ghcr.io", registry, "bakeTime: 1m", "bakeTime: "+shortBake).Replace(q.yaml)
	objects := env.Decode(t, text)
	for _, object := range objects {
		if kind := object.GetObjectKind().GroupVersionKind().Kind; kind == "ImageRepository" || kind == "OCIRepository" {
			if err := unstructured.SetNestedField(object.(*unstructured.Unstructured).Object, true, "spec", "insecure"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return objects
}

// shown returns what a command shows. After a change it is the table of Rollouts.
func (q quickStart) shown(t *testing.T, command string) [][]string {
	t.Helper()
	if template := printed.FindStringSubmatch(command); template != nil {
		return controlplane.Cells(printRollout(t, template[1]))
	}
	table, err := plane.TableOf(t.Context(), "podinfo", v1alpha1.GroupVersion.WithResource("rollouts"))
	if err != nil {
		t.Fatal(err)
	}
	return controlplane.Cells(controlplane.FormatTable(table))
}

// printRollout prints the Rollout with a template, as kubectl does.
func printRollout(t *testing.T, template string) string {
	t.Helper()
	rollout := &unstructured.Unstructured{}
	rollout.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
	printer := jsonpath.New("rollout").AllowMissingKeys(true)
	var text bytes.Buffer
	err := errors.Join(
		plane.Client().Get(t.Context(), client.ObjectKey{Namespace: "podinfo", Name: "podinfo"}, rollout),
		printer.Parse(template), printer.Execute(&text, rollout.Object))
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

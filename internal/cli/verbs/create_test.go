// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

// The commands of the quick start create what its manifest has.
func TestQuickStartCreatesItsManifest(t *testing.T) {
	page, err := os.ReadFile("../../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	var created bytes.Buffer
	for _, line := range regexp.MustCompile(`(?m)^kubectl rollouts (create .*)$`).FindAllStringSubmatch(string(page), -1) {
		created.WriteString(exported(t, strings.Fields(line[1])))
	}
	sample, err := os.ReadFile("../../../config/samples/quickstart/podinfo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(sorted(t, sample), sorted(t, created.Bytes())); diff != "" {
		t.Errorf("what the commands create (-manifest +created):\n%s", diff)
	}
}

// exported returns what a command writes for Git if the cluster is empty.
func exported(t *testing.T, args []string) string {
	t.Helper()
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, err bytes.Buffer
	p := program.New("kubectl rollouts", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &err})
	p.Kubeconfig.KubeConfig = &empty
	p.Connect = func(context.Context) (program.Cluster, error) {
		c, _, err := openRecording(empty, filepath.Join(t.TempDir(), "patch"))
		return c, err
	}
	if code := run(t.Context(), p, append(args, "--export")); code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, err.String())
	}
	return out.String()
}

// sorted returns the objects of manifests without namespaces, which no verb creates.
func sorted(t *testing.T, content []byte) []client.Object {
	t.Helper()
	scheme, _, err := program.NewScheme(imagev1.GroupVersion.Version)
	if err != nil {
		t.Fatal(err)
	}
	all, err := snapshot.Decode(scheme, content)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(object client.Object) bool { _, is := object.(*corev1.Namespace); return is })
	slices.SortFunc(all, func(a, b client.Object) int {
		return cmp.Compare(a.GetObjectKind().GroupVersionKind().Kind, b.GetObjectKind().GroupVersionKind().Kind)
	})
	return all
}

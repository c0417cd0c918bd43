// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

func TestEverySampleHasOnlyFieldsOfItsKind(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(
		clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), environmentsv1.AddToScheme(scheme),
		imagev1.AddToScheme(scheme), sourcev1.AddToScheme(scheme), generatorv1.AddToScheme(scheme), kustomizev1.AddToScheme(scheme), helmv2.AddToScheme(scheme),
	)).To(Succeed())

	ours := map[string]int{}
	for _, name := range slices.Concat(sampleNames(t, "*.yaml"), sampleNames(t, "*/*.yaml"), sampleNames(t, "*/*/*.yaml")) {
		content, err := os.ReadFile(filepath.Join("samples", name))
		g.Expect(err).NotTo(HaveOccurred())
		for _, document := range documents(t, content) {
			var meta metav1.TypeMeta
			g.Expect(yaml.Unmarshal(document, &meta)).To(Succeed(), name)
			object, err := scheme.New(meta.GroupVersionKind())
			g.Expect(err).NotTo(HaveOccurred(), name)
			g.Expect(yaml.UnmarshalStrict(document, object)).To(Succeed(), name)
			if group := meta.GroupVersionKind().GroupVersion(); group == v1alpha1.GroupVersion || group == environmentsv1.GroupVersion {
				ours[meta.Kind]++
			}
		}
	}
	g.Expect(ours).To(Equal(map[string]int{
		"Rollout": 16, "RolloutGate": 6, "ClusterRolloutGate": 1, "RolloutApproval": 1, "HealthCheck": 6, "RolloutSchedule": 7, "ClusterRolloutSchedule": 2, "Environment": 5,
		"ReleaseQuarantine": 1, "ClusterReleaseQuarantine": 1,
	}))
}

// A calendar of holidays is made of a file, without a network, and what cannot be made of it
// is no schedule.
func TestHolidaysAreMadeOfAnICalendarFile(t *testing.T) {
	g := NewWithT(t)
	awk := func(calendar string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "awk", "-f", "holidays.awk", calendar)
		cmd.Dir = filepath.Join("samples", "calendar")
		out, err := cmd.Output()
		return string(out), err
	}
	want, err := os.ReadFile(filepath.Join("samples", "calendar", "holidays.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	got, err := awk("holidays.ics")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(string(want)))

	for _, event := range []string{"DTSTART;VALUE=DATE:20270101\nRRULE:FREQ=YEARLY", "DTSTART:20270101T090000Z"} {
		file := filepath.Join(t.TempDir(), "holidays.ics")
		g.Expect(os.WriteFile(file, []byte("BEGIN:VEVENT\n"+event+"\nEND:VEVENT\n"), 0o600)).To(Succeed())
		_, err := awk(file)
		g.Expect(err).To(HaveOccurred(), event)
	}
}

func TestEverySampleIsListedInTheKustomization(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join("samples", "kustomization.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	g.Expect(yaml.Unmarshal(content, &kustomization)).To(Succeed())
	g.Expect(kustomization.Resources).To(ConsistOf(sampleNames(t, "*.yaml")))
}

// sampleNames returns the names of the files with sample manifests, relative to the
// folder samples.
func sampleNames(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("samples", pattern))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		if name := strings.TrimPrefix(path, "samples/"); name != "kustomization.yaml" {
			names = append(names, name)
		}
	}
	return names
}

// documents splits a stream of YAML documents.
func documents(t *testing.T, stream []byte) [][]byte {
	t.Helper()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(stream)))
	var all [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, document)
	}
}

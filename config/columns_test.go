// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// crd contains the columns that kubectl get shows of a kind, and the categories by which
// users can list it.
type crd struct {
	Spec struct {
		Names struct {
			Categories []string `json:"categories"`
		} `json:"names"`
		Versions []struct {
			Columns []struct {
				Name     string `json:"name"`
				Path     string `json:"jsonPath"`
				Priority int    `json:"priority"`
			} `json:"additionalPrinterColumns"`
		} `json:"versions"`
	} `json:"spec"`
}

func TestKubectlGetShowsWhatStandsStill(t *testing.T) {
	schedule := []string{"Action", "Active", "Matching", "Next", "Age", "Ready", "Status"}
	quarantine := []string{"Tag", "Image", "Phase", "Until", "Age"}
	for file, want := range map[string][]string{
		"crd/bases/kuberik.com_rollouts.yaml": {"Version", "Since", "BakeStatus", "Gates", "Candidate", "Suspended", "Pinned",
			"Age", "Ready", "Status"},
		"crd/bases/kuberik.com_healthchecks.yaml":                                    {"Class", "Status", "Age", "Message"},
		"crd/bases/kuberik.com_rolloutschedules.yaml":                                schedule,
		"crd/bases/kuberik.com_clusterrolloutschedules.yaml":                         schedule,
		"crd/bases/kuberik.com_releasequarantines.yaml":                              quarantine,
		"crd/bases/kuberik.com_clusterreleasequarantines.yaml":                       quarantine,
		"crd/bases/environments.kuberik.com_environments.yaml":                       {"Environment", "Version", "After", "Age", "Ready", "Status"},
		"coordination/crd/bases/apps.containerinfra.nl_deploymentcoordinations.yaml": {"Active", "Ready", "Progressing", "Age", "Status"},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			kind := read(t, file)
			g.Expect(kind.columns()).To(Equal(want))
			g.Expect(kind.Spec.Names.Categories).To(ContainElement("fluxcd-rollouts"))
		})
	}
}

// What follows a sentence is off the screen.
func TestSentencesAreInTheLastColumn(t *testing.T) {
	files, err := filepath.Glob("*/bases/*.yaml")
	more, err2 := filepath.Glob("*/crd/bases/*.yaml")
	if files = append(files, more...); err != nil || err2 != nil || len(files) < 9 {
		t.Fatal(files, err, err2)
	}
	for _, file := range files {
		kind := read(t, file)
		columns := kind.columns()
		for _, column := range kind.Spec.Versions[0].Columns {
			if isSentence := strings.HasSuffix(column.Path, ".message"); isSentence && column.Priority == 0 && column.Name != columns[len(columns)-1] {
				t.Errorf("%s: the columns after %s are off the screen: %v", file, column.Name, columns)
			}
		}
	}
}

func TestColumnsOfARolloutShowItsSpec(t *testing.T) {
	g := NewWithT(t)
	kind, paths := read(t, "crd/bases/kuberik.com_rollouts.yaml"), map[string]string{}
	for _, column := range kind.Spec.Versions[0].Columns {
		paths[column.Name] = column.Path
	}
	g.Expect(paths).To(HaveKeyWithValue("Suspended", ".spec.suspend"))
	g.Expect(paths).To(HaveKeyWithValue("Pinned", ".spec.wantedVersion"))
}

func TestColumnsShowWhatReadySays(t *testing.T) {
	for _, file := range []string{
		"crd/bases/kuberik.com_rollouts.yaml", "crd/bases/kuberik.com_rolloutschedules.yaml", "crd/bases/kuberik.com_clusterrolloutschedules.yaml",
		"crd/bases/environments.kuberik.com_environments.yaml",
		"coordination/crd/bases/apps.containerinfra.nl_deploymentcoordinations.yaml",
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			paths := map[string]string{}
			for _, column := range read(t, file).Spec.Versions[0].Columns {
				paths[column.Name] = strings.ReplaceAll(column.Path, "'", `"`)
			}
			g.Expect(paths).To(HaveKeyWithValue("Ready", `.status.conditions[?(@.type=="Ready")].status`))
			g.Expect(paths).To(HaveKeyWithValue("Status", `.status.conditions[?(@.type=="Ready")].message`))
		})
	}
}

func read(t *testing.T, file string) crd {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kind crd
	if err := yaml.Unmarshal(text, &kind); err != nil {
		t.Fatal(err)
	}
	return kind
}

// columns returns the columns that are shown without -o wide.
func (c crd) columns() []string {
	var names []string
	for _, column := range c.Spec.Versions[0].Columns {
		if column.Priority == 0 {
			names = append(names, column.Name)
		}
	}
	return names
}

// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// With the samples, the Deployment with the lower order rolls out first.
func TestSamplesRollOutInTurn(t *testing.T) {
	s := openStreet(t)
	s.play()
	for _, sample := range s.samples() {
		if sample.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
			continue // the street has its own namespace
		}
		sample.SetNamespace(s.Namespace)
		s.Expect(s.Create(s.Ctx, sample)).To(Succeed())
	}
	s.idles("shop", "cart", "store")
	for _, name := range []string{"cart", "store"} {
		s.Eventually(func() map[string]int { return s.versions(name) }).Should(Equal(map[string]int{"6.9.0": 1}))
	}
	stuck, fix := s.stuck()
	s.edit([]string{"cart", "store"}, version(stuck))
	s.Eventually(func() []string { return s.unpaused() }).Should(HaveLen(1))
	fix()
	s.idles("shop", "cart", "store")
}

// samples returns the sample manifests, decoded strictly.
func (s *street) samples() []client.Object {
	paths, err := filepath.Glob(filepath.Join(parts.Root(), "config", "coordination", "samples", "*.yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	var all []client.Object
	for _, path := range paths {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		content, err := os.ReadFile(path)
		s.Expect(err).NotTo(HaveOccurred())
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			s.Expect(err).NotTo(HaveOccurred())
			var kind metav1.TypeMeta
			s.Expect(yaml.Unmarshal(document, &kind)).To(Succeed(), path)
			object, err := testScheme().New(kind.GroupVersionKind())
			s.Expect(err).NotTo(HaveOccurred(), path)
			s.Expect(yaml.UnmarshalStrict(document, object)).To(Succeed(), path)
			all = append(all, object.(client.Object))
		}
	}
	s.Expect(len(all)).To(BeNumerically(">=", 3))
	return all
}

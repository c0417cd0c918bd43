// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// The samples are what the guide says: somebody of security approves by their role alone, and
// nobody else does.
func TestSamplesLetOnlySecurityApproveAsSecurity(t *testing.T) {
	s := open(t, "approvals").inForce()
	var approval *unstructured.Unstructured
	for _, o := range samples(t) {
		if o.GetNamespace() != "" {
			o.SetNamespace(s.namespace)
		} else {
			t.Cleanup(func() { _ = everything.Delete(context.Background(), o) })
		}
		if o.GetKind() == "RolloutApproval" {
			approval = o
			continue
		}
		apply(s, o)
	}
	create := func(groups ...string) func() error {
		return func() error { return s.as("alice", groups...).Create(t.Context(), approval.DeepCopy()) }
	}
	s.Expect(create("web-team")()).To(MatchError(ContainSubstring("alice may not approve:security rollouts/podinfo")))
	s.Eventually(create("security")).Should(Succeed())
}

// samples returns the manifests of config/samples/approvals.
func samples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(parts.Root(), "config", "samples", "approvals", "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var all []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			o := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal(document, &o.Object)).To(Succeed(), file)
			all = append(all, o)
		}
	}
	g.Expect(all).To(HaveLen(7))
	return all
}

// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestLogSaysOnceWhatTheEventsSay(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "operations.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s, log := open(t), &fixture.Log{}
	s.Ctx = ctrl.LoggerInto(s.Ctx, log.For("deploymentcoordination", ctrl.Request{NamespacedName: types.NamespacedName{Name: s.Namespace}}))
	s.deployed("a")
	s.deployed("b")
	s.coordinate("shop")
	s.rest()
	s.edit("b", version("2"))
	s.rest()
	s.finishes("b")
	s.rest()

	var logged []fixture.Event
	for _, line := range log.Info() {
		logged = append(logged, fixture.Event{
			On: "shop", Type: line.Values["type"].(string), Reason: line.Values["reason"].(string), Message: line.Message})
	}
	s.Expect(logged).To(Equal(s.Events.All()))
	s.Expect(logged).NotTo(BeEmpty())
	s.Expect(log.Lacks(string(page), "deploymentcoordination", s.Namespace)).To(BeEmpty(), "but: %v", logged)

	log.Forget()
	s.rest()
	s.Expect(log.Info()).To(BeEmpty(), "at rest")
	s.Expect(log.All()).To(ConsistOf(HaveField("Values", HaveKeyWithValue("action", "Nothing"))), "the pass")
}

// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// said returns the transitions in the log, without the messages.
func (s *testEnv) said() []string {
	var all []string
	for _, line := range s.Log.Info() {
		if reason, isTransition := line.Values["reason"]; isTransition {
			all = append(all, fmt.Sprint(line.Values["StatefulSet"], " ", reason))
		}
	}
	return all
}

func TestEachTransitionOfAGroupIsLoggedOnce(t *testing.T) {
	s := open(t, zone("zone-a", 1))
	s.play(t)
	s.release("2.0.0", "zone-a")
	s.runs("2.0.0", "zone-a")
	on := fmt.Sprintf("%s/zone-a ", s.Namespace)
	want := []string{on + "RolloutStarted", on + "PodReplaced", on + "RolloutFinished"}
	s.Eventually(s.said).Should(Equal(want))
	s.Consistently(s.said).Should(Equal(want), "at rest")
	s.Expect(slices.ContainsFunc(s.Log.All(), func(line fixture.Line) bool {
		return line.Level == 1 && line.Values["action"] == "Done" && line.Values["ended"] != ""
	})).To(BeTrue(), "a line for a pass")
}

func TestLogIsAsThePageShowsIt(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "operations.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s := open(t, zone("zone-a", 1), zone("zone-b", 1, strategy("RollingUpdate")))
	s.play(t)
	s.Eventually(func() ([]string, error) { return s.Log.Lacks(string(page), "statefulsetrollout", s.Namespace) }).Should(BeEmpty(),
		func() string { return fmt.Sprint(s.Log.Info()) })
}

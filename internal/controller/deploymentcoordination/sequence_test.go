// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"testing"

	. "github.com/onsi/gomega"
)

// This is how people of the first implementation create them: paused, with no
// annotation.
func TestDeploymentsThatWereCreatedPausedRollOutOneAfterTheOther(t *testing.T) {
	s := openStreet(t)
	s.deploy([]string{"c", "a", "b"}, paused(true), replicas(2))
	seen := s.observe()
	s.coordinate("shop")
	s.play()

	s.idles("shop", "a", "b", "c")
	s.Expect(seen.took()).To(Equal([]string{"a", "b", "c"}))
	s.Expect(seen.atOnce()).To(HaveLen(1))
	for _, name := range []string{"a", "b", "c"} {
		s.Expect(s.deployment(name).Spec.Paused).To(BeTrue(), "nothing is left to do for %s", name)
		s.Expect(s.versions(name)).To(Equal(map[string]int{"1": 2}))
	}

	s.edit([]string{"c", "b"}, version("2"))
	s.idles("shop", "a", "b", "c")
	s.Expect(seen.took()).To(Equal([]string{"a", "b", "c", "b", "c"}), "only those that changed take turns")
	s.Expect(seen.atOnce()).To(HaveLen(1))
	s.Expect(s.versions("a")).To(Equal(map[string]int{"1": 2}))
	s.Expect(s.versions("c")).To(Equal(map[string]int{"2": 2}))
}

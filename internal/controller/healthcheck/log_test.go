// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

func TestLogIsAsThePageShowsIt(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "operations.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s := openShop(t, testPlane.RESTConfig(), nil)
	s.deploy(1)
	s.Eventually(func() ([]string, error) { return s.Log.Lacks(string(page), "healthcheck", s.check.Namespace) }).Should(BeEmpty(),
		func() string { return fmt.Sprint(s.Log.Info()) })
}

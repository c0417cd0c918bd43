// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// The README shows a healthy, a held and a failed Rollout, as the command line prints them.
func TestListIsAsTheReadmeShowsIt(t *testing.T) {
	s := open(t)
	held := map[string]string{"app": "checkout"}
	for _, name := range []string{"checkout", "payments", "web"} {
		rollout := fixture.MakeRollout(name).BakeTime(10 * time.Minute)
		if name == "payments" {
			rollout = rollout.SelectAllChecks()
		}
		object := rollout.Obj()
		object.Labels = map[string]string{"app": name}
		s.Add(fixture.MakeScan(name).Found("2.4.0").Obj(), fixture.MakePolicy(name).Latest("2.4.0").Obj(),
			fixture.MakeRepository(name).DrivenBy(name).Obj(), fixture.MakeKustomization(name).Obj(), object)
	}
	s.Add(fixture.MakeHealthCheck("latency").Obj(), fixture.MakeSchedule("year-end").Deny().Selecting(held).
		Rules(v1alpha1.ScheduleRule{Name: "freeze", DateRange: &v1alpha1.DateRange{Start: "2026-03-01", End: "2026-03-08"}}).Obj())
	for _, name := range []string{"checkout", "payments", "web"} {
		s.deploy(name)
	}
	s.Pass(10 * time.Minute)
	for _, name := range []string{"checkout", "payments", "web"} {
		s.rest(name)
	}
	for _, name := range []string{"checkout", "payments"} {
		s.release(name, "2.5.0")
		s.deploy(name)
	}
	s.checkFails("latency", "the 99th percentile is 1.2 s, and at most 0.5 s is allowed", s.Clock.Now())
	s.rest("payments")

	streams, _, printed, _ := genericiooptions.NewTestIOStreams()
	get := verbs.NewRoot(program.New("kubectl rollouts", streams))
	get.SetArgs([]string{"get", "--namespace=" + s.Namespace, "--kubeconfig=" + testPlane.Kubeconfig()})
	s.Expect(get.ExecuteContext(s.Ctx)).To(Succeed())
	page, err := os.ReadFile(filepath.Join(parts.Root(), "README.md"))
	s.Expect(err).NotTo(HaveOccurred())
	_, shown, _ := strings.Cut(string(page), "$ kubectl rollouts get -n shop\n")
	shown, _, _ = strings.Cut(shown, "```")
	s.Expect(words(shown)).To(Equal(words(strings.ReplaceAll(printed.String(), s.Namespace, "shop"))), printed.String())
}

// words returns the words of a table without ages. Where its lines are broken does not matter.
func words(table string) []string {
	return slices.DeleteFunc(strings.Fields(table), regexp.MustCompile(`^\d+[smhd]$`).MatchString)
}

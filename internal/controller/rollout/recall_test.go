// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// openRecall opens an env as in the guide: the Rollout shop reports, shop-eu takes the same
// images, and both run 1.1.0.
func openRecall(t *testing.T) *testEnv {
	t.Helper()
	bakes := func(name string) *fixture.RolloutBuilder { return fixture.MakeRollout(name).BakeTime(10 * time.Minute) }
	first, second := bakes("shop").SelectAllChecks().Obj(), bakes("shop-eu").Obj()
	first.Spec.Rollback = &v1alpha1.RolloutRollback{}
	first.Spec.Quarantine = &v1alpha1.RolloutQuarantine{}
	second.Spec.ReleasesImagePolicy.Name = "shop"
	s := openAlone(t, fixture.MakeScan("shop").Found("1.1.0").Obj(), fixture.MakePolicy("shop").Latest("1.1.0").Obj(), first, second,
		fixture.MakeRepository("shop").DrivenBy("shop").Obj(), fixture.MakeRepository("shop-eu").DrivenBy("shop-eu").Obj(),
		fixture.MakeHealthCheck("error-rate").Obj())
	s.reconciler.late.quarantines.Store(true)
	s.deployBoth()
	s.release("shop", "1.2.0")
	s.reflects(digestOf("1.2.0"))
	s.deploy("shop")
	s.checkFails("error-rate", "0.0312, 0.0298, 0.0305 (3 of 3 bad; value <= 0.01)", s.Clock.Now())
	s.rest("shop")
	s.rest("shop-eu")
	return s
}

func (s *testEnv) deployBoth() {
	s.deploy("shop")
	s.deploy("shop-eu")
	s.Pass(10 * time.Minute)
	s.rest("shop")
	s.rest("shop-eu")
}

// TestRecallIsAsTheGuideShowsIt compares what the guide shows with what happens. Only what
// counts from now, the namespace and the UIDs differ.
func TestRecallIsAsTheGuideShowsIt(t *testing.T) {
	s := openRecall(t)
	s.guideShows("releasequarantines", "sha256-")
	reported := s.quarantine()
	failure := &reported.Status.Failures[0]
	failure.Rollout.UID = guidesRollout
	failure.Message = strings.ReplaceAll(failure.Message, s.Namespace, "shop")
	shown := &v1alpha1.ReleaseQuarantine{}
	s.Expect(yaml.UnmarshalStrict([]byte(between(s.guide(), "-o yaml\n```\n\n```yaml\n", "```")), shown)).To(Succeed())
	s.Expect(shown.Labels).To(Equal(reported.Labels))
	s.Expect(shown.Spec).To(Equal(reported.Spec))
	s.Expect(shown.Status).To(BeComparableTo(reported.Status))
	s.Expect(s.guide()).To(ContainSubstring("\n1.2.0: " + s.rollout("shop-eu").Status.ReleaseCandidates[0].Holds[0].Message + "\n"))

	s.deployBoth()
	s.guideShows("releasequarantines", "sha256-")
	s.Change(reported, func(o client.Object) { o.(*v1alpha1.ReleaseQuarantine).Spec.Lifted = true })
	s.ChangeStatus(reported, func(o client.Object) {
		q := o.(*v1alpha1.ReleaseQuarantine)
		q.Status = quarantine.Settle(&q.Spec, q.Status, q.Generation, s.Clock.Now())
	})
	s.guideShows("releasequarantines", "sha256-")
	s.rest("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{4, "1.2.0", v1alpha1.BakeDeploying}))
}

func TestPinOfARecalledReleaseIsAsTheGuideShowsIt(t *testing.T) {
	s := openRecall(t)
	recall := &v1alpha1.ClusterReleaseQuarantine{}
	s.Expect(yaml.UnmarshalStrict([]byte(between(s.guide(), "use a\nClusterReleaseQuarantine:\n\n```yaml\n", "```")), recall)).To(Succeed())
	s.LabelNamespace("environment", recall.Spec.NamespaceSelector.MatchLabels["environment"])
	s.Expect(s.Create(s.Ctx, recall)).To(Succeed())
	t.Cleanup(func() { _ = testClient.Delete(context.WithoutCancel(s.Ctx), recall) })
	s.pin("shop-eu", new("1.2.0"))
	s.rest("shop-eu")
	s.Expect(s.condition("shop-eu", v1alpha1.StalledCondition).Reason).To(Equal(v1alpha1.QuarantinedReason))
	s.guideShows("rollouts", "shop-eu")
}

// quarantine returns the quarantine of 1.2.0.
func (s *testEnv) quarantine() *v1alpha1.ReleaseQuarantine {
	name, _ := quarantine.Name(digestOf("1.2.0"))
	q := &v1alpha1.ReleaseQuarantine{}
	s.Expect(s.Get(s.Ctx, s.Key(name), q)).To(Succeed())
	return q
}

// guidesRollout is the UID of a Rollout in the guide.
const guidesRollout = "30a3143f-7f85-4b64-93dc-db46f6f0b36c"

// guide returns the text of the guide.
func (s *testEnv) guide() string {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "guides", "recall.md"))
	s.Expect(err).NotTo(HaveOccurred())
	return string(page)
}

// guideShows checks that the guide shows the columns, and the lines of objects whose names
// begin with a prefix, as kubectl prints them.
func (s *testEnv) guideShows(resource, prefix string) {
	table, err := testPlane.TableOf(s.Ctx, s.Namespace, v1alpha1.GroupVersion.WithResource(resource))
	s.Expect(err).NotTo(HaveOccurred())
	shown := controlplane.Cells(s.guide())
	for _, line := range controlplane.Cells(controlplane.FormatTable(table)) {
		if len(line) > 0 && (line[0] == "NAME" || strings.HasPrefix(line[0], prefix)) {
			s.Expect(shown).To(ContainElement(line))
		}
	}
}

// between returns the text between two others.
func between(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	found, _, _ := strings.Cut(rest, end)
	return found
}

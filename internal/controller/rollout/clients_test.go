// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// dashboard is the field manager of the dashboard.
const dashboard = "rollout-dashboard"

// dashboardPatches sends a merge patch as the dashboard does.
func (s *testEnv) dashboardPatches(patch string) {
	s.Expect(s.Patch(s.Ctx, s.raw("shop"), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(dashboard))).To(Succeed())
}

func annotationPatch(key, value string) string {
	return `{"metadata":{"annotations":{"` + key + `":"` + value + `"}}}`
}

func TestNoPatchOfTheDashboardCostsAnAuthorTheSpec(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"pin":                  `{"spec":{"wantedVersion":"1.1.0"}}`,
		"force, without a pin": `{"spec":{"wantedVersion":null},"metadata":{"annotations":{"` + v1alpha1.ForceDeployAnnotation + `":"1.1.0"}}}`,
		"force the current":    annotationPatch(v1alpha1.ForceDeployAnnotation, "1.0.0"),
		"force the unknown":    annotationPatch(v1alpha1.ForceDeployAnnotation, "9.9.9"),
		"bypass":               annotationPatch(v1alpha1.BypassGatesAnnotation, "1.1.0"),
		"unblock":              annotationPatch(v1alpha1.UnblockFailedAnnotation, "true"),
		"retry":                annotationPatch(v1alpha1.RetryAnnotation, "2026-03-02T12:00:00Z"),
		"a user and a message": annotationPatch(v1alpha1.DeployUserAnnotation, "ann"),
	} {
		t.Run(name, func(t *testing.T) {
			objects := shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeGate("closed", "shop").Closed().Obj())
			s := open(t, append(objects[:4:4], objects[5:]...)...)
			s.Expect(s.apply(s.manifest("{releasesImagePolicy: {name: shop}, bakeTime: 10m, deployTimeout: 90m, releaseUpdateInterval: 1.5h}"))).To(Succeed())
			s.deployAndBake("shop")
			s.scanFinds("1.0.0", "1.1.0", "1.2.0")
			s.release("shop", "1.2.0")
			s.rest("shop")

			s.dashboardPatches(patch)
			asked := s.raw("shop")
			s.deployAndBake("shop")
			after := s.raw("shop")
			s.Expect(after.Object["spec"]).To(Equal(asked.Object["spec"]))
			s.Expect(after.Object["spec"]).To(And(HaveKeyWithValue("bakeTime", "10m"),
				HaveKeyWithValue("deployTimeout", "90m"), HaveKeyWithValue("releaseUpdateInterval", "1.5h")))
			s.Expect(after.GetGeneration()).To(Equal(asked.GetGeneration()))
			s.Expect(ownedFields(after)).To(BeEmpty(), "the controller owns its status only")
			s.Expect(ownersOf(after, "spec.wantedVersion")).To(BeElementOf([]string(nil), []string{dashboard}),
				"the dashboard offers pins as long as nobody else owns this")
			s.Expect(ownersOf(after, "spec.bakeTime")).To(Equal([]string{"somebody"}))
		})
	}
}

// ownersOf returns the field managers that own a field.
func ownersOf(o client.Object, field string) []string {
	var owners []string
	for _, entry := range o.GetManagedFields() {
		for _, owned := range fieldsOf(entry) {
			if owned == field {
				owners = append(owners, entry.Manager)
			}
		}
	}
	return owners
}

// TestEnvironmentSeesWhatItMayPromote reads, through upstream's types, what a
// controller that promotes between environments needs. It skips entries without id or
// revision, and stores the id in a key.
func TestEnvironmentSeesWhatItMayPromote(t *testing.T) {
	releases := []v1alpha1.VersionInfo{
		fixture.MakeRelease("1.0.0").Revision("aaa").Obj(), fixture.MakeRelease("1.1.0").Revision("bbb").Obj(),
		fixture.MakeRelease("1.2.0").Revision("ccc").Obj()}
	s := open(t, shopWith(baked().Releases(releases[:1]...), "1.0.0", fixture.MakeHealthCheck("smoke").Obj())...)
	s.Expect(s.reported()).To(BeEmpty())
	s.rest("shop")
	s.Expect(s.reported()).To(Equal([]string{"1 1.0.0 aaa Deploying"}))
	s.deploy("shop")
	s.Expect(s.reported()).To(Equal([]string{"1 1.0.0 aaa InProgress"}))
	s.deployAndBake("shop")
	s.Expect(s.reported()).To(Equal([]string{"1 1.0.0 aaa Succeeded"}))

	s.ChangeStatus(fixture.MakeRollout("shop").Obj(), func(o client.Object) {
		o.(*v1alpha1.Rollout).Status.AvailableReleases = releases
	})
	s.Add(fixture.MakeGate("ghd-test", "shop").Allow().Obj())
	s.release("shop", "1.1.0")
	s.release("shop", "1.2.0")
	s.rest("shop")
	s.Expect(s.reported()).To(Equal([]string{"candidate 1.2.0 ccc", "candidate 1.1.0 bbb", "1 1.0.0 aaa Succeeded"}))

	s.Change(fixture.MakeGate("ghd-test", "shop").Obj(), func(o client.Object) {
		allowed := []string{"1.1.0"}
		o.(*v1alpha1.RolloutGate).Spec.AllowedVersions = &allowed
	})
	s.fail()
	s.Expect(s.reported()).To(Equal([]string{"candidate 1.2.0 ccc", "2 1.1.0 bbb Failed", "1 1.0.0 aaa Succeeded"}))
	s.ask(v1alpha1.RetryAnnotation, "")
	s.rest("shop")
	s.Expect(s.reported()).To(Equal([]string{"candidate 1.2.0 ccc", "2 1.1.0 bbb Deploying", "1 1.0.0 aaa Succeeded"}))
	s.pinTo("1.2.0")
	s.rest("shop")
	s.Expect(s.reported()).To(Equal([]string{"3 1.2.0 ccc Deploying", "2 1.1.0 bbb Cancelled", "1 1.0.0 aaa Succeeded"}))
}

func TestManifestsThatPeopleHaveApplyUnchanged(t *testing.T) {
	text, err := os.ReadFile("testdata/manifests.yaml")
	s := open(t)
	s.Expect(err).NotTo(HaveOccurred())
	for _, manifest := range strings.Split(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		s.Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
		typed := map[string]client.Object{
			"Rollout": &v1alpha1.Rollout{}, "OCIRepository": &sourcev1.OCIRepository{}, "Kustomization": &kustomizev1.Kustomization{},
		}[object.GetKind()]
		s.Expect(yaml.UnmarshalStrict([]byte(manifest), typed)).To(Succeed(), object.GetName())
		object.SetNamespace(s.Namespace)
		s.Expect(s.apply(object)).To(Succeed(), object.GetName())
	}
	s.rest("my-app-rollout")
	s.Expect(s.condition("my-app-rollout", v1alpha1.ReleasesUpdatedCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.ImagePolicyNotFoundReason, "ImagePolicy " + s.Namespace +
			"/my-app-policy does not exist: create it in this namespace, or correct spec.releasesImagePolicy.name"}))

	selected := fixture.MakeHealthCheck("mine").Obj()
	selected.Labels = map[string]string{"app": "my-app"}
	s.Add(selected, fixture.MakeHealthCheck("other").Unhealthy().Obj())
	s.Add(fixture.MakeScan("my-app-policy").Found("2.0.0").Obj(), fixture.MakePolicy("my-app-policy").Latest("2.0.0").Obj())
	s.rest("my-app-rollout")
	s.Expect(s.carried("my-app-manifests")).To(Equal(map[string]string{"tag": "2.0.0"}))
	s.Expect(s.carried("my-app")).To(Equal(map[string]string{"APP_VERSION": "2.0.0"}))
	s.Expect(s.carried("my-system")).To(Equal(map[string]string{"BACKEND_VERSION": "2.0.0"}), "the others are for other Rollouts")

	s.fluxApplies()
	s.rest("my-app-rollout")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.Expect(s.reconcile("my-app-rollout").RequeueAfter).To(Equal(10 * time.Minute))
}

// reported returns what the status shows to such a controller, candidates first.
func (s *testEnv) reported() []string {
	wire, err := s.raw("shop").MarshalJSON()
	s.Expect(err).NotTo(HaveOccurred())
	var all []string
	_, err = fixture.ThroughUpstream(wire, func(r *fixture.UpstreamRollout) {
		for _, candidate := range r.Status.ReleaseCandidates {
			all = append(all, fmt.Sprintf("candidate %s %s", candidate.Tag, *candidate.Revision))
		}
		for _, entry := range r.Status.History {
			all = append(all, fmt.Sprintf("%d %s %s %s", *entry.ID, entry.Version.Tag, *entry.Version.Revision, *entry.BakeStatus))
		}
	})
	s.Expect(err).NotTo(HaveOccurred())
	return all
}

// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// manifest returns a Rollout as a user writes it, with the spec in YAML.
func (s *testEnv) manifest(spec string) *unstructured.Unstructured {
	text := "apiVersion: kuberik.com/v1alpha1\nkind: Rollout\nmetadata: {name: shop, namespace: " + s.Namespace + "}\nspec: " + spec
	object := map[string]any{}
	s.Expect(yaml.Unmarshal([]byte(text), &object)).To(Succeed())
	return &unstructured.Unstructured{Object: object}
}

// apply makes a server-side apply, which refuses unknown fields.
func (s *testEnv) apply(o *unstructured.Unstructured) error {
	return s.Apply(s.Ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("somebody"), client.ForceOwnership)
}

func TestAPIServerTakesARolloutOrSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const policy = "releasesImagePolicy: {name: shop}"
	for name, tt := range map[string]struct {
		spec      string
		rejection string // empty if it is accepted
	}{
		"the smallest":                    {spec: "{" + policy + "}"},
		"the one of the README":           {spec: "{" + policy + `, versionHistoryLimit: 10, releaseUpdateInterval: "5m", bakeTime: "10m", healthCheckSelector: {matchLabels: {app: shop}}}`},
		"the long form of the selector":   {spec: "{" + policy + ", healthCheckSelector: {selector: {matchLabels: {app: shop}}, namespaceSelector: {}}}"},
		"the short form, everywhere":      {spec: "{" + policy + ", healthCheckSelector: {matchExpressions: [{key: app, operator: Exists}], namespaceSelector: {}}}"},
		"a selector without any selector": {spec: "{" + policy + ", healthCheckSelector: {}}"},
		"an empty pin":                    {spec: "{" + policy + `, wantedVersion: ""}`},
		"durations of several parts":      {spec: "{" + policy + ", bakeTime: 1h30m, deployTimeout: 1.5h, releaseUpdateInterval: 100ms}"},
		"suspended":                       {spec: "{" + policy + ", suspend: true}"},
		"no policy":                       {spec: "{}", rejection: "spec.releasesImagePolicy: Required value"},
		"both forms, with labels":         {spec: "{" + policy + ", healthCheckSelector: {selector: {}, matchLabels: {app: shop}}}", rejection: "give either selector, or matchLabels and matchExpressions, not both"},
		"both forms, with expressions":    {spec: "{" + policy + ", healthCheckSelector: {selector: {}, matchExpressions: [{key: app, operator: Exists}]}}", rejection: "give either selector, or matchLabels and matchExpressions, not both"},
		"a bakeTime of days":              {spec: "{" + policy + ", bakeTime: 1d}", rejection: "spec.bakeTime"},
		"a negative deployTimeout":        {spec: "{" + policy + ", deployTimeout: -1m}", rejection: "spec.deployTimeout"},
		"the longest bakeTime there is":   {spec: "{" + policy + ", bakeTime: 2562047h}"},
		"a bakeTime that Go cannot hold":  {spec: "{" + policy + ", bakeTime: 2562048h}", rejection: "spec.bakeTime"},
		"a timeout that Go cannot hold":   {spec: "{" + policy + ", deployTimeout: 99999999999999999999s}", rejection: "spec.deployTimeout"},
		"an interval Go cannot hold":      {spec: "{" + policy + ", releaseUpdateInterval: 1h2562047h}", rejection: "spec.releaseUpdateInterval"},
		"a count that is no int32":        {spec: "{" + policy + ", versionHistoryLimit: 99999999999}", rejection: "spec.versionHistoryLimit"},
		"an interval without unit":        {spec: "{" + policy + `, releaseUpdateInterval: "5"}`, rejection: "spec.releaseUpdateInterval"},
		"a history of none":               {spec: "{" + policy + ", versionHistoryLimit: 0}", rejection: "spec.versionHistoryLimit"},
		"a retention of no days":          {spec: "{" + policy + ", availableReleasesRetentionDays: 0}", rejection: "spec.availableReleasesRetentionDays"},
		"a ledger of none":                {spec: "{" + policy + ", availableReleasesMinCount: 0}", rejection: "spec.availableReleasesMinCount"},
		"a field that does not exist":     {spec: "{" + policy + ", bakeTimes: 1m}", rejection: "bakeTimes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			err := s.apply(s.manifest(tt.spec))
			if tt.rejection == "" {
				s.Expect(err).NotTo(HaveOccurred())
				return
			}
			s.Expect(err).To(MatchError(ContainSubstring(tt.rejection)))
		})
	}
}

func TestNewRolloutIsNotTakenForReady(t *testing.T) {
	s := open(t)
	s.Expect(s.apply(s.manifest("{releasesImagePolicy: {name: shop}}"))).To(Succeed())
	s.Expect(s.rollout("shop").Status).To(Equal(v1alpha1.RolloutStatus{ObservedGeneration: -1}))
	s.Expect(s.kstatus("shop").String()).To(Equal("InProgress"))
}

func TestShortFormSelectsWhatTheLongFormSelects(t *testing.T) {
	t.Parallel()
	for name, selector := range map[string]string{
		"long":  "{selector: {matchLabels: {app: shop}}}",
		"short": "{matchLabels: {app: shop}}",
	} {
		t.Run(name, func(t *testing.T) {
			check := fixture.MakeHealthCheck("web").Healthy().Obj()
			check.Labels = map[string]string{"app": "shop"}
			s := open(t, fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj(), check,
				fixture.MakeHealthCheck("other").Healthy().Obj())
			s.Expect(s.apply(s.manifest("{releasesImagePolicy: {name: shop}, healthCheckSelector: " + selector + "}"))).To(Succeed())
			s.rest("shop")
			s.Expect(s.Wire.Writes()).To(Equal([]string{
				"patch Rollout/status shop", "patch HealthCheck/status web", "patch HealthCheck web"}))
		})
	}
}

func TestWritingTheStatusLeavesTheSpecAsItsAuthorWroteIt(t *testing.T) {
	s := open(t, fixture.MakeScan("shop").Obj(), fixture.MakePolicy("shop").Latest("1.0.0").Obj())
	s.Expect(s.apply(s.manifest("{releasesImagePolicy: {name: shop}, bakeTime: 10m}"))).To(Succeed())
	s.deployAndBake("shop")
	s.Expect(s.history("shop")).To(HaveLen(1))

	after := &unstructured.Unstructured{}
	after.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
	s.Expect(s.Get(s.Ctx, s.Key("shop"), after)).To(Succeed())
	s.Expect(after.Object["spec"]).To(Equal(map[string]any{
		"releasesImagePolicy": map[string]any{"name": "shop"}, "bakeTime": "10m"}), "not 10m0s")
	s.Expect(after.GetGeneration()).To(Equal(int64(1)))
}

// TestKubectlGetShows requests the table that kubectl prints.
func TestKubectlGetShows(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", fixture.MakeGate("approval", "shop").Closed().Obj())...)
	s.deploy("shop")
	s.release("shop", "1.1.0")
	s.rest("shop")

	row := s.table("rollouts")
	delete(row, "Age")
	delete(row, "Since")
	s.Expect(row).To(Equal(map[string]string{
		"Name": "shop", "Version": "1.0.0", "BakeStatus": "Succeeded", "BakeTime": "", "Gates": "False", "Candidate": "1.1.0", "Ready": "True",
		"Suspended": "", "Pinned": "",
		"Message": "the first release of this environment, from ImagePolicy shop",
		"Status":  "1.0.0: applied; 1.1.0 waits: not passing: RolloutGate approval",
	}))
	gate := s.table("rolloutgates")
	delete(gate, "Age")
	s.Expect(gate).To(Equal(map[string]string{"Name": "approval", "Rollout": "shop", "Passing": "false"}))
}

// With action Deny, a schedule that is not active is open, and one that cannot be
// evaluated is closed. The columns Ready and Status show the difference.
func TestKubectlGetShowsAScheduleThatCannotBeEvaluated(t *testing.T) {
	s := openLabelledShop(t, nil)
	c := s.AddSchedule(t, fixture.MakeSchedule("days").Zone("Mars/Olympus").Deny().Obj())
	s.tick(c)
	row := s.table("rolloutschedules")
	delete(row, "Age")
	s.Expect(row).To(Equal(map[string]string{
		"Name": "days", "Action": "Deny", "Active": "", "Matching": "1", "Next": "", "Ready": "False",
		"Status": `closed: spec.timezone "Mars/Olympus" is not a zone of the IANA database, such as Europe/Berlin`,
	}))
}

// table returns the first row of the output of kubectl get, by column.
func (s *testEnv) table(resource string) map[string]string {
	return s.tableOf(v1alpha1.GroupVersion.WithResource(resource))
}

func (s *testEnv) tableOf(resource schema.GroupVersionResource) map[string]string {
	table, err := testPlane.TableOf(s.Ctx, s.Namespace, resource)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(table.Rows).To(HaveLen(1))
	row := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		row[column.Name] = ""
		if cell := table.Rows[0].Cells[i]; cell != nil {
			row[column.Name] = fmt.Sprint(cell)
		}
	}
	return row
}

// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

const (
	policy = `
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: shop, namespace: shop}
`
	rollout = `
apiVersion: kuberik.com/v1alpha1
kind: Rollout
metadata: {name: shop, namespace: shop, labels: {app: shop}}
spec: {releasesImagePolicy: {name: shop}, deployTimeout: 15m}
`
	untagged = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: shop
  namespace: shop
  annotations: {rollout.kuberik.com/rollout: shop}
`
	repository = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: shop
  namespace: shop
  annotations: {rollout.kuberik.com/rollout: shop, kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}
spec: {ref: {tag: none-yet}}
`
	kustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop, namespace: shop}
spec: {wait: true, sourceRef: {kind: OCIRepository, name: shop}}
`
	namespace = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {env: production}}
`
	check = `
apiVersion: kuberik.com/v1alpha1
kind: HealthCheck
metadata: {name: smoke, namespace: tests, labels: {app: shop}}
spec: {class: smoke-test}
`
)

// described returns a rule and an object for each finding, and for each thing that was
// not checked, which has a question mark.
func described(result lint.Result) []string {
	var all []string
	for _, f := range result.Findings {
		all = append(all, f.Rule+" "+f.Object)
	}
	for _, n := range result.NotChecked {
		all = append(all, strings.TrimSpace(n.Rule+"? "+n.Object))
	}
	slices.Sort(all)
	return all
}

func join(documents ...string) string { return strings.Join(documents, "---") }

// change replaces one text by another one.
func change(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("%q is not in\n%s", from, text)
	}
	return strings.ReplaceAll(text, from, to)
}

func TestRulesDoNotGuess(t *testing.T) {
	bare := func(text string) string { return change(t, text, ", namespace: shop", "") }
	selecting := func(selector string) string {
		return change(t, rollout, "deployTimeout: 15m", "deployTimeout: 15m, healthCheckSelector: "+selector)
	}
	schedule := func(spec string) string {
		return "\napiVersion: kuberik.com/v1alpha1\nkind: ClusterRolloutSchedule\nmetadata: {name: freeze}\nspec: " + spec + "\n"
	}
	ignoring := func(paths, target string) string {
		return "\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
			"spec: {sourceRef: {kind: GitRepository, name: flux-system}, ignore: [{paths: [" + paths + "]" + target + "}]}\n"
	}
	evaluating := func(annotations string) string {
		return "\napiVersion: kuberik.com/v1alpha1\nkind: HealthCheck\nmetadata: {name: shop, namespace: shop, annotations: {" + annotations + "}}\nspec: {class: kustomization}\n"
	}
	const helmRelease = "\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: shop}\nspec: {}\n"
	tagged := untagged + "spec: {ref: {tag: 1.0.0}}\n"
	all := join(policy, rollout, repository, kustomization)
	for name, tt := range map[string]struct {
		text     string
		external string
		vars     map[string]string
		want     []string
	}{
		"all is well":                {text: all},
		"no policy":                  {text: join(rollout, repository), want: []string{"R201 Rollout shop/shop"}},
		"a policy that is elsewhere": {text: join(rollout, repository), external: "ImagePolicy/shop/shop"},
		"a policy whose namespace is given elsewhere": {
			text: join(bare(policy), rollout, repository), want: []string{"R201? Rollout shop/shop"},
		},
		"a policy whose name is a variable": {
			text: join(change(t, policy, "name: shop,", `name: "${APP}",`), rollout, repository), want: []string{"R201? Rollout shop/shop"},
		},
		"a policy whose name is given": {
			text: join(change(t, policy, "name: shop,", `name: "${APP}",`), rollout, repository), vars: map[string]string{"APP": "shop"},
		},
		"the same variable on both sides": {
			text: join(change(t, policy, "name: shop,", `name: "${APP}",`), change(t, rollout, "{name: shop}", `{name: "${APP}"}`), repository),
			want: []string{"R101? Rollout shop/shop"},
		},
		"nothing has a namespace": {text: change(t, join(bare(policy), bare(rollout), repository), "  namespace: shop\n", "")},

		"a tag that a parent ignores":       {text: join(policy, rollout, tagged, ignoring("/spec/ref/tag", ""))},
		"a field around it that it ignores": {text: join(policy, rollout, tagged, ignoring("/spec/ref", ""))},
		"one that it ignores by name":       {text: join(policy, rollout, tagged, ignoring("/spec/ref/tag", ", target: {kind: OCIRepository, name: sh.*}"))},
		"one that it ignores of others":     {text: join(policy, rollout, tagged, ignoring("/spec/ref/tag", ", target: {kind: OCIRepository, name: sho}")), want: []string{"R203 OCIRepository shop/shop"}},
		"another field that it ignores":     {text: join(policy, rollout, tagged, ignoring("/spec/ref/ta", "")), want: []string{"R203 OCIRepository shop/shop"}},
		"a tag that is applied once":        {text: join(policy, rollout, change(t, tagged, "{rollout", "{kustomize.toolkit.fluxcd.io/ssa: IfNotPresent, rollout"))},
		"a tag that is merged":              {text: join(policy, rollout, change(t, tagged, "{rollout", "{kustomize.toolkit.fluxcd.io/ssa: Merge, rollout")), want: []string{"R203 OCIRepository shop/shop"}},
		"a tag that is a variable":          {text: join(policy, rollout, change(t, tagged, "1.0.0", `"${TAG}"`)), want: []string{"R203 OCIRepository shop/shop"}},
		"a variable in an artifact": {
			text: join(policy, rollout, change(t, kustomization, "namespace: shop", "namespace: shop, annotations: {rollout.kuberik.com/substitute.TAG.from: shop}")),
			want: []string{"R208? Kustomization shop/shop"},
		},

		"checks of namespaces that are not known": {
			text: join(policy, selecting("{selector: {}, namespaceSelector: {matchLabels: {team: shop}}}"), repository, check),
			want: []string{"R301? Rollout shop/shop"},
		},
		"checks of namespaces, of which there are none": {
			text: join(policy, selecting("{selector: {}, namespaceSelector: {matchLabels: {team: shop}}}"), repository),
			want: []string{"R301? Rollout shop/shop"},
		},
		"checks of a namespace that is known": {
			text: join(policy, selecting("{selector: {}, namespaceSelector: {matchLabels: {team: shop}}}"), repository, check,
				change(t, change(t, namespace, "name: shop", "name: tests"), "env: production", "team: shop")),
		},
		"no check of the own namespace": {
			text: join(policy, selecting("{selector: {}}"), repository, check), want: []string{"R301 Rollout shop/shop"},
		},
		"checks that are elsewhere": {
			text: join(policy, selecting("{selector: {}}"), repository), external: "HealthCheck/shop/smoke", want: []string{"R301? Rollout shop/shop"},
		},

		"a check of a Kustomization that is not there": {
			text: evaluating("healthcheck.kuberik.com/kustomization: cart"), want: []string{"R303 HealthCheck shop/shop"},
		},
		"a check of a HelmRelease that is not there": {
			text: evaluating("healthcheck.kuberik.com/helmrelease: cart"), want: []string{"R303 HealthCheck shop/shop"},
		},
		"a check of a HelmRelease":            {text: join(evaluating("healthcheck.kuberik.com/helmrelease: shop"), helmRelease)},
		"a check of one in another namespace": {text: evaluating("healthcheck.kuberik.com/helmrelease: apps/shop"), external: "HelmRelease/apps/shop"},
		"a check of nothing":                  {text: evaluating(""), want: []string{"R303 HealthCheck shop/shop"}},
		"a check of two things": {
			text: join(evaluating("healthcheck.kuberik.com/helmrelease: shop, healthcheck.kuberik.com/kustomization: shop"), helmRelease, kustomization, repository, rollout, policy),
			want: []string{"R303 HealthCheck shop/shop"},
		},

		"a schedule without Rollouts": {
			text: schedule("{rolloutSelector: {}, rules: [{daysOfWeek: [Monday]}]}"), want: []string{"R402? ClusterRolloutSchedule freeze"},
		},
		"a schedule of namespaces that are not known": {
			text: join(all, schedule("{rolloutSelector: {}, namespaceSelector: {matchLabels: {env: production}}, rules: [{}]}")),
			want: []string{"R402? ClusterRolloutSchedule freeze"},
		},
		"a schedule of a namespace that is known": {
			text: join(all, namespace, schedule("{rolloutSelector: {}, namespaceSelector: {matchLabels: {env: production}}, rules: [{}]}")),
			want: []string{"R403 Rollout shop/shop"},
		},
		"a schedule of other namespaces": {
			text: join(all, namespace, schedule("{rolloutSelector: {}, namespaceSelector: {matchLabels: {env: staging}}, rules: [{}]}")),
			want: []string{"R402? ClusterRolloutSchedule freeze"},
		},
		"a schedule with a variable": {
			text: join(all, schedule(`{rolloutSelector: {}, timezone: "${ZONE}", rules: [{}]}`)),
			want: []string{"R101? ClusterRolloutSchedule freeze", "R401? ClusterRolloutSchedule freeze", "R402? ClusterRolloutSchedule freeze"},
		},
		"a rule that the schema rejects is found once": {
			text: join(all, schedule(`{rolloutSelector: {}, rules: [{timeRange: {start: "8", end: "17:00"}}]}`)),
			want: []string{"R101 ClusterRolloutSchedule freeze"},
		},
		"a window that is over": {
			text: join(all, schedule(`{rolloutSelector: {}, action: Allow, rules: [{dateRange: {start: "2026-11-20", end: "2026-11-23"}}]}`)),
			want: []string{"R402 ClusterRolloutSchedule freeze", "R403 Rollout shop/shop"},
		},
		"exceptions that leave no time": {
			text: join(all, schedule(`{rolloutSelector: {}, action: Allow, rules: [{daysOfWeek: [Friday], weeksOfMonth: [-1]}], exceptions: [{daysOfWeek: [Friday]}]}`)),
			want: []string{"R402 ClusterRolloutSchedule freeze", "R403 Rollout shop/shop"},
		},
		"a day that no month has": {
			text: join(all, schedule(`{rolloutSelector: {}, rules: [{months: [February, April], daysOfMonth: [31]}]}`)), want: []string{"R401 ClusterRolloutSchedule freeze"},
		},
		"an exception on a day that no month has": {
			text: join(all, schedule(`{rolloutSelector: {}, rules: [{months: [May]}], exceptions: [{months: [June], daysOfMonth: [-31]}]}`)),
			want: []string{"R401 ClusterRolloutSchedule freeze"},
		},
		"weeks of a month without days": {
			text: join(all, schedule(`{rolloutSelector: {}, rules: [{weeksOfMonth: [1]}]}`)), want: []string{"R101 ClusterRolloutSchedule freeze"},
		},
		"a freeze of a month with an exception": {
			text: join(all, schedule(`{rolloutSelector: {}, rules: [{months: [May]}], exceptions: [{everyWeeks: {count: 2, since: "2026-05-01"}}]}`)),
		},
		"a selector that is invalid": {
			text: join(all, schedule("{rolloutSelector: {matchExpressions: [{key: app, operator: Is}]}, rules: [{daysOfWeek: [Monday]}]}")),
			want: []string{"R401 ClusterRolloutSchedule freeze"},
		},
		"the same object twice": {text: join(all, rollout)},
		"two definitions of an object": {
			text: join(all, change(t, rollout, "15m", "10m")), want: []string{"R404 Rollout shop/shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := lintText(tt.text, func(o *lint.Options) {
				o.Vars = tt.vars
				if tt.external != "" {
					external, err := lint.ParseExternal(tt.external)
					if err != nil {
						t.Fatal(err)
					}
					o.External = []lint.External{external}
				}
			})
			if diff := cmp.Diff(tt.want, described(result)); diff != "" {
				t.Errorf("%s\n%+v", diff, result)
			}
		})
	}
}

func TestExternalNamesAnObject(t *testing.T) {
	for _, text := range []string{"", "ImagePolicy", "ImagePolicy/shop", "ImagePolicy//shop", "ImagePolicy/shop/", "a/b/c/d"} {
		if external, err := lint.ParseExternal(text); err == nil {
			t.Errorf("%q is %+v, want an error", text, external)
		}
	}
}

func TestOverlaysAreNotBuilt(t *testing.T) {
	overlay := func(text string) lint.File {
		return lint.File{Name: "apps/kustomization.yaml", Content: []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + text)}
	}
	patch := lint.File{Name: "apps/patches/rollout.yaml", Content: []byte(strings.Replace(rollout, "releasesImagePolicy", "releases", 1))}
	lost := lint.File{Name: "apps/gate.yaml", Content: []byte(strings.Replace(gate, "  namespace: shop\n", "", 1))}
	const quarantine = "apiVersion: kuberik.com/v1alpha1\nkind: ClusterReleaseQuarantine\nmetadata: {name: bad}\nspec: {digest: \"sha256:"
	digest := func(of string) []byte { return []byte(quarantine + strings.Repeat(of, 64) + "\"}\n") }
	recall, recalls := lint.File{Name: "apps/a.yaml", Content: digest("a")}, lint.File{Name: "apps/b.yaml", Content: digest("b")}
	for name, tt := range map[string]struct {
		files []lint.File
		want  []string
	}{
		"a patch by its path":       {[]lint.File{overlay("patches: [{path: patches/rollout.yaml}]\n"), patch}, []string{"? Rollout shop/shop"}},
		"a patch by its name":       {[]lint.File{overlay("patchesStrategicMerge: [patches/rollout.yaml]\n"), patch}, []string{"? Rollout shop/shop"}},
		"a file that is no patch":   {[]lint.File{overlay("resources: [patches/rollout.yaml]\n"), patch}, []string{"R101 Rollout shop/shop", "R101 Rollout shop/shop", "R207 Rollout shop/shop"}},
		"a namespace for a folder":  {[]lint.File{overlay("namespace: web\n"), lost}, []string{"R404 RolloutGate web/qa"}},
		"what has no namespace":     {[]lint.File{overlay("namespace: web\n"), recall, recalls}, []string{"R404 ClusterReleaseQuarantine bad"}},
		"no namespace for a folder": {[]lint.File{overlay(""), lost}, []string{"R404 RolloutGate qa"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, described(lint.Files(tt.files, lint.Options{Now: noon}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFilesBelowAPath(t *testing.T) {
	k := change(t, change(t, kustomization, "namespace: shop", "namespace: shop, annotations: {rollout.kuberik.com/substitute.TAG.from: shop}"),
		"sourceRef: {kind: OCIRepository, name: shop}", "path: ./apps/shop, postBuild: {substitute: {REGION: eu}}, sourceRef: {kind: GitRepository, name: flux-system}")
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: version}\ndata: {version: \"%s\"}\n"
	for name, tt := range map[string]struct {
		kustomization, at, config, rolloutAt string
		want                                 []string
	}{
		"used with a default":          {k, "apps/shop/a.yaml", "${TAG:=1.0.0}", "clusters/rollout.yaml", nil},
		"used without":                 {k, "apps/shop/a.yaml", "${TAG}", "clusters/rollout.yaml", []string{"R208 ConfigMap version"}},
		"not used":                     {k, "apps/shop/a.yaml", "$${TAG}", "clusters/rollout.yaml", []string{"R208 Kustomization shop/shop"}},
		"used in a deeper folder":      {k, "apps/shop/base/a.yaml", "${TAG:=1.0.0}", "clusters/rollout.yaml", nil},
		"used in a folder of a folder": {k, "/repository/apps/shop/a.yaml", "${TAG}", "clusters/rollout.yaml", []string{"R208? Kustomization shop/shop"}},
		"files that are not given":     {k, "apps/shop2/a.yaml", "${TAG}", "clusters/rollout.yaml", []string{"R208? Kustomization shop/shop"}},
		"no other variable": {
			change(t, k, "postBuild: {substitute: {REGION: eu}}, ", ""), "apps/shop/a.yaml", "${TAG:=1.0.0}", "clusters/rollout.yaml", []string{"R208 ConfigMap version"},
		},
		"always substituted": {
			change(t, k, "substitute: {REGION: eu}", "substituteStrategy: Always"), "apps/shop/a.yaml", "${TAG:=1.0.0}", "clusters/rollout.yaml", nil,
		},
		"variables from a ConfigMap": {
			change(t, k, "substitute: {REGION: eu}", "substituteFrom: [{kind: ConfigMap, name: vars}]"), "apps/shop/a.yaml", "${TAG}", "clusters/rollout.yaml",
			[]string{"R208? ConfigMap version"},
		},
		"a first value in Git": {
			change(t, k, "REGION: eu", "TAG: 1.0.0"), "apps/shop/a.yaml", "${TAG}", "clusters/rollout.yaml", []string{"R203 Kustomization shop/shop"},
		},
		"the root of a source": {
			change(t, k, "./apps/shop", "./"), "apps/shop/a.yaml", "${TAG}", "clusters/rollout.yaml", []string{"R208? Kustomization shop/shop"},
		},
		"the Rollout among them": {k, "apps/shop/a.yaml", "${TAG:=1.0.0}", "apps/shop/rollout.yaml", []string{"R209 Rollout shop/shop"}},
		"the Rollout among them, without waiting": {
			change(t, k, "wait: true, ", ""), "apps/shop/a.yaml", "${TAG:=1.0.0}", "apps/shop/rollout.yaml", nil,
		},
		"the Rollout among them, as a health check": {
			change(t, k, "wait: true, ", "healthChecks: [{apiVersion: kuberik.com/v1alpha1, kind: Rollout, name: shop}], "),
			"apps/shop/a.yaml", "${TAG:=1.0.0}", "apps/shop/rollout.yaml", []string{"R209 Rollout shop/shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := lint.Files([]lint.File{
				{Name: "clusters/shop.yaml", Content: []byte(tt.kustomization)}, {Name: "clusters/policy.yaml", Content: []byte(policy)},
				{Name: tt.at, Content: fmt.Appendf(nil, config, tt.config)}, {Name: tt.rolloutAt, Content: []byte(rollout)},
			}, lint.Options{Now: noon})
			if diff := cmp.Diff(tt.want, described(result)); diff != "" {
				t.Errorf("%s\n%+v", diff, result)
			}
		})
	}
}

// TestAKustomizationBelowItsOwnPathSaysNothing: such a path is in another repository, or
// the Kustomization applies itself.
func TestAKustomizationBelowItsOwnPathSaysNothing(t *testing.T) {
	k := change(t, change(t, kustomization, "namespace: shop", "namespace: shop, annotations: {rollout.kuberik.com/substitute.TAG.from: shop}"),
		"sourceRef: {kind: OCIRepository, name: shop}", "path: ./apps, sourceRef: {kind: GitRepository, name: shop}")
	result := lint.Files([]lint.File{{Name: "apps/shop.yaml", Content: []byte(join(k, policy, rollout))}}, lint.Options{Now: noon})
	if diff := cmp.Diff([]string{"R208? Kustomization shop/shop"}, described(result)); diff != "" {
		t.Error(diff)
	}
}

func TestObjectsOfAClusterHaveNoFindingsAboutGit(t *testing.T) {
	var objects []map[string]any
	written := repository + "spec: {ref: {tag: 1.0.0}}\n"
	cycle := change(t, rollout, "labels: {app: shop}", "labels: {kustomize.toolkit.fluxcd.io/name: shop, kustomize.toolkit.fluxcd.io/namespace: shop}")
	for _, document := range []string{policy, cycle, written, kustomization, gate} {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	want := lint.Result{Objects: 5, Findings: []lint.Finding{
		{
			Rule: "R209", Severity: lint.SeverityError, Object: "Rollout shop/shop",
			Message: "Kustomization shop/shop applies this Rollout and waits for it, while the Rollout waits for what it applies",
			Remedy:  "apply the Rollout from another Kustomization, or set spec.wait to false",
		},
		{
			Rule: "R404", Severity: lint.SeverityError, Object: "RolloutGate shop/qa",
			Message: "the gate is for Rollout shop/lost, which does not exist", Remedy: "create it, or correct the name",
		},
	}}
	if diff := cmp.Diff(want, lint.Cluster(objects, lint.Options{Now: noon})); diff != "" {
		t.Error(diff)
	}
}

// What was not listed may be there.
func TestKindsThatWereNotListedAreNotMissed(t *testing.T) {
	kind := func(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }
	for name, tt := range map[string]struct {
		documents []string
		unlisted  schema.GroupKind
		rule      string
	}{
		"the Rollout of a target":   {[]string{repository}, kind("kuberik.com", "Rollout"), "R202"},
		"the Rollout of a gate":     {[]string{gate}, kind("kuberik.com", "Rollout"), "R404"},
		"the policy of a Rollout":   {[]string{rollout}, kind("image.toolkit.fluxcd.io", "ImagePolicy"), "R201"},
		"the target of a Rollout":   {[]string{rollout}, kind("kustomize.toolkit.fluxcd.io", "Kustomization"), "R207"},
		"what applies a repository": {[]string{repository, rollout}, kind("helm.toolkit.fluxcd.io", "HelmRelease"), "R212"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []map[string]any
			for _, document := range tt.documents {
				object := map[string]any{}
				if err := yaml.Unmarshal([]byte(document), &object); err != nil {
					t.Fatal(err)
				}
				objects = append(objects, object)
			}
			has := func(unlisted ...schema.GroupKind) bool {
				found := lint.Cluster(objects, lint.Options{Now: noon, Unlisted: unlisted}).Findings
				return slices.ContainsFunc(found, func(f lint.Finding) bool { return f.Rule == tt.rule })
			}
			if !has() || has(tt.unlisted) {
				t.Errorf("%s is found: %t, and without %s: %t", tt.rule, has(), tt.unlisted.Kind, has(tt.unlisted))
			}
		})
	}
}

func TestResultAsJSON(t *testing.T) {
	result := lintText(join(rollout, repository))
	got, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "findings": [
  {
   "rule": "R201",
   "severity": "error",
   "file": "a.yaml",
   "line": 5,
   "object": "Rollout shop/shop",
   "message": "ImagePolicy shop/shop does not exist",
   "remedy": "create it, or correct the name; if it is elsewhere, add --external ImagePolicy/shop/shop"
  }
 ],
 "files": 1,
 "objects": 2
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if n := result.Count(lint.SeverityError); n != 1 {
		t.Errorf("counts %d errors, want 1", n)
	}
}

// TestVariablesAreReadAsByTheController compares what lint takes for a variable with what
// the controller does.
func TestVariablesAreReadAsByTheController(t *testing.T) {
	const prefix = "rollout.kuberik.com/substitute."
	for _, key := range []string{prefix + "TAG.from", prefix + "a.b.from", prefix + ".from", prefix + "TAG", "x" + prefix + "TAG.from", prefix + "from"} {
		k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: "lost"}}}
		want := len(targets.RolloutsOf(k)) > 0
		text := change(t, kustomization, "namespace: shop", fmt.Sprintf("namespace: shop, annotations: {%q: lost}", key))
		got := slices.Contains(described(lintText(join(policy, rollout, repository, text))), "R202 Kustomization shop/shop")
		if got != want {
			t.Errorf("%s: lint reads a variable: %t, the controller: %t", key, got, want)
		}
	}
}

func TestSchedulesThatChangeTooOftenAreNotEvaluated(t *testing.T) {
	rules := func(n int) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "\n  - timeRange: {start: \"%02d:%02d\", end: \"%02d:%02d\"}", i/30, i%30*2, i/30, i%30*2+1)
		}
		return "\napiVersion: kuberik.com/v1alpha1\nkind: ClusterRolloutSchedule\nmetadata: {name: busy}\nspec:\n  rolloutSelector: {}\n  rules:" + all.String() + "\n"
	}
	for n, want := range map[int][]string{
		10:  nil,
		200: {"R306? Rollout shop/shop", "R403? Rollout shop/shop"},
		201: {"R101 ClusterRolloutSchedule busy"},
	} {
		if diff := cmp.Diff(want, described(lintText(join(policy, rollout, repository, rules(n))))); diff != "" {
			t.Errorf("%d rules: %s", n, diff)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// monorepo is an OCIRepository whose release reaches Kustomizations through a generator.
type monorepo struct {
	app       *sourcev1.OCIRepository
	config    *sourcev1.GitRepository
	generator *fixture.GeneratorBuilder
	made      []*sourcev1.ExternalArtifact
	consumers []client.Object
}

func pulledApp(tag string) *sourcev1.OCIRepository {
	return fixture.MakeRepository("app").DrivenBy("shop").Tag(tag).Pulled(fixture.Revision(tag)).Ready().Obj()
}

func git(name, revision string) *sourcev1.GitRepository {
	return &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace},
		Status:     sourcev1.GitRepositoryStatus{Artifact: fixture.Artifact(revision)},
	}
}

func (m *monorepo) builds(files fixture.Files) *monorepo {
	m.made = m.generator.Builds(files, m.app, m.config)
	return m
}

func takes(name string) *fixture.KustomizationBuilder {
	return fixture.MakeKustomization(name).From(sourcev1.ExternalArtifactKind, name)
}

func (m *monorepo) apply() *monorepo {
	for _, e := range m.made {
		m.consumers = append(m.consumers, takes(e.Name).Applied(e.Status.Artifact.Revision).Ready().Obj())
	}
	return m
}

func (m *monorepo) objects() []client.Object {
	all := append([]client.Object{m.app, m.config, m.generator.Obj()}, m.consumers...)
	for _, e := range m.made {
		all = append(all, e)
	}
	return all
}

// observed returns the states of what takes an artifact, after the release of a tag.
func (m *monorepo) observed(t *testing.T, tag string) map[string]string {
	t.Helper()
	g, c := NewWithT(t), indexed(t, m.objects()...)
	all, err := targets.Find(t.Context(), c, shop, true)
	g.Expect(err).NotTo(HaveOccurred())
	all, err = targets.WithHelmReleases(t.Context(), c, shop, all, true)
	g.Expect(err).NotTo(HaveOccurred())
	all, err = targets.WithArtifacts(t.Context(), c, shop, all, true, true)
	g.Expect(err).NotTo(HaveOccurred())
	states := map[string]string{}
	for _, each := range all {
		if each.Repository != nil {
			continue
		}
		rollout, release := fixture.MakeRollout("shop").Obj(), targets.Release{Tag: tag}
		each.Observed = map[types.UID]bool{}
		for _, asked := range each.Unobserved(rollout, release) {
			has, err := targets.HasObserved(t.Context(), c, asked)
			g.Expect(err).NotTo(HaveOccurred())
			each.Observed[asked.UID] = has
		}
		seen := each.Observe(rollout, release)
		states[each.Object().GetName()] = string(seen.State)
		if seen.Message != "" {
			states[each.Object().GetName()] += ": " + seen.Message
		}
	}
	return states
}

func oneSource(revision string) *monorepo {
	m := &monorepo{app: pulledApp("1.0.0"), config: git("config", "main@sha1:1")}
	m.generator = fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "app").Makes("shop", revision, "app")
	return m
}

func twoSources(revision string) *monorepo {
	m := oneSource(revision)
	m.generator = fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "app").
		Takes("config", sourcev1.GitRepositoryKind, "config").Makes("shop", revision, "app", "config")
	return m
}

func TestReleaseThroughAnArtifact(t *testing.T) {
	released := func(m *monorepo) *monorepo { m.app = pulledApp("1.1.0"); return m }
	for name, tt := range map[string]struct {
		after *monorepo
		want  string
	}{
		"by the revision of its only source":    {after: oneSource("@app").builds(nil).apply(), want: "Applied"},
		"by its content":                        {after: oneSource("").builds(nil).apply(), want: "Applied"},
		"by its content, of two sources":        {after: twoSources("").builds(nil).apply(), want: "Applied"},
		"by the revision of one of two sources": {after: twoSources("@app").builds(nil).apply(), want: "Applied"},
		"by the revision of another source": {
			after: twoSources("@config").builds(nil).apply(),
			want: "Pending: ExternalArtifact shop of ArtifactGenerator shop takes its revision from @config, so a new release in it shows " +
				"neither to Flux nor to this Rollout: remove its revision, or set it to @app",
		},
		"not built, by revision": {after: released(oneSource("@app").builds(nil).apply()), want: "Pending"},
		"not built, by content":  {after: released(oneSource("").builds(nil).apply()), want: "Pending"},
		"a part that did not change": {
			after: func() *monorepo {
				m := oneSource("").builds(fixture.Files{"app": "same"}).apply()
				return released(m).builds(fixture.Files{"app": "same"})
			}(),
			want: "Applied",
		},
		"the artifact is new, and not applied": {
			after: func() *monorepo { return released(oneSource("").builds(nil).apply()).builds(nil) }(), want: "Pending",
		},
		"another source has changed since": {
			after: func() *monorepo {
				m := twoSources("").builds(nil).apply()
				m.config = git("config", "main@sha1:2")
				return m
			}(),
			want: "Pending",
		},
		"the generator has failed": {
			after: func() *monorepo {
				m := released(oneSource("@app").builds(nil).apply())
				m.generator.Condition(metav1.ConditionFalse, "BuildFailed", "no such file")
				return m
			}(),
			want: "Pending: ArtifactGenerator shop has failed (BuildFailed): no such file",
		},
		"the generator has failed after it was built, by revision": {
			after: func() *monorepo {
				m := oneSource("@app").builds(nil).apply()
				m.generator.Condition(metav1.ConditionFalse, "BuildFailed", "no such file")
				return m
			}(),
			want: "Applied",
		},
		"the generator is paused": {
			after: func() *monorepo {
				m := released(oneSource("@app").builds(nil).apply())
				m.generator.Paused()
				return m
			}(),
			want: "Pending: ArtifactGenerator shop is paused: remove its annotation source.extensions.fluxcd.io/reconcile",
		},
		"the artifact does not exist yet": {
			after: func() *monorepo {
				m := oneSource("@app")
				m.consumers = []client.Object{takes("shop").Obj()}
				return m
			}(),
			want: "Pending: ArtifactGenerator shop has not made its ExternalArtifact shop yet",
		},
		"it was not listed yet": {
			after: func() *monorepo {
				m := oneSource("@app")
				m.generator.Builds(nil, m.app)
				m.builds(nil).apply()
				m.generator = oneSource("@app").generator
				return m
			}(),
			want: "Pending",
		},
		"Flux has failed with it": {
			after: func() *monorepo {
				m := oneSource("@app").builds(nil)
				m.consumers = []client.Object{takes("shop").Attempted(m.made[0].Status.Artifact.Revision).Observed(1).
					Condition("Ready", metav1.ConditionFalse, 1, "no such path").Obj()}
				return m
			}(),
			want: "Failed: no such path",
		},
		"the gate of the feature is off": {
			after: func() *monorepo {
				m := oneSource("@app").builds(nil)
				m.consumers = []client.Object{takes("shop").Observed(1).
					Condition("Ready", metav1.ConditionFalse, 1, "external artifacts are disabled").Because("AccessDenied").Obj()}
				return m
			}(),
			want: "Pending: external artifacts are disabled",
		},
		"the OCIRepository pulls": {
			after: func() *monorepo {
				m := twoSources("@config").builds(nil).apply()
				m.app = fixture.MakeRepository("app").DrivenBy("shop").Tag("1.1.0").Pulled(fixture.Revision("1.0.0")).Obj()
				return m
			}(),
			want: "Pending",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tag := tt.after.app.Spec.Reference.Tag
			NewWithT(t).Expect(tt.after.observed(t, tag)).To(Equal(map[string]string{"shop": tt.want}))
		})
	}
}

// With a pattern of paths, each folder is an artifact. One that a release does not change is
// Applied at once.
func TestArtifactOfEachFolder(t *testing.T) {
	folders := func(revision string, changed fixture.Files) *monorepo {
		m := oneSource("")
		m.generator = fixture.MakeGenerator("shop").Takes("app", sourcev1.OCIRepositoryKind, "app").ForEach("app", "cart", "web").Makes("{app}", revision, "app")
		return m.builds(changed)
	}
	m := folders("", fixture.Files{"app/cart": "old", "app/web": "old"}).apply()
	NewWithT(t).Expect(m.observed(t, "1.0.0")).To(Equal(map[string]string{"cart": "Applied", "web": "Applied"}))
	m.app = pulledApp("1.1.0")
	NewWithT(t).Expect(m.observed(t, "1.1.0")).To(Equal(map[string]string{"cart": "Pending", "web": "Pending"}))
	m.builds(fixture.Files{"app/cart": "new", "app/web": "old"})
	NewWithT(t).Expect(m.observed(t, "1.1.0")).To(Equal(map[string]string{"cart": "Pending", "web": "Applied"}))

	differ := folders("@app", nil)
	differ.generator.Makes("{app}-config", "", "app")
	differ.builds(nil).apply()
	NewWithT(t).Expect(differ.observed(t, "1.0.0")["web"]).To(Equal("Pending: the artifacts of ArtifactGenerator shop take their revisions from different places, " +
		"so nothing shows whether ExternalArtifact web has a new release: remove revision from all of them"))
}

func TestArtifactsOfOthersAreNoLink(t *testing.T) {
	forged := oneSource("@app").builds(nil)
	forged.made = append(forged.made, fixture.MakeExternalArtifact("forged", fixture.Namespace, "shop", fixture.Revision("1.0.0"), "sha256:0"))
	forged.apply()
	other := oneSource("@app").builds(nil).apply()
	other.made[0].Spec.SourceRef.Name = "another"
	unrelated := twoSources("")
	unrelated.generator.Makes("config", "", "config")
	unrelated.builds(nil).apply()
	for name, tt := range map[string]struct {
		of   *monorepo
		want map[string]string
	}{
		"one that no generator lists":           {forged, map[string]string{"shop": "Applied"}},
		"one of another generator":              {other, map[string]string{}},
		"an output without files of the source": {unrelated, map[string]string{"shop": "Applied"}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(tt.of.observed(t, "1.0.0")).To(Equal(tt.want)) })
	}
}

func TestGeneratorWithManySources(t *testing.T) {
	for revision, want := range map[string]string{
		"@app": "Applied",
		"": "Pending: ArtifactGenerator shop has 21 sources, and at most 20 can be compared with what it has seen: " +
			"set the revision of ExternalArtifact shop to @app",
	} {
		m := oneSource(revision)
		for i := range 20 {
			m.generator.Takes(fmt.Sprintf("c%d", i), sourcev1.GitRepositoryKind, "config")
		}
		NewWithT(t).Expect(m.builds(nil).apply().observed(t, "1.0.0")).To(Equal(map[string]string{"shop": want}), revision)
	}
}

// An artifact may be made of another one, up to three in a row.
func TestArtifactsInARow(t *testing.T) {
	for length, want := range map[int]map[string]string{2: {"a2": "Applied"}, 3: {"a3": "Applied"}, 4: {}} {
		m := row(length)
		NewWithT(t).Expect(m.observed(t, "1.0.0")).To(Equal(want), "%d artifacts", length)
		m.app = pulledApp("1.1.0")
		for name := range want {
			NewWithT(t).Expect(m.observed(t, "1.1.0")).To(Equal(map[string]string{name: "Pending"}), "%d artifacts", length)
		}
	}
}

// row returns generators of which each takes what the one before has made.
func row(length int) *monorepo {
	m := &monorepo{app: pulledApp("1.0.0"), config: git("config", "main@sha1:1")}
	kind, from := sourcev1.OCIRepositoryKind, client.Object(m.app)
	for i := 1; i <= length; i++ {
		m.generator = fixture.MakeGenerator(fmt.Sprintf("g%d", i)).Takes("app", kind, from.GetName()).Makes(fmt.Sprintf("a%d", i), "", "app")
		made := m.generator.Builds(nil, from)[0]
		m.made, kind, from = append(m.made, made), sourcev1.ExternalArtifactKind, made
		if i < length {
			m.consumers = append(m.consumers, m.generator.Obj())
		}
	}
	last := m.made[length-1]
	m.consumers = append(m.consumers, takes(last.Name).Applied(last.Status.Artifact.Revision).Ready().Obj())
	return m
}

// A chart may come as an ExternalArtifact, too, with either form of the revision.
func TestChartThroughAnArtifact(t *testing.T) {
	for _, revision := range []string{"", "@app"} {
		m := oneSource(revision).builds(nil)
		chart, tried := fixture.MakeHelmRelease("shop").From(sourcev1.ExternalArtifactKind, "shop"), m.made[0].Status.Artifact.Revision
		if revision == "" { // Flux then records the whole revision, and compares no version
			chart.AttemptedAs("1.0.0", tried).AttemptedAt(1).Snapshot("1.0.0", tried, "deployed")
		} else {
			chart.Deployed(tried)
		}
		m.consumers = []client.Object{chart.Ready().Obj()}
		NewWithT(t).Expect(m.observed(t, "1.0.0")).To(Equal(map[string]string{"shop": "Applied"}), revision)
		m.app = pulledApp("1.1.0")
		NewWithT(t).Expect(m.observed(t, "1.1.0")).To(Equal(map[string]string{"shop": "Pending"}), revision)
	}
}

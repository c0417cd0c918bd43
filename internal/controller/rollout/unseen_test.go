// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// consumed returns the objects of an application whose Kustomization only consumes.
func consumed(name string, rollout *fixture.RolloutBuilder) []client.Object {
	return []client.Object{
		fixture.MakeScan(name).Found("1.0.0").Obj(),
		fixture.MakePolicy(name).Latest("1.0.0").Obj(),
		fixture.MakeRepository(name).DrivenBy(name).Obj(),
		fixture.MakeKustomization(name).Obj(),
		rollout.Obj(),
	}
}

// cacheLacks restarts the controller with a cache, which lacks what it does not show yet.
func (s *testEnv) cacheLacks(reads func(client.WithWatch) client.WithWatch) {
	s.reads = reads
	s.restart()
}

// beforeLiveList calls a function before each list past the cache, with the kind of the
// items. If it returns an error, the list fails with it.
func (s *testEnv) beforeLiveList(ask func(schema.GroupKind) error) {
	s.reconciler.APIReader = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			of := list.GetObjectKind().GroupVersionKind().GroupKind()
			of.Kind = strings.TrimSuffix(of.Kind, "List")
			if err := ask(of); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// liveLists records the kinds that are listed past the cache.
func (s *testEnv) liveLists() *[]string {
	var asked []string
	s.beforeLiveList(func(of schema.GroupKind) error {
		asked = append(asked, of.Kind)
		return nil
	})
	return &asked
}

// A Kustomization that cannot apply the first release may be new to the caches.
func TestFirstReleaseIsNotProvenBeforeTheCachesShowAllTargets(t *testing.T) {
	for name, tt := range map[string]struct {
		rollout *fixture.RolloutBuilder
		lacks   func(client.WithWatch) client.WithWatch
		then    v1alpha1.BakeStatus
	}{
		"a consumer": {
			fixture.MakeRollout("shop"),
			func(c client.WithWatch) client.WithWatch { return lacking[*kustomizev1.KustomizationList]{c} },
			v1alpha1.BakeSucceeded,
		},
		"a consumer, and the release bakes": {
			fixture.MakeRollout("shop").BakeTime(time.Minute),
			func(c client.WithWatch) client.WithWatch { return lacking[*kustomizev1.KustomizationList]{c} },
			v1alpha1.BakeInProgress,
		},
		"all targets": {
			fixture.MakeRollout("shop"),
			func(c client.WithWatch) client.WithWatch {
				return lacking[*sourcev1.OCIRepositoryList]{lacking[*kustomizev1.KustomizationList]{c}}
			},
			v1alpha1.BakeSucceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, consumed("shop", tt.rollout)...)
			s.cacheLacks(tt.lacks)
			s.reconcile("shop")
			s.fluxPulls()
			for range 3 {
				s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(recheck.Overdue))
				s.Expect(s.history("shop")).To(Or(BeEmpty(), HaveEach(HaveField("State", v1alpha1.BakeDeploying))))
			}

			s.cacheLacks(nil)
			s.rest("shop")
			s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying), "the Kustomization has not applied it yet")
			s.fluxApplies()
			s.rest("shop")
			s.Expect(s.history("shop")[0].State).To(Equal(tt.then))
		})
	}
}

// The pass has gathered its targets before the look, which then finds nothing missing.
func TestFirstReleaseIsNotProvenIfACacheCatchesUpDuringThePass(t *testing.T) {
	s := open(t, consumed("shop", fixture.MakeRollout("shop"))...)
	s.rest("shop")
	s.fluxPulls()
	behind := true
	s.cacheLacks(func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*kustomizev1.KustomizationList); ok && behind {
					return nil
				}
				return c.List(ctx, list, opts...)
			},
		})
	})
	s.beforeLiveList(func(schema.GroupKind) error { behind = false; return nil })
	for range 3 { // the first look may find the Kustomization missing, depending on the order of the kinds
		s.reconcile("shop")
		s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
	}
	s.fluxApplies()
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

// One look that found nothing missing serves a pass that gathered its targets before it.
func TestFirstReleaseIsNotProvenByALookThatItsPassBeganBefore(t *testing.T) {
	s := open(t, consumed("shop", fixture.MakeRollout("shop"))...)
	s.rest("shop")
	s.fluxPulls()
	s.Pass(time.Second)
	lists := 0
	s.cacheLacks(func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*kustomizev1.KustomizationList); ok {
					if lists++; lists <= 2 { // those that gather the targets
						return nil
					}
				}
				return c.List(ctx, list, opts...)
			},
		})
	})
	s.reconciler.targetLists.found(s.Namespace, s.Clock.Now())
	s.reconcile("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
}

func TestOnlyTheFirstReleaseLooksForNewTargets(t *testing.T) {
	s := open(t, consumed("shop", fixture.MakeRollout("shop"))...)
	asked := s.liveLists()
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{1, "1.0.0", v1alpha1.BakeSucceeded}}))
	s.Expect(*asked).To(ConsistOf(sourcev1.OCIRepositoryKind, sourcev1.GitRepositoryKind, kustomizev1.KustomizationKind, helmv2.HelmReleaseKind))

	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{2, "1.1.0", v1alpha1.BakeSucceeded}))
	s.Expect(*asked).To(HaveLen(4))
}

func TestFirstReleaseLooksForArtifactsWhereTheyAreServed(t *testing.T) {
	s := openFollowing(t, consumed("shop", fixture.MakeRollout("shop"))...)
	asked := s.liveLists()
	s.deploy("shop")
	s.Expect(*asked).To(ConsistOf(sourcev1.OCIRepositoryKind, sourcev1.GitRepositoryKind, kustomizev1.KustomizationKind, helmv2.HelmReleaseKind,
		sourcev1.ExternalArtifactKind, generatorv1.ArtifactGeneratorKind))
}

func TestOneLookServesAllRolloutsThatHadPromotedBefore(t *testing.T) {
	s := open(t, consumed("shop", fixture.MakeRollout("shop"))...)
	s.Add(consumed("web", fixture.MakeRollout("web"))...)
	asked := s.liveLists()
	s.rest("shop")
	s.rest("web")
	s.Expect(*asked).To(HaveLen(0))
	s.fluxApplies()
	s.Pass(time.Second)
	s.rest("shop")
	s.rest("web")
	s.Expect(*asked).To(HaveLen(4))

	s.Add(consumed("late", fixture.MakeRollout("late"))...)
	s.deploy("late")
	s.Expect(*asked).To(HaveLen(8), "it was promoted after that")
}

func TestOneLookForTargetsIsMadeAtATime(t *testing.T) {
	s := open(t, consumed("shop", fixture.MakeRollout("shop"))...)
	s.rest("shop")
	s.fluxApplies()
	s.reconciler.targetLists.one.Lock()
	s.Expect(s.reconcile("shop").RequeueAfter).To(Equal(recheck.Overdue))
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
	s.reconciler.targetLists.one.Unlock()
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

func TestFirstReleaseWaitsWhileTheLookForTargetsFails(t *testing.T) {
	s := open(t, consumed("shop", fixture.MakeRollout("shop"))...)
	s.rest("shop")
	s.fluxApplies()
	unavailable := errors.New("unavailable")
	s.beforeLiveList(func(schema.GroupKind) error { return unavailable })
	_, err := s.try("shop")
	s.Expect(err).To(MatchError(unavailable))
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))

	s.reconciler.APIReader = s.WithWatch
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

func TestFirstReleaseDoesNotWaitForAKindThatIsNoLongerServed(t *testing.T) {
	s := open(t, consumed("shop", fixture.MakeRollout("shop"))...)
	s.rest("shop")
	s.fluxApplies()
	s.beforeLiveList(func(of schema.GroupKind) error {
		if of.Kind == helmv2.HelmReleaseKind {
			return &apimeta.NoKindMatchError{GroupKind: of}
		}
		return nil
	})
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

// The objects are listed page by page.
func TestNewTargetsAreFoundOnAllPages(t *testing.T) {
	s := open(t, consumed("shop", fixture.MakeRollout("shop"))...)
	for n := range 20 {
		s.Add(fixture.MakeKustomization(fmt.Sprintf("other-%d", n)).From("GitRepository", "other").Obj())
	}
	hidden := fixture.MakeKustomization("zone").From("GitRepository", "other").Obj()
	s.Add(hidden)
	s.cacheLacks(func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if all, ok := list.(*kustomizev1.KustomizationList); ok && len(all.Items) > 20 {
					all.Items = all.Items[:len(all.Items)-1]
				}
				return err
			},
		})
	})
	unseen, err := s.reconciler.gatherer().UnseenTarget(s.Ctx, s.Namespace)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(unseen).To(Equal("Kustomization " + s.Namespace + "/zone"))
}

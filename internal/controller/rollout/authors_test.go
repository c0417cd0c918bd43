// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// patchAs simulates a user or a dashboard with its own field manager.
func (s *testEnv) patchAs(manager, patch string) {
	s.Expect(s.Patch(s.Ctx, s.rollout("shop"),
		client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager))).To(Succeed())
}

const (
	sayAdmin = `{"metadata":{"annotations":{"rollout.kuberik.com/deploy-user":"admin","rollout.kuberik.com/deploy-message":"Cleared version pin"}}}`
	pinFirst = `{"spec":{"wantedVersion":"1.0.0"}}`
)

// The dashboard leaves its annotations after an unpin. The next pin is not by their
// author.
func TestWordsCountOnlyForTheChoiceOfWhoSaidThem(t *testing.T) {
	t.Parallel()
	onCall := v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: "on-call"}
	admin := v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: "admin"}
	verified := v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: "admin", Verified: true}
	for name, tt := range map[string]struct {
		says, chooses string
		by            v1alpha1.TriggeredBy
		message       string
	}{
		"somebody else pins":       {"dashboard", "on-call", onCall, "pinned manually in spec.wantedVersion"},
		"the same one pins":        {"dashboard", "dashboard", verified, "Cleared version pin"},
		"two verbs of kubectl are": {"kubectl-annotate", "kubectl-patch", admin, "Cleared version pin"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.1.0")...)
			s.deploy("shop")
			s.patchAs(tt.says, sayAdmin)
			s.rest("shop")
			s.patchAs(tt.chooses, pinFirst)
			s.deploy("shop")
			entry := s.rollout("shop").Current()
			s.Expect(entry.Version.Tag).To(Equal("1.0.0"))
			s.Expect(*entry.TriggeredBy).To(Equal(tt.by))
			s.Expect(*entry.Message).To(Equal(tt.message))
			s.Expect(s.asked()).To(BeEmpty(), "a promotion ends what was said, whoever said it")
		})
	}
}

func TestPinWithoutANameIsByItsFieldManager(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.1.0")...)
	s.deploy("shop")
	s.patchAs("on-call", pinFirst)
	s.deploy("shop")
	s.Expect(*s.rollout("shop").Current().TriggeredBy).To(Equal(v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: "on-call"}))
}

func TestWordsCountForABypassOfWhoSaidThem(t *testing.T) {
	t.Parallel()
	const bypassed = "the newest eligible release of ImagePolicy shop; gates bypassed manually"
	for chooses, want := range map[string]string{"on-call": bypassed + " by admin: INC-1", "somebody": bypassed} {
		t.Run(chooses, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.deploy("shop")
			s.Add(fixture.MakeGate("manual", "shop").Closed().Obj())
			s.release("shop", "1.1.0")
			s.rest("shop")
			s.patchAs("on-call", `{"metadata":{"annotations":{"rollout.kuberik.com/deploy-user":"admin","rollout.kuberik.com/deploy-message":"INC-1"}}}`)
			s.patchAs(chooses, `{"metadata":{"annotations":{"rollout.kuberik.com/bypass-gates":"1.1.0"}}}`)
			s.deploy("shop")
			s.Expect(*s.rollout("shop").Current().Message).To(Equal(want))
			s.Expect(s.asked()).To(BeEmpty())
		})
	}
}

// Whoever asks for a release may not be one of those who approve it.
func TestOwnChoiceNeedsTheApprovalOfOthers(t *testing.T) {
	t.Parallel()
	sign := func(user string) string { return `"rollout.kuberik.com/deploy-user":"` + user + `"` }
	pin := func(user string) string {
		return `{"metadata":{"annotations":{` + sign(user) + `}},"spec":{"wantedVersion":"1.1.0"}}`
	}
	const unsigned = `{"spec":{"wantedVersion":"1.1.0"}}`
	for name, test := range map[string]struct {
		patches   []string // the first is by kubectl-edit, the others by kubectl-annotate
		approvers []string
		promoted  bool
	}{
		"own pin":                            {[]string{pin("bob")}, []string{"bob"}, false},
		"own pin, and another":               {[]string{pin("bob")}, []string{"bob", "ann"}, true},
		"another's pin":                      {[]string{pin("eve")}, []string{"bob"}, true},
		"nobody signs it":                    {[]string{unsigned}, []string{"bob"}, false},
		"nobody signs it, and two approve":   {[]string{unsigned}, []string{"bob", "ann"}, true},
		"somebody signs what another pinned": {[]string{unsigned, `{"metadata":{"annotations":{` + sign("eve") + `}}}`}, []string{"bob"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
			s.deploy("shop")
			s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
				setLatest(o, "1.1.0")
				o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = fixture.DigestOf("1.1.0")
			})
			s.Add(fixture.MakeGate("qa", "shop").Asking(fixture.AskFor(1)).Obj())
			for _, user := range test.approvers {
				s.Add(fixture.MakeApproval(user, "shop", "1.1.0").Obj())
			}
			s.Pass(time.Since(s.Clock.Now()) + time.Minute)
			for i, patch := range test.patches {
				s.patchAs([]string{"kubectl-edit", "kubectl-annotate"}[i], patch)
			}
			s.rest("shop")
			s.Expect(s.history("shop")[0].Tag == "1.1.0").To(Equal(test.promoted))
		})
	}
}

// A cache that lags behind is not an error: the next pass reads again.
func TestChoiceThatACacheStillShowsIsLookedAtAgain(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").Pin("1.0.0").Annotate(v1alpha1.DeployUserAnnotation, "ann"), "1.0.0")...)
	kept := s.rollout("shop")
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if rollout, ok := o.(*v1alpha1.Rollout); ok {
					kept.DeepCopyInto(rollout)
					return nil
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
	}
	s.restart()
	s.pin("shop", new("1.1.0"))
	result, err := s.try("shop")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(result.RequeueAfter).To(Equal(recheck.AfterConflict))
}

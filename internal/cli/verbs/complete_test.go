// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestArgumentsAndFlagsAreCompleted(t *testing.T) {
	bad := func(name string, lifted bool) *v1alpha1.ReleaseQuarantine {
		return &v1alpha1.ReleaseQuarantine{
			ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name},
			Spec:       v1alpha1.ReleaseQuarantineSpec{Digest: "sha256:00", Lifted: lifted},
		}
	}
	gate := func(name, rollout, manager string) *v1alpha1.RolloutGate {
		return &v1alpha1.RolloutGate{
			ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, Labels: map[string]string{v1alpha1.ManagedByLabel: manager}},
			Spec:       v1alpha1.RolloutGateSpec{RolloutRef: &v1alpha1.LocalObjectReference{Name: rollout}},
		}
	}
	asking := gate("security", "shop", "")
	asking.Spec.Approvals = &v1alpha1.Approvals{Role: "security"}
	shop := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.4.0").ID(7).Succeeded()).Obj()
	shop.Status.ReleaseCandidates = []v1alpha1.ReleaseCandidate{{VersionInfo: v1alpha1.VersionInfo{Tag: "1.5.0"}}}
	shop.Status.AvailableReleases = []v1alpha1.VersionInfo{{Tag: "1.3.0"}, {Tag: "1.4.0"}, {Tag: "1.5.0"}}
	const tags = "1.5.0 1.4.0 1.3.0 :36"
	for line, want := range map[string]string{
		"explain ":                             "cart shop :4",
		"explain shop ":                        tags,
		"get ":                                 "cart shop :4",
		"get shop ":                            "cart :4",
		"explain shop --version ":              tags,
		"explain rollout/shop --version ":      tags,
		"explain nobody --version ":            ":4",
		"approve shop --version ":              tags,
		"approve shop --gate ":                 "qa security :4",
		"approve shop --role ":                 "security :4",
		"reject shop ":                         tags,
		"override shop --for ":                 "30m 1h 4h :4",
		"override shop --also ":                "gates schedules :4",
		"simulate shop --approved ":            tags,
		"rollback shop --to ":                  "1.4.0 :36",
		"pin shop ":                            tags,
		"pin shop 1.4.0 ":                      ":4",
		"history shop ":                        "7 :36",
		"unfreeze ":                            "cart :4",
		"wait shop --for ":                     "version= applied= promoted= candidate= idle :4",
		"events shop --types ":                 "Normal Warning :4",
		"get -n ":                              "shop-dev shop-prod :4",
		"get -o ":                              "wide name json yaml kyaml jsonpath jsonpath-as-json jsonpath-file :4",
		"explain -o ":                          "json yaml kyaml jsonpath jsonpath-as-json jsonpath-file :4",
		"explain shop --at ":                   ":4",
		"promote shop -m ":                     ":4",
		"doctor ":                              ":4",
		"lint ":                                ":0",
		"diff -f ":                             ":0",
		"trace rollout ":                       ":4",
		"get -l ":                              ":4",
		"create gate qa --rollout ":            "cart shop :4",
		"create rollout till --kustomization ": ":4",
		"create rollout ":                      ":4",
	} {
		t.Run(line, func(t *testing.T) {
			words := strings.Split(line, " ")
			got := newInMemory(t, shop, fixture.MakeRollout("cart").Obj(), bad("one", false), bad("two", true), gate("qa", "shop", ""), asking, gate("freeze-cart", "cart", request.FreezeManager),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-prod"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-dev"}},
			).run(t, append([]string{"__completeNoDesc"}, words...)...)
			if diff := cmp.Diff(want, strings.Join(strings.Fields(got.Out), " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	got := newInMemory(t, bad("one", false), bad("two", true), bad("three", false)).run(t, "__complete", "lift", "")
	if diff := cmp.Diff("one\nthree\n:4\n", got.Out); diff != "" {
		t.Errorf("lift (-want +got):\n%s", diff)
	}
}

// Without a function, a shell offers the names of files.
func TestEachFlagHasACompletion(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			_, has := cmd.GetFlagCompletionFunc(f.Name)
			if has == slices.Contains(flagsWithFiles, f.Name) {
				t.Errorf("%s --%s has a completion: %t: %s", cmd.CommandPath(), f.Name, has, f.Usage)
			}
		})
		for _, below := range cmd.Commands() {
			check(below)
		}
	}
	check(NewRoot(program.New("kubectl rollouts", genericiooptions.NewTestIOStreamsDiscard())))
}

// SPDX-License-Identifier: Apache-2.0

package show_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

// combining is a text whose first letter has two parts.
const combining = "e\u0301t\u00e9"

// harmless is what becomes of a text that would control a terminal.
const harmless = `\x1b[2Ja\x0db\u202ec`

// coloured finds what is painted.
var coloured = regexp.MustCompile(`\x1b\[\d+m(.*?)\x1b\[0m`)

// sample returns a tree with a line of each form.
func sample() tree.Tree {
	now := time.Date(2026, time.November, 21, 13, 5, 0, 0, time.UTC)
	promoted := metav1.NewTime(now.Add(-52 * time.Hour))
	in := func(kind, namespace, name string) *tree.Object {
		return &tree.Object{Kind: kind, Namespace: namespace, Name: name}
	}
	return tree.Tree{
		Time: metav1.NewTime(now),
		Head: tree.Head{
			Version: "1.3.2", State: "Succeeded", Since: &promoted, By: "alice@example.com", Message: "spring prices",
			Next: &tree.Next{Version: "1.5.0", Holds: make([]tree.Hold, 2)},
		},
		Root: &tree.Node{Object: in("Rollout", "shop", "shop"), Sign: tree.Well, Children: []*tree.Node{
			{Name: "Gates", Sign: tree.Failed, Text: "2 of 3 are well", Children: []*tree.Node{
				{Object: in("RolloutGate", "shop", "qa"), Sign: tree.Failed, Text: "holds back every release"},
				{Sign: tree.Well, Folded: &tree.Folded{Count: 2, Kind: "RolloutGate"}},
			}},
			{Name: "Health", Sign: tree.Well, Folded: &tree.Folded{Count: 3, Kind: "HealthCheck"}},
			{Name: "Targets", Sign: tree.Well, Text: "2 of 2 applied 1.3.2", Children: []*tree.Node{
				{Object: in("OCIRepository", "shop", "shop"), Target: true, Sign: tree.Well, Text: "1.3.2@sha256:a11b01f8", Children: []*tree.Node{
					{
						Object: in("Kustomization", "shop", "shop"), Target: true, Sign: tree.Waits, Text: "大きい " + combining,
						Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Progressing", Message: "running"}},
						Children: []*tree.Node{
							{Sign: tree.Waits, Text: "Available: 0/1", Folded: &tree.Folded{Count: 5, Kind: "Deployment", Names: []string{"a", "b", "c"}}},
							{Object: in("Service", "other", "web"), Sign: tree.Suspended, Text: "\x1b[2Ja\rb\u202ec"},
							{Object: in("Namespace", "", "other"), Sign: tree.Unknown, Text: "two\nlines"},
							{Sign: tree.Well, Folded: &tree.Folded{Count: 1, Kind: "Job"}},
						},
					},
					{Object: in("Kustomization", "shop", "db"), Target: true, Sign: tree.Well, Folded: &tree.Folded{Count: 14}},
				}},
			}},
		}},
	}
}

func TestTreeIsDrawn(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	for name, tt := range map[string]struct {
		style show.TreeStyle
		want  string
	}{
		"with lines and signs": {show.TreeStyle{Style: show.Style{Unicode: true}, Zone: zone, Explain: "kubectl rollouts explain shop -n shop"}, `
Rollout shop/shop     1.3.2  ✔ Succeeded  since Thu 19 Nov 10:05 CET (2d4h), by alice@example.com: "spring prices"
│ Next                1.5.0, held by 2
│                     see: kubectl rollouts explain shop -n shop
├─ Gates              ✗ RolloutGate/qa: holds back every release   ✔ 2 others
├─ Health             ✔ 3 HealthChecks
└─ Targets            ✔ 2 of 2 applied 1.3.2
   └─ OCIRepository/shop  ✔ 1.3.2@sha256:a11b01f8
      ├─ Kustomization/shop  ◎ 大きい ` + combining + `
      │     Ready=Unknown  Progressing: running
      │  ├─ 5 Deployments (a, b, c, and 2 more)  ◎ Available: 0/1
      │  ├─ Service/other/web  ‖ ` + harmless + `
      │  ├─ Namespace/other  ? two lines
      │  └─ 1 other   ✔
      └─ Kustomization/db  ✔ 14 objects, all current
`},
		"in ASCII": {show.TreeStyle{}, `
Rollout shop/shop     1.3.2  ok Succeeded  since Thu 19 Nov 09:05 UTC (2d4h), by alice@example.com: "spring prices"
| Next                1.5.0, held by 2
|- Gates              x RolloutGate/qa: holds back every release   ok 2 others
|- Health             ok 3 HealthChecks
` + "`" + `- Targets            ok 2 of 2 applied 1.3.2
   ` + "`" + `- OCIRepository/shop  ok 1.3.2@sha256:a11b01f8
      |- Kustomization/shop  o 大きい ` + combining + `
      |     Ready=Unknown  Progressing: running
      |  |- 5 Deployments (a, b, c, and 2 more)  o Available: 0/1
      |  |- Service/other/web  = ` + harmless + `
      |  |- Namespace/other  ? two lines
      |  ` + "`" + `- 1 other   ok
      ` + "`" + `- Kustomization/db  ok 14 objects, all current
`},
		"narrow, with colours": {show.TreeStyle{Style: show.Style{Unicode: true, Width: 40, Colours: true}}, `
Rollout shop/shop
│   1.3.2 ✔ Succeeded since Thu 19 Nov
│   09:05 UTC (2d4h), by
│   alice@example.com: "spring prices"
│ Next                1.5.0, held by 2
├─ Gates              <✗> 2 of 3 are well
│  ├─ RolloutGate/qa  <✗>
│  │     holds back every release
│  └─ 2 others        <✔>
├─ Health             <✔> 3 HealthChecks
└─ Targets            <✔>
      2 of 2 applied 1.3.2
   └─ OCIRepository/shop  <✔>
         1.3.2@sha256:a11b01f8
      ├─ Kustomization/shop  <◎>
      │     大きい ` + combining + `
      │     Ready=Unknown
      │        Progressing: running
      │  ├─ 5 Deployments (a, b, c, and…
      │  ├─ Service/other/web  <‖>
      │  │     ` + harmless + `
      │  ├─ Namespace/other  <?> two lines
      │  └─ 1 other   <✔>
      └─ Kustomization/db  <✔>
            14 objects, all current
`},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			if err := show.Tree(&text, sample(), tt.style); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(tt.want, "\n"), strings.Split("\n"+coloured.ReplaceAllString(text.String(), "<$1>"), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeadIsDrawn(t *testing.T) {
	for name, tt := range map[string]struct {
		head tree.Head
		sign tree.Sign
		want []string
	}{
		"no release": {tree.Head{}, tree.Waits, []string{"Rollout shop/shop     no release yet"}},
		"goes now": {
			tree.Head{Next: &tree.Next{Version: "1.5.0", Promotes: true, Message: "the newest eligible release of ImagePolicy shop"}}, tree.Waits,
			[]string{"Rollout shop/shop     no release yet", "| Next                1.5.0, goes now: the newest eligible release of ImagePolicy shop"},
		},
		"suspended": {
			tree.Head{Suspended: true, Problems: []explain.Problem{{Reason: "Suspended", Message: "the Rollout is suspended"}}, Next: &tree.Next{Version: "1.5.0", Promotes: true, Message: "pinned"}}, tree.Suspended,
			[]string{
				"Rollout shop/shop     no release yet", "|                     = Suspended: the Rollout is suspended",
				"| Next                1.5.0, goes once you resume it: pinned",
			},
		},
		"failed, and a request that cannot be fulfilled": {
			tree.Head{Version: "1.3.2", State: "Failed", StateMessage: "HealthCheck smoke: 502", Problems: []explain.Problem{{Reason: "InvalidWantedVersion", Message: "spec.wantedVersion cannot be a tag"}}, Next: &tree.Next{Version: "1.5.0"}},
			tree.Failed,
			[]string{
				"Rollout shop/shop     1.3.2  x Failed", "|                     x HealthCheck smoke: 502",
				"|                     ! InvalidWantedVersion: spec.wantedVersion cannot be a tag", "| Next                1.5.0",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			of := tree.Tree{Head: tt.head, Root: &tree.Node{Object: &tree.Object{Kind: "Rollout", Namespace: "shop", Name: "shop"}, Sign: tt.sign}}
			if err := show.Tree(&text, of, show.TreeStyle{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(tt.want, "\n")+"\n", text.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTreeWrapsWhatFluxSays(t *testing.T) {
	why := "Job/shop/migrate dry-run failed (Invalid): spec.template: Invalid value: {}: field is immutable"
	of := tree.Tree{
		Head: tree.Head{Version: "1.1.0", State: "Failed", StateMessage: why, Message: "the newest eligible release of ImagePolicy shop"},
		Root: &tree.Node{Object: &tree.Object{Kind: "Rollout", Namespace: "shop", Name: "shop"}, Sign: tree.Failed},
	}
	var text strings.Builder
	if err := show.Tree(&text, of, show.TreeStyle{Style: show.Style{Unicode: true, Width: 70}}); err != nil {
		t.Fatal(err)
	}
	want := "Rollout shop/shop     1.1.0 ✗ Failed: \"the newest eligible release of\n" +
		"│                     ImagePolicy shop\"\n" +
		"│                     ✗ Job/shop/migrate dry-run failed (Invalid):\n" +
		"│                       spec.template: Invalid value: {}: field is\n" +
		"│                       immutable\n"
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLinesAreAsWideAsTheTerminal(t *testing.T) {
	for width := 1; width < 120; width++ {
		var text strings.Builder
		if err := show.Tree(&text, sample(), show.TreeStyle{Style: show.Style{Unicode: true, Width: width}}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if n := wide(strings.TrimSuffix(line, "\n")); n > width {
				t.Fatalf("%q is %d wide, want at most %d", line, n, width)
			}
		}
	}
}

// wide returns the columns of a text whose only wide characters are those of the sample.
func wide(text string) (n int) {
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Mn, r):
		case strings.ContainsRune("大きい", r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// broken is a writer behind which nobody reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestErrorOfTheWriterIsReturned(t *testing.T) {
	if err := show.Tree(broken{}, sample(), show.TreeStyle{}); err == nil {
		t.Error("no error of the tree")
	}
	if err := show.Origin(broken{}, tree.Origin{}, show.TreeStyle{}); err == nil {
		t.Error("no error of the trace")
	}
}

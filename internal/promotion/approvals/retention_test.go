// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestExpendableApprovalsEndedLongAgo(t *testing.T) {
	const day = 24 * time.Hour
	ago := func(days int) time.Time { return fixture.Noon.Add(-time.Duration(days) * day) }
	usedBy := func(days int, name string) v1alpha1.DeploymentHistoryEntry {
		uid := fixture.MakeApproval("", "shop", "1.0.0").Named(name).At(fixture.Noon).Obj().UID
		return v1alpha1.DeploymentHistoryEntry{
			Timestamp: metav1.NewTime(ago(days)),
			Approval:  &v1alpha1.ApprovalRecord{By: []v1alpha1.RecordedApproval{{UID: uid}}},
		}
	}
	approve := func(days int) *fixture.ApprovalBuilder {
		return fixture.MakeApproval("bob", "shop", "1.0.0").At(ago(days))
	}
	for name, test := range map[string]struct {
		given   *fixture.ApprovalBuilder
		history []v1alpha1.DeploymentHistoryEntry
		want    string
	}{
		"an approval that could still count for some gate": {given: approve(179)},
		"an approval that expired 90 days ago":             {given: approve(180), want: "shop-bob"},
		"an approval that was used 89 days ago":            {given: approve(95), history: []v1alpha1.DeploymentHistoryEntry{usedBy(89, "shop-bob")}},
		"an approval that was used 90 days ago":            {given: approve(95), history: []v1alpha1.DeploymentHistoryEntry{usedBy(90, "shop-bob")}, want: "shop-bob"},
		"the use of another one":                           {given: approve(95), history: []v1alpha1.DeploymentHistoryEntry{usedBy(90, "shop-eve")}},
		"a rejection":                                      {given: approve(3650).Reject()},
		"an override that ended 90 days ago":               {given: approve(91).Override(day, "payments down"), want: "shop-bob"},
		"an override that ended 89 days ago":               {given: approve(90).Override(day, "payments down")},
	} {
		t.Run(name, func(t *testing.T) {
			given := []v1alpha1.RolloutApproval{*test.given.Obj()}
			if diff := cmp.Diff(test.want, namesOf(Expendable(given, test.history, KeptFor, fixture.Noon))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpendableApprovalsAreTheTenOldest(t *testing.T) {
	var given []v1alpha1.RolloutApproval
	for i := range 12 {
		given = append(given, *fixture.MakeApproval("bob", "shop", "1.0.0").Named(fmt.Sprint("a", i)).
			At(fixture.Noon.Add(-time.Duration(200+i) * 24 * time.Hour)).Obj())
	}
	if diff := cmp.Diff("a11 a10 a9 a8 a7 a6 a5 a4 a3 a2", namesOf(Expendable(given, nil, KeptFor, fixture.Noon))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func namesOf(all []v1alpha1.RolloutApproval) string {
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
	}
	return strings.Join(names, " ")
}

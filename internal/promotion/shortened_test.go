// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// immutable is what Flux says of a Job whose template has changed: the API server prints the
// whole template, and then the cause.
var immutable = `Job/shop/migrate dry-run failed (Invalid): Job.batch "migrate" is invalid: spec.template: Invalid value: ` +
	strings.Repeat(`{"labels":{"batch.kubernetes.io/controller-uid":"0d4ad4e6"}},`, 33) + `: field is immutable`

func TestHistoryKeepsTheCauseAtTheEndOfALongText(t *testing.T) {
	s := given(deploying().DeployTimeout(time.Minute)).at(noon.Add(time.Hour)).targets(target("apps", v1alpha1.TargetFailed, immutable))
	why := *decideAndRecord(t, s)[0].BakeStatusMessage
	if !strings.HasPrefix(why, "not applied and healthy within 1m0s: ") || !strings.HasSuffix(why, "field is immutable") {
		t.Errorf("the history says: %s", why)
	}
}

func TestPinThatIsTooLongIsQuotedInWholeCharacters(t *testing.T) {
	d := promotion.Decide(given(rollout().Pin("a" + strings.Repeat("é", 100)).Ledger("1.0.0")).in())
	if d.Problem == nil || !utf8.ValidString(d.Problem.Message) || strings.Contains(d.Problem.Message, `\x`) {
		t.Errorf("it says %+v", d.Problem)
	}
}

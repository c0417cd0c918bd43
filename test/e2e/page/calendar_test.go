// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/browser"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// Case 37: the edge that the page shows is that at which `simulate` lets the release go, in a
// window over midnight or not, and in a zone that the viewer does not have.
func TestCalendarShowsTheEdgesOfSimulate(t *testing.T) {
	a := env.NewApplication(t, plane)
	a.Release("1.0.0")
	a.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	opens := time.Now().In(zone).Add(3 * time.Hour).Truncate(time.Minute)
	schedule := &v1alpha1.RolloutSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "nights"}}
	schedule.Spec = v1alpha1.RolloutScheduleSpec{
		RolloutSelector: &metav1.LabelSelector{}, Timezone: zone.String(), Action: v1alpha1.ScheduleAllow,
		Rules: []v1alpha1.ScheduleRule{{Name: "shift", TimeRange: &v1alpha1.TimeRange{Start: opens.Format("15:04"), End: opens.Add(14 * time.Hour).Format("15:04")}}},
	}
	always := &v1alpha1.RolloutSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "always"}, Spec: *schedule.Spec.DeepCopy()}
	always.Spec.Rules[0].TimeRange = &v1alpha1.TimeRange{Start: "00:00", End: "00:00"}
	a.Create(schedule, always)
	a.AwaitClosed()
	a.Release("1.1.0")
	a.AwaitCandidate("1.1.0")

	kate := a.CommandLine(a.Namespace+":kim", masters)
	o := open(t, kate, "-n", a.Namespace)
	if _, err := chromedp.Call(o.Ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}); err != nil {
		t.Fatal(err)
	}
	o.goes("/calendar")
	o.shows("RolloutSchedule " + a.Namespace + " / nights America/New_York")
	o.Do(t, chromedp.Click(chromedp.CSS(`[aria-label$="/ nights"] summary`)))
	o.shows(opens.Format("Mon 02 Jan 15:04 MST"))
	o.shows("GMT+5:30")
	edges := browser.Ask(t, o.Browser, chromedp.Evaluate[[]string](`[...document.querySelectorAll('[aria-label$="/ nights"] td time')].map((t) => t.dateTime)`))
	if len(edges) < 13 || edges[0] != opens.UTC().Format(time.RFC3339) {
		t.Errorf("edges %q, want the first at %s", edges, opens.UTC())
	}
	if said := kate.MustRun("simulate", a.Name, "-o", "json"); !strings.Contains(said, fmt.Sprintf("%q", edges[0])) || !json.Valid([]byte(said)) {
		t.Errorf("%s is not in:\n%s", edges[0], said)
	}
	if n := browser.Ask(t, o.Browser, chromedp.Evaluate[int64](`document.querySelectorAll('[aria-label$="/ always"] rect').length`)); n != 1 {
		t.Errorf("a schedule that is always open has %d stretches", n)
	}
	o.canBeRead("calendar")
}

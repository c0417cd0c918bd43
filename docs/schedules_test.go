// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

// saidOf matches a row of the table on the page about freezes: a moment in Berlin, and
// the state of two schedules at that moment.
var saidOf = regexp.MustCompile(`(?m)^\| (\d{4}-\d\d-\d\d \d\d:\d\d) \| (open|closed) \| (open|closed) \|$`)

func TestSchedulesOfTheGuideSayWhatItsTableSays(t *testing.T) {
	page := documents(t)["docs/guides/schedules.md"]
	schedules := schedulesIn(t, page)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	rows := saidOf.FindAllStringSubmatch(page, -1)
	for _, row := range rows {
		at, err := time.ParseInLocation("2006-01-02 15:04", row[1], berlin)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"office-hours", "year-end"} {
			if said := strings.Fields(schedules[name].At(at).String())[0]; said != row[2+i] {
				t.Errorf("at %s %s is %s, and the guide says %s", row[1], name, said, row[2+i])
			}
		}
	}
	if len(rows) < 9 {
		t.Errorf("found only %d rows", len(rows))
	}
}

// schedulesIn returns the schedules on the page, by name. It checks that all of them can
// be evaluated.
func schedulesIn(t *testing.T, page string) map[string]*schedule.Schedule {
	t.Helper()
	found := map[string]*schedule.Schedule{}
	for _, manifest := range manifestsIn(page) {
		var shown struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Spec              v1alpha1.RolloutScheduleSpec `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(manifest), &shown); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(shown.Kind, "RolloutSchedule") {
			continue
		}
		parsed, err := schedule.Parse(&shown.Spec)
		if err != nil {
			t.Errorf("%s: %v", shown.Name, err)
		}
		found[shown.Name] = parsed
	}
	return found
}

// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestLostStatusIsBegunWithWhatRuns(t *testing.T) {
	t.Parallel()
	a := newApplication(t)
	a.staging.SetBakeTime(long)
	lostAt := time.Now()
	for _, e := range []*env.Env{a.staging, a.prod} {
		rollout, environment := e.Rollout(), e.Environment("")
		e.ChangeStatus(environment, func() { environment.Status = environmentsv1.EnvironmentStatus{} })
		e.ChangeStatus(rollout, func() { rollout.Status = v1alpha1.RolloutStatus{} })
	}
	a.page().does("The status is lost")
	adopted := a.prod.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	if entries := adopted.Status.History; len(entries) != 1 || *entries[0].ID < lostAt.Unix() {
		t.Errorf("history %v: want one entry with an id from %d on", env.History(adopted), lostAt.Unix())
	}
	a.opens()
	a.holds("1.1.0: waits for staging")
	a.staysAt("1.0.0")
	a.staging.SetBakeTime(time.Second)
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}

func TestOldStatusOfABackupTakesNothingBack(t *testing.T) {
	t.Parallel()
	a := alone(t)
	p := a.page()
	p.does("What to back up")
	a.opens()
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	before := generations(a.prod)
	p.does("Restore a backup")
	a.prod.Await("an old status", isOutdated)
	a.prod.Stays("as it was restored", func(r *v1alpha1.Rollout) bool { return isOutdated(r) && a.tag() == "1.1.0" })
	p.does("The status is older than what runs")
	if diff := cmp.Diff(before, generations(a.prod)); diff != "" {
		t.Errorf("targets were written, generations (-before +after):\n%s", diff)
	}
	a.staysAt("1.1.0")
}

func isOutdated(r *v1alpha1.Rollout) bool {
	stalled := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.StalledCondition)
	return stalled != nil && stalled.Reason == v1alpha1.HistoryOutdatedReason
}

// generations returns how often the specs of the targets were changed.
func generations(e *env.Env) map[string]int64 {
	e.T.Helper()
	repository, kustomization := e.OCIRepository(""), e.Kustomization()
	e.Read(repository)
	e.Read(kustomization)
	return map[string]int64{"OCIRepository": repository.Generation, "Kustomization": kustomization.Generation}
}

// The backup is taken while a release bakes in staging. The bake goes on with its start, and
// counts for production.
func TestBackupBringsHistoryBakesAndProofsBack(t *testing.T) {
	t.Parallel()
	a := alone(t)
	a.opens()
	a.prod.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	a.staging.SetBakeTime(long)
	a.publish("1.2.0")
	baking := a.staging.AwaitState("1.2.0", v1alpha1.BakeInProgress)
	a.holds("1.2.0: waits for staging: it bakes there")
	before := records(a)
	p := a.page()
	p.does("What to back up")
	for _, e := range []*env.Env{a.staging, a.prod} {
		loses(e, e.Rollout(), e.Environment(""), mirror(e))
	}
	p.does("Restore a backup")
	a.holds("1.2.0: waits for staging")
	a.staysAt("1.1.0")
	if diff := cmp.Diff(before, records(a)); diff != "" {
		t.Errorf("records (-before +after):\n%s", diff)
	}
	if after := a.staging.Live().Current(); !after.BakeStartTime.Equal(baking.Current().BakeStartTime) {
		t.Errorf("the bake began at %s, and now at %s", baking.Current().BakeStartTime, after.BakeStartTime)
	}
	a.staging.SetBakeTime(time.Second)
	a.prod.AwaitState("1.2.0", v1alpha1.BakeSucceeded)
}

// mirror returns the gate that a Rollout owns. Here nobody else deletes what an object owned
// that was deleted.
func mirror(e *env.Env) *v1alpha1.RolloutGate {
	return &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: promotion.MirrorName(e.Rollout())}}
}

// records are the histories of both environments, and the releases that they have on record.
func records(a *application) map[string][]string {
	all := map[string][]string{}
	for _, e := range []*env.Env{a.staging, a.prod} {
		environment := e.Environment("")
		e.Read(environment)
		all[e.Namespace+" history"] = env.History(e.Live())
		for i := range environment.Status.Releases {
			release := &environment.Status.Releases[i]
			all[e.Namespace+" releases"] = append(all[e.Namespace+" releases"], release.Tag+" "+string(release.State))
		}
	}
	return all
}

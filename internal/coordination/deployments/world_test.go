// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// world is a cluster with a controller that carries out the plans, and with all that can
// disturb it. Nothing disturbs it if there is no rng.
type world struct {
	*cluster
	rng *rand.Rand
	// rough means that reads are old, that writes fail and get lost, and that users act
	// between any two of them.
	rough bool
	// cache is the state that the controller knows.
	cache view
	// passedAt is the version that the last pass saw, and wakeAt is when the next one is
	// due. unfinished means that the pass has to be repeated.
	passedAt   int
	wakeAt     time.Time
	unfinished bool
	// dies is the number of writes before the controller dies; never if it is negative.
	dies int
	// refused contains apps, by key, and coordinations, by name, whose writes are
	// refused, with the reason. stale contains apps that are paused again once after they
	// are unpaused.
	refused, stale map[string]string
	// errors contains the errors of the last write to an app.
	errors map[string]string
	// touched contains what users have changed since the plan was made.
	touched map[string]bool
	// passes counts the passes that were carried out as planned.
	passes int
	// writes counts all writes of the controller, and notes contains its events.
	writes int
	notes  []string
	lines  strings.Builder
	saidAt time.Time
}

// view is the stored state, as of one version.
type view struct {
	version int
	in      deployments.Input
	apps    map[string]int
	crs     map[string]int
}

var errDied = errors.New("the controller died")

func newWorld(t *testing.T, rng *rand.Rand) *world {
	t.Helper()
	w := &world{
		cluster: newCluster(t), rng: rng, dies: -1, refused: map[string]string{}, stale: map[string]string{},
		errors: map[string]string{}, touched: map[string]bool{},
	}
	return w
}

// log adds a line to the golden file, below the time at which it happens.
func (w *world) log(format string, args ...any) {
	if !w.saidAt.Equal(w.now) {
		w.saidAt = w.now
		fmt.Fprintf(&w.lines, "[%s]\n", w.now.Format(time.TimeOnly))
	}
	fmt.Fprintf(&w.lines, "  "+format+"\n", args...)
}

// chance returns true once in n times.
func (w *world) chance(n int) bool { return w.rng != nil && w.rng.IntN(n) == 0 }

// look reads everything.
func (w *world) look() view {
	v := view{version: w.version, apps: map[string]int{}, crs: map[string]int{}}
	v.in.HoldMode = deployments.AdmissionMode{Reason: coordinationv1.ControllerOnlyReason, Message: "the controller pauses after the fact"}
	for _, name := range w.crNames() {
		r := w.crs[name]
		v.crs[name] = r.version
		copied := r.Coordination
		copied.Journal = *r.Journal.DeepCopy()
		copied.Spec = *r.Spec.DeepCopy()
		v.in.Coordinations = append(v.in.Coordinations, copied)
	}
	for _, name := range w.appNames() {
		a := w.apps[name]
		v.apps[a.Key] = a.version
		d := a.facts()
		d.WriteError, d.WasPaused = w.errors[a.Key], a.held == a.Template
		v.in.Deployments = append(v.in.Deployments, d)
	}
	return v
}

// wake runs a pass if there is something to look at, and reports whether it did.
func (w *world) wake() bool {
	if w.cache.apps == nil || !w.rough || !w.chance(3) {
		w.cache = w.look()
	}
	due := !w.wakeAt.IsZero() && !w.now.Before(w.wakeAt)
	if w.cache.version == w.passedAt && !due && !w.unfinished {
		return false
	}
	w.passedAt, w.unfinished = w.cache.version, false
	if err := w.pass(); err != nil {
		w.unfinished = true
		if errors.Is(err, errDied) {
			w.log("controller: dies")
			w.dies, w.cache = -1, view{}
			clear(w.errors)
			for _, a := range w.apps {
				a.held = ""
			}
		}
	}
	return true
}

// pass does what the controller does: decide on the cache; read again if the plan changes
// something; store the journals; act.
func (w *world) pass() error {
	v := w.cache
	plan := w.decide(v)
	if plan.Begins || len(plan.Writes) > 0 {
		v = w.look()
		plan = w.decide(v)
		w.checkBake(v, plan)
		w.checkGiven(v, plan)
	}
	clear(w.touched)
	current := v.version == w.version
	w.wakeAt = plan.RecheckAt
	unstored, err := w.record(v, plan)
	if errors.Is(err, errDied) {
		return err
	}
	w.saw(v, plan, unstored)
	if err := errors.Join(err, w.act(v, plan, unstored)); err != nil {
		return err
	}
	if current && len(w.touched) == 0 {
		w.passes++
		w.checkAfter(v)
	}
	return nil
}

// saw records what a pass has seen and stored: the apps that are not available, and how
// many replicas there are. The checks use it from then on.
func (w *world) saw(v view, plan deployments.Plan, unstored map[string]bool) {
	for _, j := range plan.Journals {
		for _, d := range v.in.Deployments {
			a := w.byKey(d.Key)
			if a == nil || unstored[j.Component] || !slices.Contains(j.Status.Deployments, d.Key) {
				continue
			}
			if !d.Available {
				a.before = time.Time{}
			}
			if a.UID == d.UID && d.TemplateHasSet && !d.OthersUp && d.UpdatedReplicas == d.Replicas && d.AvailableReplicas == d.Replicas {
				a.readyReplicas = d.Replicas
				if d.Replicas > 0 && !j.Status.HasTurn(d.Key) {
					a.past[d.Template] = true
				}
			}
		}
	}
}

// decide calls the planner, and verifies that the order of the input does not matter.
func (w *world) decide(v view) deployments.Plan {
	in := v.in
	in.Now = w.now
	plan := deployments.Decide(in)
	turned := in
	turned.Coordinations = slices.Clone(in.Coordinations)
	turned.Deployments = slices.Clone(in.Deployments)
	slices.Reverse(turned.Coordinations)
	slices.Reverse(turned.Deployments)
	if again := deployments.Decide(turned); !reflect.DeepEqual(plan, again) {
		w.t.Fatalf("the order of the input changes the plan:\n%s", cmp.Diff(plan, again))
	}
	return plan
}

// record stores the journals, each under its lock. After the first one that cannot be
// stored it skips the other journals of its component.
func (w *world) record(v view, plan deployments.Plan) (unstored map[string]bool, failed error) {
	unstored = map[string]bool{}
	for _, j := range plan.Journals {
		if unstored[j.Component] {
			continue
		}
		err := w.storeJournal(v, j)
		if errors.Is(err, errDied) {
			return unstored, err
		}
		unstored[j.Component] = err != nil
		failed = errors.Join(failed, err)
	}
	return unstored, failed
}

func (w *world) storeJournal(v view, j deployments.Journal) error {
	r := w.crs[j.Coordination]
	text, next := store(w.t, j.Status)
	if r != nil && text == r.stored && r.version == v.crs[j.Coordination] {
		w.emit(j.Coordination, j.Notes...)
		return nil
	}
	if err := w.fate(); err != nil {
		return err
	}
	if w.crs[j.Coordination] == nil || w.crs[j.Coordination].version != v.crs[j.Coordination] {
		return fmt.Errorf("conflict on %s", j.Coordination)
	}
	if reason := w.refused[j.Coordination]; reason != "" {
		return errors.New(reason)
	}
	r = w.crs[j.Coordination]
	w.checkConditions(r.Journal, next)
	w.logJournal(r, next)
	r.Journal, r.stored = next, text
	w.version++
	r.version = w.version
	w.writes++
	w.emit(j.Coordination, j.Notes...)
	if w.rough && w.chance(40) {
		return errors.New("stored, but the answer was lost")
	}
	return nil
}

// act makes the writes of the components whose journals are stored, each to the version
// that was decided upon. While an app could not be paused, no other one is unpaused.
func (w *world) act(v view, plan deployments.Plan, unstored map[string]bool) error {
	var failed error
	rolling := map[string]bool{}
	for _, p := range plan.Writes {
		if unstored[p.Component] || p.Kind == deployments.WriteUnpause && rolling[p.Component] {
			continue
		}
		err := w.fate()
		if errors.Is(err, errDied) {
			return err
		}
		if err == nil {
			err = w.write(v, p)
			w.remember(p, err)
		}
		rolling[p.Component] = rolling[p.Component] || err != nil && p.Stops
		failed = errors.Join(failed, err)
	}
	return failed
}

// remember records the error of a write, and emits its events.
func (w *world) remember(p deployments.Write, err error) {
	delete(w.errors, p.Deployment)
	note := p.Done
	if err != nil {
		w.errors[p.Deployment] = err.Error()
		note = p.Failed
		note.Message += ": " + err.Error()
	}
	for _, name := range p.Coordinations {
		w.emit(name, note)
	}
}

// write changes one app.
func (w *world) write(v view, p deployments.Write) error {
	a := w.apps[strings.TrimPrefix(p.Deployment, "shop/")]
	if a == nil || a.UID != p.UID || a.version != v.apps[p.Deployment] {
		return fmt.Errorf("conflict on %s", p.Deployment)
	}
	if reason := w.refused[p.Deployment]; reason != "" {
		return errors.New(reason)
	}
	w.checkWrite(v, p, a)
	before := a.spec()
	if p.Paused != a.Paused {
		a.PausedBy = ""
	}
	a.Paused, a.HeldBy, a.held = p.Paused, p.HeldBy, ""
	if p.Kind == deployments.WritePause {
		a.held = a.Template
	}
	w.wrote(a, before)
	w.writes++
	w.log("controller: %s", describe(p))
	if _, stale := w.stale[p.Deployment]; stale && p.Kind == deployments.WriteUnpause {
		delete(w.stale, p.Deployment)
		a.Paused = true
		return errors.New("it came back paused")
	}
	return nil
}

func describe(p deployments.Write) string {
	switch p.Kind {
	case deployments.WritePause:
		return fmt.Sprintf("pauses %s, held by %s", p.Deployment, p.HeldBy)
	case deployments.WriteUnpause:
		return fmt.Sprintf("releases %s", p.Deployment)
	case deployments.WriteMark:
		return fmt.Sprintf("marks %s as held by %q", p.Deployment, p.HeldBy)
	case deployments.WriteRestore:
		return fmt.Sprintf("gives %s back, paused: %t", p.Deployment, p.Paused)
	}
	return string(p.Kind)
}

// fate is called before every write.
func (w *world) fate() error {
	if w.dies == 0 {
		return errDied
	}
	if w.dies > 0 {
		w.dies--
	}
	if !w.rough {
		return nil
	}
	if w.chance(25) {
		w.anything()
	}
	if w.chance(40) {
		return errDied
	}
	if w.chance(40) {
		return errors.New("the API server is busy")
	}
	return nil
}

// emit stores the events, and shows them in the scenario.
func (w *world) emit(name string, notes ...deployments.Note) {
	for _, note := range notes {
		if note.Reason == "" {
			continue
		}
		kind := ""
		if note.Warning {
			kind = "Warning "
		}
		w.notes = append(w.notes, name+" "+note.Reason)
		w.log("event on %s: %s%s: %s", name, kind, note.Reason, note.Message)
	}
}

// logJournal shows the changes of the Ready condition.
func (w *world) logJournal(r *cr, next coordinationv1.DeploymentCoordinationStatus) {
	before, after := ready(r.Journal), ready(next)
	if before.Reason == after.Reason && before.Message == after.Message && slices.Equal(r.Journal.Active(), next.Active()) {
		return
	}
	active := "nobody"
	if len(next.Active()) > 0 {
		active = strings.Join(next.Active(), ", ")
	}
	w.log("%s: %s has the turn; %s: %s", r.Name, active, after.Reason, after.Message)
}

func ready(s coordinationv1.DeploymentCoordinationStatus) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == coordinationv1.ReadyCondition {
			return c
		}
	}
	return metav1.Condition{}
}

// step lets every actor act once.
func (w *world) step(d time.Duration) bool {
	w.now = w.now.Add(d)
	for _, name := range w.appNames() {
		w.control(w.apps[name])
	}
	return w.wake()
}

// rest advances the time until nothing happens any more.
func (w *world) rest(most int) {
	w.t.Helper()
	calm := 0
	for range most {
		version := w.version
		passed := w.step(5 * time.Second)
		if calm++; passed || w.version != version {
			calm = 0
		}
		if calm > 0 && w.wakeAt.After(w.now) {
			w.now, calm = w.wakeAt, 0
			continue
		}
		if calm == 3 {
			return
		}
	}
	w.t.Fatalf("there is no rest after %d steps:\n%s", most, w.tail())
}

func (w *world) tail() string {
	lines := strings.Split(w.lines.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-80):], "\n")
}

// connected returns the keys of the apps that share a component with one, according to
// the coordinations of a view.
func connected(v view, key string) map[string]bool {
	found := map[string]bool{key: true}
	for changed := true; changed; {
		changed = false
		for _, co := range v.in.Coordinations {
			members := membersOf(v, co)
			if !slices.ContainsFunc(members, func(k string) bool { return found[k] }) {
				continue
			}
			for _, k := range members {
				changed = changed || !found[k]
				found[k] = true
			}
		}
	}
	return found
}

// limitOf returns how many of the apps that share a component with one may roll out at a
// time.
func limitOf(v view, key string) int {
	component, limit := connected(v, key), len(v.in.Deployments)
	for _, co := range v.in.Coordinations {
		if members := membersOf(v, co); len(members) > 0 && component[members[0]] {
			limit = min(limit, co.Spec.Concurrent(len(members)))
		}
	}
	return limit
}

// isMistake reports whether the selector of a coordination is a mistake.
func isMistake(co deployments.Coordination) bool {
	selector, err := metav1.LabelSelectorAsSelector(&co.Spec.LabelSelector)
	return err != nil || selector.Empty()
}

// membersOf returns the keys of the Deployments that a coordination selects, or has selected
// when its selector was last valid.
func membersOf(v view, co deployments.Coordination) (keys []string) {
	if !isMistake(co) {
		return selected(v, co)
	}
	for _, d := range v.in.Deployments {
		same := func(s coordinationv1.DeploymentState) bool { return s.Name == d.Key && s.UID == d.UID }
		if slices.Contains(co.Journal.Deployments, d.Key) && slices.ContainsFunc(co.Journal.DeploymentStates, same) {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// selected returns the keys of the Deployments that a coordination selects.
func selected(v view, co deployments.Coordination) (keys []string) {
	if isMistake(co) {
		return nil
	}
	selector, _ := metav1.LabelSelectorAsSelector(&co.Spec.LabelSelector)
	for _, d := range v.in.Deployments {
		if selector.Matches(labels.Set(d.Labels)) {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

func (w *world) byKey(key string) *app { return w.apps[strings.TrimPrefix(key, "shop/")] }

// checkWrite verifies that no app is unpaused that a user has paused by annotation, and
// that none begins while as many of the component roll out as may.
func (w *world) checkWrite(v view, p deployments.Write, a *app) {
	if !p.Paused && a.Paused && a.UserPaused {
		w.t.Fatalf("%s is unpaused although a user has paused it:\n%s", p.Deployment, w.tail())
	}
	if p.Kind == deployments.WriteRestore && mistakenHolder(v, a) {
		w.t.Fatalf("%s is unpaused because of a mistake in the selector of %s:\n%s", p.Deployment, a.HeldBy, w.tail())
	}
	if p.Kind != deployments.WriteUnpause || !a.left() {
		return
	}
	if w.waitsForCorrection(v, p.Deployment) && !hadTurn(v, a) {
		w.t.Fatalf("%s begins although the selector of its coordination is a mistake:\n%s", p.Deployment, w.tail())
	}
	var rolling []string
	for key := range connected(v, p.Deployment) {
		other := w.byKey(key)
		if key != p.Deployment && other != nil && other.rolls() && !w.touched[key] {
			rolling = append(rolling, key)
		}
	}
	if len(rolling) >= limitOf(v, p.Deployment) {
		w.t.Fatalf("%s is unpaused while %v roll out:\n%s", p.Deployment, rolling, w.tail())
	}
}

// hadTurn reports whether an app had the turn before the pass.
func hadTurn(v view, a *app) bool {
	return slices.ContainsFunc(v.in.Coordinations, func(co deployments.Coordination) bool { return co.Journal.HasTurn(a.Key) })
}

// mistakenHolder reports whether the coordination in held-by of an app exists, and its
// selector is a mistake.
func mistakenHolder(v view, a *app) bool {
	return slices.ContainsFunc(v.in.Coordinations, func(co deployments.Coordination) bool {
		return co.Name == a.HeldBy && isMistake(co)
	})
}

// checkBake verifies that an app that is reported as ready has been ready for long
// enough, as far as any pass could see. It need not bake with a template that was rolled out
// before.
func (w *world) checkBake(v view, plan deployments.Plan) {
	for _, j := range plan.Journals {
		for _, note := range j.Notes {
			if note.Reason != coordinationv1.ActiveDeploymentReadyEvent {
				continue
			}
			key := strings.Fields(note.Message)[0]
			a, wait := w.byKey(key), time.Duration(0)
			for _, co := range v.in.Coordinations {
				if slices.Contains(membersOf(v, co), key) {
					wait = max(wait, time.Duration(co.Spec.MinReadySeconds)*time.Second)
				}
			}
			if a.past[a.Template] {
				wait = 0
			}
			since := a.ready
			if !a.before.IsZero() && !since.IsZero() {
				since = a.before
			}
			if since.IsZero() || w.now.Sub(since) < wait {
				w.t.Fatalf("the turn of %s ends %s after %s, which is before %s:\n%s", key, w.now.Sub(since), since, wait, w.tail())
			}
		}
	}
}

// checkGiven verifies that an app does not get the turn if all its coordinations know
// that its template is rolled out, and all of its Pods exist. It is no reason that the
// app was unpaused, or that some Pods are not ready.
func (w *world) checkGiven(v view, plan deployments.Plan) {
	for _, d := range v.in.Deployments {
		if !slices.ContainsFunc(plan.Journals, func(j deployments.Journal) bool { return j.Status.HasTurn(d.Key) }) {
			continue
		}
		complete := d.TemplateHasSet && !d.OthersUp && d.UpdatedReplicas >= d.Replicas && w.byKey(d.Key).finished == d.Template
		if complete && knownAsDone(v, d) {
			w.t.Fatalf("%s is given the turn, and has nothing to roll out:\n%s", d.Key, w.tail())
		}
	}
}

// knownAsDone reports whether the Deployment does not have the turn, and all
// coordinations that select it have recorded that its template is rolled out.
func knownAsDone(v view, d deployments.Deployment) bool {
	for _, co := range v.in.Coordinations {
		if co.Journal.HasTurn(d.Key) {
			return false
		}
		done := slices.ContainsFunc(co.Journal.DeploymentStates, func(s coordinationv1.DeploymentState) bool {
			started, finished := s.LastRolloutStarted, s.LastRolloutFinished
			return s.Name == d.Key && s.UID == d.UID && s.Template == d.Template && !s.HasPendingChanges &&
				(started == nil || finished != nil && !finished.Before(started))
		})
		if slices.Contains(selected(v, co), d.Key) && !done {
			return false
		}
	}
	return true
}

// checkAfter verifies the state after a pass that saw the present state and was carried
// out as planned: at most as many apps of a component roll out as may, and all coordinations
// that select one report it as active.
func (w *world) checkAfter(v view) {
	seen := map[string]bool{}
	for _, d := range v.in.Deployments {
		if seen[d.Key] {
			continue
		}
		var rolling []string
		for key := range connected(v, d.Key) {
			seen[key] = true
			if a := w.byKey(key); a != nil && a.rolls() && w.isMember(v, key) {
				rolling = append(rolling, key)
			}
		}
		if len(rolling) > limitOf(v, d.Key) {
			w.t.Fatalf("%v roll out at once:\n%s", slices.Sorted(slices.Values(rolling)), w.tail())
		}
	}
	w.checkTurns(v)
}

func (w *world) isSelected(v view, key string) bool {
	return slices.ContainsFunc(v.in.Coordinations, func(co deployments.Coordination) bool {
		return slices.Contains(selected(v, co), key)
	})
}

// isMember reports whether a coordination has the app, also one whose selector is a mistake.
func (w *world) isMember(v view, key string) bool {
	return slices.ContainsFunc(v.in.Coordinations, func(co deployments.Coordination) bool {
		return slices.Contains(membersOf(v, co), key)
	})
}

// waitsForCorrection reports whether the app belongs to a coordination whose selector is a
// mistake.
func (w *world) waitsForCorrection(v view, key string) bool {
	return slices.ContainsFunc(v.in.Coordinations, func(co deployments.Coordination) bool {
		return isMistake(co) && (slices.Contains(membersOf(v, co), key) || w.byKey(key).HeldBy == co.Name)
	})
}

// checkNeighbours verifies that all apps are rolled out that do not depend on the one
// that cannot be written: it is not in their component, or neither rolls out nor has the
// turn.
func (w *world) checkNeighbours(refused string) {
	v := w.look()
	concerned := map[string]bool{}
	if a := w.byKey(refused); a != nil && !a.left() && !w.hasTurn(refused) {
		concerned[refused] = true
	} else if a != nil {
		concerned = connected(v, refused)
	}
	for _, co := range v.in.Coordinations {
		for _, key := range membersOf(v, co) {
			if co.Name == refused {
				maps.Copy(concerned, connected(v, key))
			}
		}
	}
	for _, name := range w.appNames() {
		if a := w.apps[name]; w.isSelected(v, a.Key) && a.finished != a.Template && !concerned[a.Key] && !w.waitsForCorrection(v, a.Key) {
			w.t.Fatalf("%s waits for ever because writes to %s are refused:\n%s", a.Key, refused, w.tail())
		}
	}
}

func (w *world) hasTurn(key string) bool {
	for _, r := range w.crs {
		if r.Journal.HasTurn(key) {
			return true
		}
	}
	return false
}

// checkTurns verifies the turns that the journals have.
func (w *world) checkTurns(v view) {
	active := map[string][]string{}
	for _, co := range v.in.Coordinations {
		active[co.Name] = w.crs[co.Name].Journal.Active()
	}
	if wrong := wrongTurns(v, active); wrong != "" {
		w.t.Fatalf("%s:\n%s", wrong, w.tail())
	}
}

// wrongTurns returns what is wrong with the turns that coordinations report. A component has
// at most as many as may roll out at a time, and all coordinations that select an active
// Deployment report it.
func wrongTurns(v view, active map[string][]string) string {
	turns := map[string]bool{}
	for _, keys := range active {
		for _, key := range keys {
			turns[key] = true
		}
	}
	for key := range turns {
		for _, co := range v.in.Coordinations {
			if slices.Contains(membersOf(v, co), key) && !slices.Contains(active[co.Name], key) {
				return fmt.Sprintf("%s has a turn, and %s reports %v", key, co.Name, active[co.Name])
			}
		}
		n := 0
		for other := range connected(v, key) {
			if turns[other] {
				n++
			}
		}
		if limit := limitOf(v, key); n > limit {
			return fmt.Sprintf("%d have a turn beside %s, and %d may", n, key, limit)
		}
	}
	return ""
}

// checkConditions verifies that the required conditions exist, and that each keeps its
// time while its status does not change.
func (w *world) checkConditions(before, after coordinationv1.DeploymentCoordinationStatus) {
	status := map[string]metav1.Condition{}
	for _, c := range after.Conditions {
		status[c.Type] = c
		for _, b := range before.Conditions {
			if b.Type == c.Type && b.Status == c.Status && !b.LastTransitionTime.Equal(&c.LastTransitionTime) {
				w.t.Fatalf("%s has another time and the same status", c.Type)
			}
		}
		if c.ObservedGeneration != after.ObservedGeneration || c.Reason == "" || c.Message == "" {
			w.t.Fatalf("the condition is not complete: %+v", c)
		}
	}
	stalled, isStalled := status[coordinationv1.StalledCondition]
	switch {
	case len(status) != len(after.Conditions):
		w.t.Fatalf("a condition is there twice: %+v", after.Conditions)
	case status[coordinationv1.ReadyCondition].Status == "", status[coordinationv1.ProgressingCondition].Status == "",
		status[coordinationv1.DegradedCondition].Status == "", status[coordinationv1.HoldModeCondition].Status == "":
		w.t.Fatalf("a condition is missing: %+v", after.Conditions)
	case isStalled && (stalled.Status != metav1.ConditionTrue || status[coordinationv1.ReadyCondition].Status == metav1.ConditionTrue):
		w.t.Fatalf("stalled is %s while ready is %s", stalled.Status, status[coordinationv1.ReadyCondition].Status)
	}
}

// checkRest verifies that all selected apps are rolled out, and no other app has held-by.
func (w *world) checkRest() {
	v := w.look()
	for _, name := range w.appNames() {
		a := w.apps[name]
		if !w.isSelected(v, a.Key) {
			if a.HeldBy != "" && !slices.ContainsFunc(v.in.Coordinations, isMistake) {
				w.t.Fatalf("%s is still held by %s:\n%s", a.Key, a.HeldBy, w.tail())
			}
			continue
		}
		if a.finished != a.Template && !w.waitsForCorrection(v, a.Key) {
			w.t.Fatalf("%s has never been rolled out:\n%s", a.Key, w.tail())
		}
	}
	for _, r := range w.crs {
		if active := r.Journal.Active(); len(active) > 0 {
			w.t.Fatalf("%s still has the turn:\n%s", active, w.tail())
		}
	}
	writes := w.writes
	for range 5 {
		w.passedAt = -1
		w.step(time.Hour)
	}
	if w.writes != writes {
		w.t.Fatalf("at rest %d writes were made:\n%s", w.writes-writes, w.tail())
	}
}

// checkFixpoint verifies that a plan that was carried out leaves nothing to do, after at
// most two more passes that see its writes.
func (w *world) checkFixpoint() {
	for range 3 {
		w.passedAt = -1
		w.wake()
	}
	writes := w.writes
	w.passedAt = -1
	w.wake()
	if w.writes != writes {
		w.t.Fatalf("there is no end to what the controller writes:\n%s", w.tail())
	}
}

// SPDX-License-Identifier: Apache-2.0

package statefulsets_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
)

// noon is the time of every decision.
var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// zone returns a set that wants the revision "new" and was last complete with "old". Its
// pods are one word each, from ordinal 0 on, separated by commas: the revision, and a
// suffix for the state:
//
//	new     available          new~    not ready
//	-       does not exist     new!    stuck
//	new:40  Ready for 40 s     new/    terminating
//
// All other fields follow from the words.
func zone(name, pods string, changes ...func(*statefulsets.Set)) statefulsets.Set {
	words := strings.FieldsFunc(pods, func(r rune) bool { return r == ',' })
	s := statefulsets.Set{
		Name: name, UID: types.UID(name), Generation: 3, ObservedGeneration: 3, Strategy: "OnDelete",
		Replicas: int32(len(words)), CurrentRevision: "old", UpdateRevision: "new",
	}
	for i, word := range words {
		if word != "-" {
			s.Pods = append(s.Pods, pod(fmt.Sprintf("%s-%d", name, i), word))
		}
	}
	s.StatusReplicas, s.StatusReady, s.StatusUpdated = s.Replicas, s.Replicas, s.Replicas
	for _, change := range changes {
		change(&s)
	}
	return s
}

func pod(name, word string) statefulsets.Pod {
	p := statefulsets.Pod{Name: name, UID: types.UID(name), Ready: true, ReadySince: noon.Add(-24 * time.Hour)}
	at := strings.IndexAny(word, "~!/:")
	if at < 0 {
		p.Revision = word
		return p
	}
	p.Revision = word[:at]
	switch word[at] {
	case '~':
		p.Ready = false
	case '!':
		p.Ready, p.Stuck = false, "CrashLoopBackOff"
	case '/':
		p.Terminating = true
	case ':':
		seconds, err := strconv.Atoi(word[at+1:])
		if err != nil {
			panic(err)
		}
		p.ReadySince = noon.Add(-time.Duration(seconds) * time.Second)
	}
	return p
}

func allows(maxUnavailable string) func(*statefulsets.Set) {
	return func(s *statefulsets.Set) { s.MaxUnavailable = maxUnavailable }
}

func minReady(d time.Duration) func(*statefulsets.Set) {
	return func(s *statefulsets.Set) { s.MinReady = d }
}

func strategy(name string) func(*statefulsets.Set) {
	return func(s *statefulsets.Set) { s.Strategy = name }
}

func status(ready int32) func(*statefulsets.Set) {
	return func(s *statefulsets.Set) { s.StatusReady = ready }
}

// reported sets a status that does not count all pods yet. updated sets one that still
// counts some deleted pods.
func reported(pods int32) func(*statefulsets.Set) {
	return func(s *statefulsets.Set) { s.StatusReplicas, s.StatusReady, s.StatusUpdated = pods, pods, pods }
}

func updated(pods int32) func(*statefulsets.Set) {
	return func(s *statefulsets.Set) { s.StatusUpdated = pods }
}

func replicas(n int32) func(*statefulsets.Set) {
	return func(s *statefulsets.Set) { s.Replicas = n }
}

func current(revision string) func(*statefulsets.Set) {
	return func(s *statefulsets.Set) { s.CurrentRevision = revision }
}

func also(name, word string) func(*statefulsets.Set) {
	return func(s *statefulsets.Set) { s.Pods = append(s.Pods, pod(name, word)) }
}

func paused(s *statefulsets.Set)   { s.Paused = true }
func deleting(s *statefulsets.Set) { s.Deleting = true }
func unseen(s *statefulsets.Set)   { s.Generation++ }
func unknown(s *statefulsets.Set)  { s.UpdateRevision = "" }

// described returns the plan as one line.
func described(p statefulsets.Plan) string {
	words := []string{string(p.State)}
	if p.Reason != "" {
		words = append(words, p.Reason+":", p.Message)
		if len(p.About) == 0 {
			words = append(words, "(not reported)")
		}
	}
	for _, d := range p.Delete {
		words = append(words, "-"+d.Pod)
	}
	for _, name := range p.Promote {
		words = append(words, "^"+name)
	}
	return strings.Join(words, " ")
}

func decide(sets ...statefulsets.Set) statefulsets.Plan {
	return statefulsets.Decide(statefulsets.Group{Now: noon, Sets: sets})
}

// line is a test case: some sets, and the expected plan.
type line struct {
	sets []statefulsets.Set
	want string
}

func check(t *testing.T, lines map[string]line) {
	t.Helper()
	for name, l := range lines {
		t.Run(name, func(t *testing.T) {
			if got := described(decide(l.sets...)); got != l.want {
				t.Errorf("decided\n\t%s\nwant\n\t%s", got, l.want)
			}
		})
	}
}

type sets = []statefulsets.Set

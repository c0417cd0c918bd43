// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
)

// Findings is the result of the states that were seen.
type Findings struct {
	// Broken describes the promises that were broken.
	Broken []string
	// States is how many states were checked.
	States int
	// Promotions counts the entries that were recorded.
	Promotions int
	// Late counts the writes of a version that was no longer that of the newest
	// promotion. This can happen, once, to a controller that was replaced just then.
	Late int
	// Writes counts how often the controller wrote a target for a promotion: by
	// "Kind namespace/name", and by the id of the promotion.
	Writes map[string]map[int64]int

	at       uint64
	rollouts map[types.UID]*rollout
	targets  map[types.UID]*target
	checks   map[types.UID]*v1alpha1.HealthCheck
}

// Judge checks states, which must be in their order.
func Judge(seen []record.Sight) *Findings {
	s := &Findings{
		Writes:   map[string]map[int64]int{},
		rollouts: map[types.UID]*rollout{},
		targets:  map[types.UID]*target{},
		checks:   map[types.UID]*v1alpha1.HealthCheck{},
	}
	for _, sight := range seen {
		s.see(sight)
	}
	return s
}

// Repeated counts the writes of targets after the first one for each promotion.
func (s *Findings) Repeated() int {
	n := 0
	for _, writes := range s.Writes {
		for _, times := range writes {
			n += times - 1
		}
	}
	return n
}

func (s *Findings) see(sight record.Sight) {
	s.at = sight.At
	s.States++
	switch object := sight.Object.(type) {
	case *v1alpha1.Rollout:
		s.seeRollout(object, sight)
	case *v1alpha1.HealthCheck:
		s.seeCheck(object, sight.Gone)
	case *sourcev1.OCIRepository, *kustomizev1.Kustomization:
		s.seeTarget(object, sight)
	}
}

func (s *Findings) complain(format string, args ...any) {
	s.Broken = append(s.Broken, fmt.Sprintf("at %d: ", s.at)+fmt.Sprintf(format, args...))
}

// rolloutOf returns the Rollout with a name.
func (s *Findings) rolloutOf(key client.ObjectKey) *rollout {
	for _, r := range s.rollouts {
		if client.ObjectKeyFromObject(r.object) == key {
			return r
		}
	}
	return nil
}

// named returns the kind and the name of an object, for complaints.
func named(object client.Object) string {
	kind := "HealthCheck"
	switch object.(type) {
	case *v1alpha1.Rollout:
		kind = v1alpha1.RolloutKind
	case *sourcev1.OCIRepository:
		kind = sourcev1.OCIRepositoryKind
	case *kustomizev1.Kustomization:
		kind = kustomizev1.KustomizationKind
	}
	return kind + " " + client.ObjectKeyFromObject(object).String()
}

// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// Gathered returns what was read as those see it who gather the input of a decision.
func (s *Store) Gathered() gather.Reports { return gathered{s} }

type gathered struct{ *Store }

// Last returns what the last fetch found. A report that this process has verified for the
// same name in an earlier spec does not count.
func (g gathered) Last(e *environmentsv1.Environment, u environmentsv1.Upstream) (gather.Fetched, bool) {
	last, fetched := g.Store.Last(Upstream{Environment: client.ObjectKeyFromObject(e), Name: u.Environment})
	if last.Report.Sequence > 0 && last.Report.Source != SourceOf(e, u) {
		last.Report, fetched = report.Report{}, false
	}
	return gather.Fetched{
		Releases: last.Report.Releases, Sequence: last.Report.Sequence, SignedBy: last.Report.SignedBy, At: last.At, Problem: last.Problem,
	}, fetched
}
